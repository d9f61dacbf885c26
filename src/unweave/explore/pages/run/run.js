// One run: its latents as sliders, the image that they decode to, and what is known of them.

import { savePng, stacked } from "../lib/drawing.js";
import { latest, make } from "../lib/elements.js";
import { failureMessage } from "../lib/failures.js";
import { bothNames, labelOf } from "../lib/names.js";
import { readNumbers, readState, writeState } from "../lib/state.js";
import { captionOf, factsOf } from "./caption.js";
import { panelsOf } from "./panels.js";

const SECONDS = 4; // there and back

// Shows a run in an element; `fixed` is kept in the address together with the state. Returns a function that ends it.
export async function showRun(element, source, fixed = {}) {
  const run = await source.describe();
  const view = firstView(run);
  let panels = [];
  const changed = (what) => {
    for (const panel of panels) panel.update(what);
  };
  const { element: message, report } = failureMessage((failed) => {
    element.classList.toggle("stale", failed);
    if (failed) context.walk(null);
  });
  const remember = latest(async () => view.ended || remembered(view, fixed), report, 300);
  const context = { run, view, source, report };
  context.moved = () => {
    changed("codes");
    remember();
  };
  context.select = (chosen) => {
    if (Object.entries(chosen).every(([name, value]) => view[name] === value)) return;
    Object.assign(view, chosen);
    changed("selection");
    remember();
  };
  const encode = latest(async () => {
    view.codes = await source.encode(view.factors);
    context.moved();
  }, report);
  context.chooseFactors = () => {
    context.walk(null);
    changed("factors");
    encode();
  };
  context.chooseExample = (place) => {
    view.example = place;
    changed("factors");
    context.reset();
  };
  context.reset = () => {
    context.walk(null);
    if (source.encode && view.factors) encode();
    else {
      view.codes = [...firstCodes(run, view)];
      context.moved();
    }
  };
  context.walk = walker(run, view, changed, context.moved);
  panels = panelsOf(context);
  const save = make("button", {
    type: "button",
    textContent: "Save view as PNG",
    onclick: () => saveView(run, view, panels),
  });
  const all = make(
    "div",
    { className: run.information ? "panels" : "panels few" },
    ...panels.map((panel) => panel.element),
  );
  element.replaceChildren(message, heading(run, save), all, keys());
  for (const what of ["selection", "factors"]) changed(what);
  if (view.encodeFirst) encode();
  else changed("codes");
  return endWith(context, changed, element);
}

function firstView(run) {
  const state = readState();
  const whole = (name, size) => {
    const value = Number(state.get(name) ?? NaN);
    return Number.isInteger(value) && value >= 0 && value < size ? value : null;
  };
  const factors = readNumbers(state, "f", run.factors.length);
  const known = factors?.every((v, j) => Number.isInteger(v) && v >= 0 && v < run.factors[j].size);
  const codes = readNumbers(state, "z", run.latents)?.map((z, i) =>
    Math.max(run.ranges[i][0], Math.min(run.ranges[i][1], z)),
  );
  const latent = whole("latent", run.latents) ?? run.order[0];
  const example = whole("image", run.examples?.length) ?? 0;
  return {
    codes: codes ?? [...firstCodes(run, { example })],
    example, // the place of the true image among those of an exported page
    factors: run.first_factors && (known ? factors : [...run.first_factors]),
    latent,
    factor: run.factors.length ? (whole("factor", run.factors.length) ?? bestFactor(run, latent)) : null,
    sheet: whole("sheet", run.swap?.sheets) ?? 0,
    walking: null,
    encodeFirst: Boolean(run.first_factors && known && !codes), // the address names an image, and no code of its own
    ended: false,
  };
}

// The code of the true image of an exported page, else the code that the run starts from.
const firstCodes = (run, { example }) => run.examples?.[example].code ?? run.start;

const bestFactor = (run, latent) => run.information[latent].indexOf(Math.max(...run.information[latent]));

function remembered(view, fixed) {
  const params = new URLSearchParams(fixed);
  params.set("z", view.codes.map((z) => Number(z.toFixed(2))).join(","));
  if (view.example) params.set("image", view.example);
  if (view.factors) params.set("f", view.factors.join(","));
  params.set("latent", view.latent);
  if (view.factor !== null) params.set("factor", view.factor);
  if (view.sheet) params.set("sheet", view.sheet);
  writeState(params);
}

// Moves a latent up and down its span until it is called with another latent, or with null.
function walker(run, view, changed, moved) {
  let began = 0;
  const middle = (i) => (run.spans[i][0] + run.spans[i][1]) / 2;
  const half = (i) => (run.spans[i][1] - run.spans[i][0]) / 2;
  const step = (now) => {
    if (view.walking === null) return;
    const i = view.walking;
    view.codes[i] = middle(i) + half(i) * Math.sin(began + (2 * Math.PI * now) / (1000 * SECONDS));
    moved();
    requestAnimationFrame(step);
  };
  return (latent) => {
    const before = view.walking;
    if (before === latent) return;
    view.walking = latent;
    if (latent !== null) {
      const share = half(latent) && (view.codes[latent] - middle(latent)) / half(latent);
      const place = Math.asin(Math.max(-1, Math.min(1, share)));
      began = place - (2 * Math.PI * performance.now()) / (1000 * SECONDS);
      if (before === null) requestAnimationFrame(step);
    }
    changed("codes");
  };
}

function heading(run, save) {
  const scores = Object.entries(run.scores).map(([name, value]) =>
    make(
      "li",
      {},
      ...bothNames(run.labels, "score", name),
      " ",
      make("b", { textContent: value.toFixed(3) }),
    ),
  );
  const element = make(
    "div",
    { className: "heading" },
    make("h1", {}, ...bothNames(run.labels, "method", run.method)),
    make("p", { textContent: factsOf(run).join(" · ") }),
    save,
  );
  if (scores.length)
    element.append(
      make(
        "details",
        { className: "scores" },
        make("summary", { textContent: `${scores.length} scores` }),
        make("ul", {}, ...scores),
      ),
    );
  if (run.note) element.append(make("p", { className: "hint", textContent: run.note }));
  return element;
}

function keys() {
  const list = [
    "n, p: next, previous latent",
    "w: walk it, or stop",
    "r: back to the image’s code",
    "s: save the view",
    "arrows: move the slider or the cell that has the focus",
  ];
  return make(
    "details",
    { className: "keys" },
    make("summary", { textContent: "Keys" }),
    make("ul", {}, ...list.map((text) => make("li", { textContent: text }))),
  );
}

function saveView(run, view, panels) {
  const [method, data] = [labelOf(run.labels, "method", run.method), labelOf(run.labels, "data", run.data)];
  const title = `${method} on ${data}${run.seed === null ? "" : `, seed ${run.seed}`}`;
  const parts = panels
    .filter((panel) => panel.canvas)
    .map(({ element, canvas }) => ({ name: element.querySelector("h2").textContent, canvas }));
  savePng(stacked(title, captionOf(run, view), parts), run.name);
}

function endWith(context, changed, element) {
  const { run, view } = context;
  const pressed = (event) => {
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      event.target.matches("select, input:not([type=range]), textarea")
    )
      return;
    const at = run.order.indexOf(view.latent);
    const focus = (place) => {
      const row = element.querySelector(`[data-latent="${run.order[(place + run.latents) % run.latents]}"]`);
      if (row.closest("details")) row.closest("details").open = true;
      row.querySelector("input").focus();
    };
    const action = {
      n: () => focus(at + 1),
      p: () => focus(at - 1),
      w: () => context.walk(view.walking === view.latent ? null : view.latent),
      r: context.reset,
      s: () => element.querySelector(".heading button").click(),
    }[event.key];
    if (action) action();
  };
  const repaint = () => changed("theme");
  addEventListener("keydown", pressed);
  document.addEventListener("themechange", repaint);
  return () => {
    context.walk(null);
    view.ended = true; // the address is another view's now
    removeEventListener("keydown", pressed);
    document.removeEventListener("themechange", repaint);
  };
}
