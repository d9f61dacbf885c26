// Stored scores of all runs, with intervals; those of different protocols are shown and not compared.

import { make, panel } from "../../lib/elements.js";
import { bothNames } from "../../lib/names.js";
import { columnHead, runName, runsTable } from "../tables.js";

const HINT =
  "Scores that are stored in the folders of the runs; in brackets the 95 % interval, where there is one. Click a heading " +
  "to sort. Scores vary with the seed, so a difference between two runs is not yet one between their methods.";

export function scoresPanel({ record, runs }) {
  const element = panel("compared-scores", "Scores");
  if (!record.scores.length) {
    element.append(
      make("p", { textContent: "No scores are stored. “unweave evaluate RUN” measures a run." }),
    );
    return { element, update() {} };
  }
  const columns = columnsOf(runs);
  let order = { column: 0, down: false };
  const heads = columns.map(({ title }, c) => {
    const sort = () => {
      order = { column: c, down: order.column === c ? !order.down : c > 0 };
      fill();
    };
    return columnHead(make("button", { type: "button", className: "sort", onclick: sort }, title));
  });
  const table = runsTable("Scores", heads, []);
  const fill = () => {
    const rows = sorted(record.scores, columns, order).map((score) => scoreRow(score, runs, record.labels));
    table.querySelector("tbody").replaceChildren(...rows);
    heads.forEach((head, c) => {
      const direction = order.down ? "descending" : "ascending";
      head.setAttribute("aria-sort", c === order.column ? direction : "none");
    });
  };
  fill();
  element.append(make("p", { className: "hint", textContent: HINT }), table);
  return { element, update() {} };
}

// The columns, with the value that each of them sorts by.
function columnsOf(runs) {
  return [
    { title: "score", key: ({ name }) => name },
    ...runs.map((run, k) => ({
      title: runName(run),
      key: ({ values }) => values[k]?.value ?? null,
    })),
    { title: "largest difference", key: difference },
  ];
}

// Scores in the order of a column; those without a value come last either way.
function sorted(scores, columns, { column, down }) {
  const { key } = columns[column];
  const compare = (a, b) => (a < b ? -1 : Number(a > b));
  return [...scores].sort((one, other) => {
    const [a, b] = [key(one), key(other)];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return down ? compare(b, a) : compare(a, b);
  });
}

function difference({ comparable, values }) {
  const known = values.filter(Boolean).map(({ value }) => value);
  return comparable && known.length > 1 ? Math.max(...known) - Math.min(...known) : null;
}

// Counts stay whole; a score of 1 has its digits.
const short = (value) =>
  (Number.isInteger(value) && Math.abs(value) > 1 ? String(value) : value.toFixed(3)).replace("-", "−");

function scoreRow(score, runs, labels) {
  const { name, representation, comparable, protocols, values } = score;
  const names = bothNames(labels, "score", name);
  const head = make("th", { scope: "row", title: protocols.join("\n") }, ...names);
  if (representation && representation !== "mean") head.append(` (${representation})`);
  const gap = difference(score);
  const last = comparable ? (gap === null ? "–" : short(gap)) : notComparable(values, runs);
  return make(
    "tr",
    {},
    head,
    ...values.map((value) => make("td", { textContent: value ? withInterval(value) : "–" })),
    make("td", { className: comparable ? "" : "not-compared", textContent: last }),
  );
}

function withInterval({ value, low, high }) {
  return low === null || high === null ? short(value) : `${short(value)} (${short(low)} to ${short(high)})`;
}

function notComparable(values, runs) {
  const parts = values.map((value, k) => value && `${runs[k].letter} ${value.protocol}`).filter(Boolean);
  return `Not compared: the protocols differ (${parts.join("; ")}).`;
}
