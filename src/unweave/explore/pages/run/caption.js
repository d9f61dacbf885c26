// A run and what is chosen on its page, in words: for the heading, and for files that leave the page.

import { labelOf } from "../lib/names.js";

export const factorText = (factor, value) => factor.labels?.[value] ?? `${value + 1} of ${factor.size}`;

// Data set, settings, seed and steps, as far as they are known.
export function factsOf(run) {
  const settings = Object.entries(run.settings).map(([name, value]) => `${name} ${value}`);
  const seed = run.seed === null ? [] : [`seed ${run.seed}`];
  const steps = run.steps === null ? [] : [`${run.steps.toLocaleString("en")} steps`];
  return [labelOf(run.labels, "data", run.data), ...settings, ...seed, ...steps];
}

// The lines below the title of a saved view, as lists of words: the run, the true image, the values of the sliders.
export function captionOf(run, view) {
  const codes = view.codes.map((z, i) => `z${i} ${z.toFixed(2)}`);
  const factors = (view.factors ?? []).map(
    (v, j) => `${run.factors[j].name} ${factorText(run.factors[j], v)}`,
  );
  const image = run.examples ? [`image ${view.example + 1} of the page`] : factors;
  return [
    ["Run", ...factsOf(run), `id ${run.id}`],
    ["True image", ...image],
    ["Sliders", ...codes],
  ].filter((words) => words.length > 1);
}
