// All runs that the server named, their curves as far as they were asked for, and the next question.

import { bothNames, labelOf } from "../lib/names.js";

const MOST_POINTS = 2000; // of a curve; of more, neighbours are averaged

export function liveRuns() {
  const runs = new Map(); // by key
  const curves = new Map(); // of the runs that are or were shown
  const labels = { method: {}, data: {}, score: {} }; // display names
  let version = 0;

  const address = (shown) => {
    const cursors = shown.map((key) => `${key}~${curves.get(key)?.cursor ?? ""}`);
    return `/api/live?${new URLSearchParams({ since: version, shown: cursors.join(",") })}`;
  };

  // Takes an answer in; returns whether runs were added or removed.
  const take = (answer) => {
    const before = runs.size;
    version = answer.version;
    for (const [kind, names] of Object.entries(answer.labels)) Object.assign(labels[kind], names);
    if (answer.whole) runs.clear();
    for (const key of answer.removed) {
      runs.delete(key);
      curves.delete(key);
    }
    for (const record of answer.runs) runs.set(record.key, { ...runs.get(record.key), ...record });
    for (const [key, news] of Object.entries(answer.shown)) {
      curves.set(key, news.restarted || !curves.has(key) ? fresh(news) : extended(curves.get(key), news));
    }
    const isNew = answer.runs.some((record) => "method" in record);
    return answer.whole || isNew || runs.size !== before;
  };

  return { runs, curves, labels, address, take };
}

const fresh = (news) => extended({ steps: [], terms: {} }, news);

function extended(curve, news) {
  const { steps, terms, ...rest } = news;
  const known = curve.steps.length;
  const all = { ...curve, ...rest, steps: [...curve.steps, ...steps], terms: {} };
  for (const name of new Set([...Object.keys(curve.terms), ...Object.keys(terms)])) {
    const before = curve.terms[name] ?? new Array(known).fill(null);
    all.terms[name] = [...before, ...(terms[name] ?? new Array(steps.length).fill(null))];
  }
  return all.steps.length > MOST_POINTS ? halved(all) : all;
}

// Pairs of points become one, at the step of the second.
function halved(curve) {
  const pairs = Math.floor(curve.steps.length / 2);
  const ends = (values, merge) => [
    ...Array.from({ length: pairs }, (_, i) => merge(values[2 * i], values[2 * i + 1])),
    ...values.slice(2 * pairs),
  ];
  const mean = (a, b) => (a === null || b === null ? (a ?? b) : (a + b) / 2);
  const terms = Object.entries(curve.terms).map(([name, values]) => [name, ends(values, mean)]);
  return { ...curve, steps: ends(curve.steps, (_, b) => b), terms: Object.fromEntries(terms) };
}

// Exponential moving average without the bias of its start; 0 leaves the values as they are.
export function smoothed(values, weight) {
  if (!weight) return values;
  let sum = 0;
  let total = 0;
  return values.map((value) => {
    if (value === null) return null;
    sum = weight * sum + (1 - weight) * value;
    total = weight * total + (1 - weight);
    return sum / total;
  });
}

// The names of runs: the method, and the settings that are not the same in all runs of the method. Each has a `text`
// with display names, and `nodes()` with the programmatic name of the method next to it.
export function runNames(runs, labels) {
  const byMethod = Map.groupBy(runs, (run) => run.method);
  const severalData = new Set(runs.map((run) => run.data)).size > 1;
  const rows = new Map();
  for (const [method, some] of byMethod) {
    const all = some.map((run) => ({ ...run.settings, steps: run.steps }));
    const names = [...new Set(all.flatMap(Object.keys))];
    const varied = names.filter((name) => new Set(all.map((one) => JSON.stringify(one[name]))).size > 1);
    some.forEach((run, i) => {
      const chosen = varied.filter((name) => name in all[i]).map((name) => `${name}=${all[i][name]}`);
      const data = severalData ? [labelOf(labels, "data", run.data)] : [];
      rows.set(run.key, {
        text: [...data, labelOf(labels, "method", method), ...chosen].join(" "),
        nodes: () => [
          ...data.map((name) => `${name} `),
          ...bothNames(labels, "method", method),
          ...chosen.map((one) => ` ${one}`),
        ],
      });
    });
  }
  return rows;
}
