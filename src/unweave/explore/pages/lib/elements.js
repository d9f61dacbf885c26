// Elements of all pages: how they are made, sliders, panels with a title, and work that is asked for often.

import { savePng } from "./drawing.js";
import { holdBackUntilMoved } from "./touch.js";

let made = 0; // for ids that no other element has

export function make(tag, properties = {}, ...children) {
  const { label, pressed, role, ...rest } = properties;
  const element = Object.assign(document.createElement(tag), rest);
  if (label) element.setAttribute("aria-label", label);
  if (role) element.setAttribute("role", role);
  if (pressed !== undefined) element.setAttribute("aria-pressed", pressed);
  element.append(...children);
  return element;
}

export function panel(name, title, ...children) {
  const id = `title${++made}`;
  const element = make(
    "section",
    { className: `panel ${name}` },
    make("h2", { id, textContent: title }),
    ...children,
  );
  element.setAttribute("aria-labelledby", id);
  return element;
}

// A box around an element that may be wider than the screen. While it scrolls, keys can reach it.
export function scrollBox(child) {
  const box = make("div", { className: "scroll" }, child);
  new ResizeObserver(() => {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }).observe(child);
  return box;
}

// Work that may be asked for faster than it can be done: what was asked last is always done, nothing piles up.
// With a pause, it waits until nothing was asked for so many milliseconds. `report` gets the error, or null, and
// the function that does the work again.
export function latest(work, report, pause = 0) {
  let busy = false;
  let again = false;
  const ask = async () => {
    again = true;
    if (busy) return;
    busy = true;
    while (again) {
      again = false;
      if (pause) await new Promise((resolve) => setTimeout(resolve, pause));
      if (again && pause) continue;
      try {
        await work();
        report(null, ask);
      } catch (error) {
        report(error, ask);
      }
    }
    busy = false;
  };
  return ask;
}

export function slider(text, properties) {
  const id = `slider${++made}`;
  const input = make("input", { type: "range", id, ...properties });
  holdBackUntilMoved(input);
  return {
    input,
    label: make("label", { htmlFor: id, textContent: text }),
    output: make("output", { htmlFor: id }),
  };
}

export const saver = (canvas, name) =>
  make("button", {
    type: "button",
    className: "save",
    textContent: "Save PNG",
    onclick: () => savePng(canvas, name),
  });
