// Pinned runs of the study page: their settings and scores next to each other, and the way to compare models.

import { bothNames } from "../lib/names.js";
import { shortNumber } from "./axes.js";
import { make } from "./elements.js";
import { described, MOST_PINS, WORDS, word } from "./runs.js";

const [SHORTEST, SENT] = [4, 8]; // digits of a number in a table, and in what the server sends

export function openButton(view, row) {
  const here = view.study.here[row] === 1;
  const label = here ? `open ${described(view.study, row)}` : "the folder of this run is not here";
  const why = here ? {} : { title: label };
  return make(
    "button",
    {
      type: "button",
      disabled: !here,
      ...why,
      "aria-label": label,
      "data-key": `open ${view.study.id[row]}`,
      click: () => view.openRun(view.study.id[row]),
    },
    "open",
  );
}

export function pinButton(view, row) {
  const pinned = view.state.pins.includes(view.study.id[row]);
  const label = `${pinned ? "unpin" : "pin"} ${described(view.study, row)}`;
  return make(
    "button",
    {
      type: "button",
      "aria-label": label,
      "data-key": `pin ${view.study.id[row]}`,
      click: () => pin(view, row),
    },
    pinned ? "unpin" : "pin",
  );
}

// Pin a run, or take its pin away; when there are too many, the first one loses its pin.
export function pin(view, row) {
  const id = view.study.id[row];
  const { pins } = view.state;
  const others = pins.filter((other) => other !== id);
  view.change({ pins: others.length < pins.length ? others : [...pins, id].slice(-MOST_PINS) });
}

export function showPinned(view) {
  const { study, state } = view;
  const key = state.pins.join(" ");
  if (view.pinned === key && view.pair.childElementCount) return;
  view.pinned = key;
  const rows = state.pins.map((id) => study.rowOf.get(id));
  if (!rows.length)
    return view.pair.replaceChildren(
      make("p", { class: "study-dim" }, `Pin up to ${MOST_PINS} runs to compare them.`),
    );
  const heads = [...rows.map((_, k) => `run ${k + 1}`), ...(rows.length === 2 ? ["difference"] : [])];
  const line = (name, cells) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, ...[name].flat()),
      ...heads.map((_, k) => make("td", {}, cells[k] ?? "")),
    );
  const numbers = (names) =>
    names
      .map((name) => [name, rows.map((row) => study.numbers[name][row])])
      .filter(([, values]) => values.some(Number.isFinite))
      .map(([name, values]) => line(bothNames(study.labels, "score", name), compared(values)));
  view.pair.replaceChildren(
    make(
      "h2",
      {},
      rows.length > 1 ? `${rows.length} pinned runs` : "One run is pinned: pin another to compare",
    ),
    ...compareLink(view, rows),
    make(
      "div",
      { class: "study-scroll" },
      make(
        "table",
        {},
        make(
          "thead",
          {},
          make("tr", {}, make("td"), ...heads.map((name) => make("th", { scope: "col" }, name))),
        ),
        make(
          "tbody",
          {},
          line(
            "actions",
            rows.map((row) => make("span", {}, openButton(view, row), " ", pinButton(view, row))),
          ),
          line(
            "traversals",
            rows.map((row) => traversal(view, row)),
          ),
          line(
            "id",
            rows.map((row) => study.id[row]),
          ),
          ...Object.keys(WORDS).map((name) =>
            line(
              WORDS[name],
              rows.map((row) => word(study, name, row)),
            ),
          ),
          ...numbers(study.settingNames),
          ...numbers(study.scoreNames),
        ),
      ),
    ),
  );
}

// The address of the pinned runs side by side, whose models must be in the folder of the study.
function compareLink({ study, state }, rows) {
  if (rows.length < 2) return [];
  if (!rows.every((row) => study.here[row]))
    return [
      make("p", { class: "study-dim" }, "Their models cannot be compared: not all run folders are here."),
    ];
  const text = `Compare the models of these ${rows.length} runs side by side`;
  return [
    make("p", {}, make("a", { href: `#compare=${state.pins.join(",")}`, class: "study-compare" }, text)),
  ];
}

// Numbers as text, and the difference of two: with so many digits that the difference can be seen in them.
function compared(values) {
  if (values.length !== 2) return values.map((value) => shortNumber(value));
  const difference = values[1] - values[0];
  const larger = Math.max(...values.map(Math.abs));
  const digits = difference ? Math.ceil(Math.log10(larger / Math.abs(difference))) + 2 : SHORTEST;
  const shown = Math.max(SHORTEST, Math.min(digits, SENT)) || SHORTEST; // one value may be missing
  return [...values.map((value) => shortNumber(value, shown)), shortNumber(difference)];
}

export function traversal(view, row) {
  if (!view.study.here[row]) return make("span", { class: "study-dim" }, "no picture");
  const picture = make("img", {
    src: `/api/run/${encodeURIComponent(view.study.id[row])}/traversal`,
    alt: `traversals of ${described(view.study, row)}`,
    error: () => picture.replaceWith(make("span", { class: "study-dim" }, "no picture")),
  });
  return picture;
}
