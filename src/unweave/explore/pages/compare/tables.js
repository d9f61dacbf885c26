// Tables with one column a run, which scroll within themselves on narrow screens.

import { make } from "../lib/elements.js";

// The name of a run at the head of its column: its letter, and its method where there is room.
export const runName = ({ letter, label, name }) =>
  make(
    "span",
    { title: name },
    letter,
    make("span", { className: "compared-method", textContent: label.slice(letter.length) }),
  );

// A part of the page that may be wider than the screen; the keyboard can scroll it.
export function scrolling(label, className, ...children) {
  return make("div", { className, role: "group", label, tabIndex: 0 }, ...children);
}

export function runsTable(label, heads, rows) {
  return scrolling(
    label,
    "scroll",
    make(
      "table",
      { className: "compared-table", label },
      make("thead", {}, make("tr", {}, ...heads)),
      make("tbody", {}, ...rows),
    ),
  );
}

export const columnHead = (...children) => make("th", { scope: "col" }, ...children);
