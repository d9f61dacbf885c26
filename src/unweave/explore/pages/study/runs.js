// The runs of a study: their settings and scores, which of them are shown, and how one is described.

import { labelOf } from "../lib/names.js";
import { OWN_SETTING } from "./axes.js";

export const WORDS = { data: "data set", method: "method", setting: "setting", source: "source" };

const HEADLINES = ["mig", "dci.disentanglement", "sap"]; // scores that plots begin with, if they order the runs
const SATURATED = 0.5; // share of runs with the same highest or lowest value
export const MOST_PINS = 8;

export async function readStudy() {
  let answer;
  try {
    answer = await fetch("/api/study");
  } catch {
    throw new Error("The server does not answer; start unweave explore again, and reload this page.");
  }
  const record = await answer.json().catch(() => ({ error: "The server's answer cannot be read." }));
  if (!answer.ok || record.error) throw new Error(record.error ?? "The study cannot be read.");
  const numbers = {};
  for (const [name, values] of Object.entries({ ...record.settings, ...record.scores })) {
    numbers[name] = Float64Array.from(values, (value) => value ?? NaN);
  }
  return {
    ...record,
    numbers,
    scoreNames: Object.keys(record.scores),
    settingNames: Object.keys(record.settings),
    order: shuffled(record.runs),
    rowOf: new Map(record.id.map((id, row) => [id, row])),
  };
}

// Runs are drawn in an order that has nothing to do with their methods, or the last method would hide the others.
function shuffled(count) {
  const key = (row) => Math.imul(row + 1, 0x9e3779b1) >>> 0;
  return Uint32Array.from({ length: count }, (_, row) => row).sort((a, b) => key(a) - key(b));
}

// What the address says, as far as this study has it; the rest is chosen so that there is something to see.
export function startingState(study, state) {
  const family = (name) => name.split(".")[0];
  const scores = study.scoreNames;
  const fractions = scores.filter((name) => study.numbers[name].every((value) => !(value < 0 || value > 1)));
  const useful = fractions.filter((name) => !isSaturated(study.numbers[name]));
  const inOrder = [...HEADLINES.filter((name) => useful.includes(name)), ...useful, ...fractions, ...scores];
  const first = inOrder[0];
  const other = inOrder.find((name) => family(name) !== family(first)) ?? first;
  const wordNames = Object.keys(WORDS);
  const known = (name, names, otherwise) => (names.includes(name) ? name : otherwise);
  const all = [...scores, ...study.settingNames];
  const { brush } = state;
  const rightBrush =
    [0, 1, 2].includes(brush?.plot) && [brush.x, brush.y].every((ends) => isPair(ends, Number.isFinite));
  const ranges = Object.entries(state.ranges ?? {}).filter(
    ([name, ends]) => all.includes(name) && isPair(ends, (end) => end === null || Number.isFinite(end)),
  );
  return {
    x: known(state.x, all, other),
    y: known(state.y, all, first),
    against: known(state.against, study.settingNames, OWN_SETTING),
    group: known(state.group, [...wordNames, "seed"], "method"),
    colour: known(state.colour, [...wordNames, ...all], "method"),
    only: knownWords(study, state.only ?? {}),
    ranges: Object.fromEntries(ranges),
    brush: rightBrush ? brush : null,
    pins: [state.pins ?? []]
      .flat()
      .filter((id) => study.rowOf.has(id))
      .slice(0, MOST_PINS),
    sort: {
      by: known(state.sort?.by, [...wordNames, ...all], null), // null: as the vertical axis
      descending: state.sort?.descending !== false,
    },
    find: typeof state.find === "string" ? state.find : "",
  };
}

// Whether half of the numbers or more are the highest, or the lowest, one.
function isSaturated(values) {
  const finite = values.filter(Number.isFinite);
  const ends = [
    finite.reduce((a, b) => Math.max(a, b), -Infinity),
    finite.reduce((a, b) => Math.min(a, b), Infinity),
  ];
  return ends.some((end) => finite.filter((value) => value === end).length >= SATURATED * finite.length);
}

const isPair = (given, isRight) => Array.isArray(given) && given.length === 2 && given.every(isRight);

function knownWords(study, only) {
  const lists = Object.keys(WORDS)
    .filter((name) => Array.isArray(only[name]))
    .map((name) => {
      return [name, only[name].filter((each) => study.words[name].names.includes(each))];
    });
  return Object.fromEntries(lists.filter(([name, kept]) => kept.length || !only[name].length));
}

export function shownRuns(study, { only, ranges }) {
  const shown = new Uint8Array(study.runs).fill(1);
  for (const [name, kept] of Object.entries(only)) {
    const { names, codes } = study.words[name];
    const stays = names.map((word) => kept.includes(word));
    for (let i = 0; i < shown.length; i++) if (!stays[codes[i]]) shown[i] = 0;
  }
  for (const [name, [low, high]] of Object.entries(ranges)) {
    const values = study.numbers[name];
    for (let i = 0; i < shown.length; i++) {
      if ((low !== null && !(values[i] >= low)) || (high !== null && !(values[i] <= high))) shown[i] = 0;
    }
  }
  return shown;
}

// The display name of a column (a kind of words, a setting or a score), and of a word, such as a method.
export const columnLabel = (study, name) => WORDS[name] ?? labelOf(study.labels, "score", name);
export const wordLabel = (study, kind, name) => labelOf(study.labels, kind, name);

export const ownWord = (study, kind, row) => study.words[kind].names[study.words[kind].codes[row]];
export const word = (study, kind, row) => wordLabel(study, kind, ownWord(study, kind, row));

export function described(study, row) {
  const setting = word(study, "setting", row);
  const parts = [
    `${word(study, "method", row)} on ${word(study, "data", row)}`,
    setting,
    `seed ${study.numbers.seed[row]}`,
  ];
  return parts.filter(Boolean).join(", ");
}
