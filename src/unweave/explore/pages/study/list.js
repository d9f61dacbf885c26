// The table of runs below the plots: sorted by any column, filtered by text, coloured as the plots are.

import { shortNumber } from "./axes.js";
import { make } from "./elements.js";
import { swatch } from "./legend.js";
import { columnLabel, described, ownWord, word } from "./runs.js";
import { openButton, pinButton } from "./tables.js";

const [LISTED, MORE] = [20, 100]; // runs in the table at first, and how many a button adds

export function buildList(view) {
  const find = (event) => view.change({ find: event.target.value });
  const input = make("input", {
    type: "search",
    value: view.state.find,
    placeholder: "method, data set, setting, id",
    input: find,
  });
  view.listed = LISTED;
  view.list = make("div", { class: "study-scroll" });
  return [
    make("h2", {}, "Runs"),
    make("label", { class: "study-find" }, "find in the table", input),
    view.list,
  ];
}

export function showList(view) {
  const { study, state } = view;
  const columns = columnsOf(study, state);
  const rows = sorted(view, matching(view));
  const shown = rows.slice(0, view.listed);
  const kind = view.lit ? "marked" : "shown";
  const caption = `${shown.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} ${kind} runs, by ${columnLabel(study, orderOf(state))}`;
  view.list.replaceChildren(
    make(
      "table",
      {},
      make("caption", {}, caption),
      make(
        "thead",
        {},
        make("tr", {}, make("th", { scope: "col" }, "run"), ...columns.map((name) => head(view, name))),
      ),
      make("tbody", {}, ...shown.map((row) => line(view, row, columns))),
    ),
    ...(rows.length > shown.length ? [moreButton(view, rows.length - shown.length)] : []),
  );
}

const orderOf = ({ sort, y }) => sort.by ?? y;

// Words and seed, the scores of the plots, and what colours or order stand for.
function columnsOf(study, state) {
  const { x, y, colour } = state;
  const words = ["data", "method", "setting"];
  const others = ["seed", y, x, colour, orderOf(state)].filter((name) => name in study.numbers);
  const source = [colour, orderOf(state)].includes("source") ? ["source"] : [];
  return [...words, ...new Set(others), ...source];
}

// The rows of runs that are marked, or shown if none are, in which all words of the text occur.
function matching({ study, state, lit, shown }) {
  const wanted = state.find.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [];
  (lit ?? shown).forEach((is, row) => {
    if (is && wanted.every((text) => textOf(study, row).includes(text))) rows.push(row);
  });
  return rows;
}

// What is found in a run: its names as displayed and in programs, its settings and its id.
const textOf = (study, row) =>
  [described(study, row), ownWord(study, "method", row), ownWord(study, "data", row), study.id[row]]
    .join(" ")
    .toLowerCase();

// Numbers that are missing come last in both orders.
function sorted({ study, state }, rows) {
  const by = orderOf(state);
  const { descending } = state.sort;
  const values = study.words[by]?.codes ?? study.numbers[by];
  const sign = descending ? -1 : 1;
  const missing = (row) => Number(Number.isNaN(values[row]));
  return rows.sort((a, b) => missing(a) - missing(b) || sign * (values[a] - values[b]) || a - b);
}

function head(view, name) {
  const { descending } = view.state.sort;
  const isSorted = orderOf(view.state) === name;
  const click = () =>
    view.change({ sort: { by: name, descending: isSorted ? !descending : !(name in view.study.words) } });
  const arrow = isSorted ? (descending ? " ↓" : " ↑") : "";
  const button = make(
    "button",
    { type: "button", class: "study-sort", "data-key": `sort ${name}`, click },
    `${columnLabel(view.study, name)}${arrow}`,
  );
  const order = isSorted ? { "aria-sort": descending ? "descending" : "ascending" } : {};
  return make("th", { scope: "col", ...order }, button);
}

function line(view, row, columns) {
  const { study, drawing } = view;
  const mark = swatch(drawing.looks[drawing.codes[row]]);
  return make(
    "tr",
    {},
    make("td", { class: "study-actions" }, mark, openButton(view, row), " ", pinButton(view, row)),
    ...columns.map((name) =>
      cell(
        view,
        name,
        name in study.numbers ? shortNumber(study.numbers[name][row]) : word(study, name, row),
        row,
      ),
    ),
  );
}

// A cell; one of the column that colours stand for has the colour of its run at its left.
function cell({ state, drawing }, name, text, row) {
  const made = make("td", { class: `study-${name.split(".")[0]}` }, text);
  if (name === state.colour) {
    made.style.borderLeft = `4px solid ${drawing.looks[drawing.codes[row]].colour}`;
    made.style.paddingLeft = "6px";
  }
  return made;
}

function moreButton(view, rest) {
  const click = () => {
    view.listed += MORE;
    showList(view);
  };
  return make("button", { type: "button", "data-key": "more", click }, `Show ${Math.min(rest, MORE)} more`);
}
