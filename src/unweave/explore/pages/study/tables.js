// What the study page says about its runs next to the plots: counts, legend, list and the comparison of two runs.

import { make } from "./elements.js";
import { shortNumber } from "./plots.js";
import { described, WORDS, word } from "./runs.js";

const [SHORTEST, SENT] = [4, 8]; // digits of a number in a table, and in what the server sends
const LISTED = 20; // runs in the list below the plots
export const HELP =
  "Drag over a plot to mark runs in all of them. Click a run to open it, shift-click to pin it; " +
  "on the keyboard: arrows, Enter, P, and Escape to unmark.";

// Everything that is not a plot: how many runs there are, the legend, the list and the comparison.
export function showWords(view) {
  const { study, shown, lit, drawing } = view;
  const count = (mask) => mask.reduce((sum, is) => sum + is, 0);
  const marked = lit ? `, ${count(lit).toLocaleString("en")} of them marked` : "";
  view.status.textContent = `${count(shown).toLocaleString("en")} of ${study.runs.toLocaleString("en")} runs${marked}`;
  view.legend.replaceChildren(
    ...drawing.names.map((name, place) => make("li", {}, swatch(drawing.looks[place]), name)),
  );
  view.plots.forEach(({ canvas, layout }) => {
    canvas.setAttribute("aria-label", `${layout.y.name} against ${layout.x.name}, one mark a run. ${HELP}`);
  });
  keepFocus(view.list, () => showList(view));
  keepFocus(view.pair, () => showPair(view));
}

// Replace the contents of an element; a button that had the focus keeps it if it is still there.
function keepFocus(element, fill) {
  const key = element.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  fill();
  if (key) element.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

function swatch({ colour, shape }) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  const attributes = { width: 14, height: 14, viewBox: "-5 -5 10 10", "aria-hidden": "true" };
  for (const [name, value] of Object.entries(attributes)) svg.setAttribute(name, value);
  path.setAttribute("d", shape);
  path.setAttribute("fill", colour);
  svg.append(path);
  return svg;
}

function showList(view) {
  const { study, state } = view;
  const values = study.numbers[state.y];
  const rows = [];
  (view.lit ?? view.shown).forEach((is, row) => {
    if (is && Number.isFinite(values[row])) rows.push(row);
  });
  rows.sort((a, b) => (state.lowest ? values[a] - values[b] : values[b] - values[a]) || a - b);
  const button = make(
    "button",
    { type: "button", "data-key": "order", click: () => view.change({ lowest: !state.lowest }) },
    state.lowest ? "Show the highest" : "Show the lowest",
  );
  const head = ["run", ...Object.values(WORDS).slice(0, 3), "seed", ...new Set([state.y, state.x])];
  const lines = rows
    .slice(0, LISTED)
    .map((row) =>
      make(
        "tr",
        {},
        make("td", {}, openButton(view, row), " ", pinButton(view, row)),
        ...["data", "method", "setting"].map((name) =>
          make("td", { class: `study-${name}` }, word(study, name, row)),
        ),
        make("td", {}, String(study.numbers.seed[row])),
        ...[...new Set([state.y, state.x])].map((name) =>
          make("td", {}, shortNumber(study.numbers[name][row])),
        ),
      ),
    );
  const which = `The ${state.lowest ? "lowest" : "highest"} ${state.y} of the ${view.lit ? "marked" : "shown"} runs`;
  view.list.replaceChildren(
    make("h3", {}, which),
    button,
    make(
      "table",
      { "aria-label": which },
      make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...lines),
    ),
  );
}

function openButton(view, row) {
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

function pinButton(view, row) {
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

// Pin a run, or take its pin away; a third pin takes the place of the first.
export function pin(view, row) {
  const id = view.study.id[row];
  const { pins } = view.state;
  view.change({ pins: pins.includes(id) ? pins.filter((each) => each !== id) : [...pins, id].slice(-2) });
}

function showPair(view) {
  const { study, state } = view;
  const key = state.pins.join(" ");
  if (view.paired === key && view.pair.childElementCount) return;
  view.paired = key;
  const rows = state.pins.map((id) => study.rowOf.get(id));
  if (!rows.length)
    return view.pair.replaceChildren(make("p", { class: "study-dim" }, "Pin two runs to compare them."));
  const heads = ["", ...rows.map((_, k) => `run ${k + 1}`), ...(rows.length === 2 ? ["difference"] : [])];
  const line = (name, cells) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, name),
      ...heads.slice(1).map((_, k) => make("td", {}, cells[k] ?? "")),
    );
  const numbers = (names) =>
    names
      .map((name) => [name, rows.map((row) => study.numbers[name][row])])
      .filter(([, values]) => values.some(Number.isFinite))
      .map(([name, values]) => line(name, compared(values)));
  view.pair.replaceChildren(
    make("h3", {}, rows.length === 2 ? "Two runs" : "One run is pinned: pin another to compare"),
    make(
      "div",
      { class: "study-scroll" },
      make(
        "table",
        {},
        make("thead", {}, make("tr", {}, ...heads.map((name) => make("th", { scope: "col" }, name)))),
        make(
          "tbody",
          {},
          line(
            "",
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

// One or two numbers as text, and their difference: with so many digits that the difference can be seen in them.
function compared(values) {
  if (values.length < 2) return values.map((value) => shortNumber(value));
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
