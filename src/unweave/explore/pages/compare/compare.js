// Several runs side by side: the same image, latents that move in step, settings that differ, scores.

import { latest, make } from "../lib/elements.js";
import { failureMessage } from "../lib/failures.js";
import { bothNames } from "../lib/names.js";
import { askJson, serverSource } from "../lib/source.js";
import { readNumbers, readState, writeState } from "../lib/state.js";
import { examplesPanel } from "../run/panels/examples.js";
import { factorsPanel } from "../run/panels/factors.js";
import { applied, comparedRuns, readMoves, writtenMoves } from "./alignment.js";
import { imagesPanel } from "./panels/images.js";
import { latentsPanel } from "./panels/latents.js";
import { scoresPanel } from "./panels/scores.js";
import { settingsPanel } from "./panels/settings.js";
import { traversalsPanel } from "./panels/traversals.js";

const FEW = 4; // runs whose latents leave room for another panel next to them

// Shows the runs of these ids in an element; `fixed` is kept in the address. Returns a function that ends it.
export async function showComparison(element, ids, fixed = {}) {
  const query = ids.map(encodeURIComponent).join(",");
  const record = await askJson(`/api/compare?runs=${query}`);
  const runs = comparedRuns(record);
  const sources = runs.map(({ id }) => serverSource(id));
  const context = { record, runs, sources, view: null };
  const { element: message, report } = failureMessage((failed) => element.classList.toggle("stale", failed));
  context.report = report;
  const panels = record.rows ? await movingPanels(context, { ...fixed, compare: ids.join(",") }) : [];
  const tables = [settingsPanel(context), scoresPanel(context)];
  const className = runs.length > FEW ? "compared many" : "compared";
  element.replaceChildren(
    message,
    heading(context, fixed),
    make("div", { className }, ...[...panels, ...tables].map((panel) => panel.element)),
  );
  for (const what of ["factors", "image", "codes", "selection"]) context.changed?.(what);
  const repaint = () => context.changed?.("theme");
  document.addEventListener("themechange", repaint);
  return () => {
    if (context.view) context.view.ended = true; // the address is another view's now
    document.removeEventListener("themechange", repaint);
  };
}

// The panels that show images, with all that moves them.
async function movingPanels(context, fixed) {
  const { record, sources, report } = context;
  const view = firstView(record);
  context.view = view;
  let panels = [];
  context.changed = (what) => {
    for (const panel of panels) panel.update(what);
  };
  const remember = latest(async () => view.ended || remembered(view, fixed), report, 300);
  const moved = () => {
    context.changed("codes");
    remember();
  };
  const encode = async () => {
    view.base = view.factors
      ? await Promise.all(sources.map((source) => source.encode(view.factors)))
      : record.examples[view.example].codes;
  };
  const choose = latest(async () => {
    await encode();
    context.changed("image");
    moved();
  }, report);
  context.codes = (k) => applied(record, view, k);
  context.move = (row, place) => {
    view.moves.set(row, place);
    moved();
  };
  context.select = ({ row }) => {
    if (row === undefined || row === view.row) return; // panels of a run also select factors
    view.row = row;
    context.changed("selection");
    remember();
  };
  context.reset = () => {
    view.moves.clear();
    moved();
  };
  context.chooseFactors = () => {
    view.moves.clear(); // the sliders start from the code of the image
    context.changed("factors");
    choose();
  };
  context.chooseExample = (place) => {
    view.example = place;
    context.chooseFactors();
  };
  await encode();
  panels = [
    imagesPanel(context),
    latentsPanel(context),
    view.factors ? factorsPanel({ ...context, run: record }) : examplesPanel({ ...context, run: record }),
    traversalsPanel(context),
  ];
  return panels;
}

function firstView(record) {
  const state = readState();
  const { factors, first_factors, examples, rows } = record;
  const named = readNumbers(state, "f", factors.length);
  const known = named?.every((v, j) => Number.isInteger(v) && v >= 0 && v < factors[j].size);
  const whole = (name, size) => {
    const value = Number(state.get(name) ?? NaN);
    return Number.isInteger(value) && value >= 0 && value < size ? value : 0;
  };
  return {
    factors: known && first_factors ? named : first_factors && [...first_factors],
    example: whole("image", examples.length),
    row: whole("row", rows.length),
    moves: readMoves(state.get("moves"), record),
    base: [], // the code of the image in each run
    factor: null, // panels of a run mark the selected factor; none is selected here
    ended: false,
  };
}

function remembered(view, fixed) {
  const params = new URLSearchParams(fixed);
  if (view.factors) params.set("f", view.factors.join(","));
  else params.set("image", view.example);
  if (view.row) params.set("row", view.row);
  if (view.moves.size) params.set("moves", writtenMoves(view.moves));
  writeState(params);
}

function heading({ record, runs }, fixed) {
  const links = runs.map(({ id, letter, method, name, seed }) =>
    make(
      "li",
      {},
      make("b", { textContent: `${letter} ` }),
      make("a", { href: `#${new URLSearchParams({ run: id, ...fixed })}`, textContent: name }),
      " ",
      ...bothNames(record.labels, "method", method),
      seed === null ? "" : `, seed ${seed}`,
    ),
  );
  const element = make(
    "div",
    {},
    make(
      "h1",
      {},
      `${runs.length} ${runs.some(({ seed }) => seed === null) ? "models" : "runs"} on `,
      ...bothNames(record.labels, "data", record.data),
    ),
    make("ul", { className: "compared-runs" }, ...links),
  );
  if (record.note)
    element.append(
      make("p", {
        className: "hint",
        textContent: `${record.note} Images and latents cannot be compared without them.`,
      }),
    );
  return element;
}
