// The study page: all runs in three plots that share filters, a brush and the run under the pointer.
//
// All runs are read once; filters and drawing happen here, so that the page answers at once. What is chosen is
// kept in `state`: x, y, against and group (axes), colour, only (words that stay), ranges (numbers that stay),
// brush (a rectangle in one plot), pins (up to two run ids) and lowest (whether the list starts there).

import {
  LEGEND_HEIGHT, canvasPen, drawLegend, drawOver, drawPlot, inRectangle, layOut, lookOf, nearest, neighbour,
  numberAxis, rectanglePixels, rectangleValues, shortNumber, svgPen, themeOf, wordAxis,
} from "./plots.js";

const WORDS = { data: "data set", method: "method", setting: "setting", source: "source" };
const LISTED = 20; // runs in the list below the plots
const HOVER_WAIT = 150; // milliseconds before a traversal is asked for
const WIDE = 960; // pixels from which on the filters stand beside the plots
const MOST_COLOURED = 40; // words that colours can stand for; colours and shapes repeat after 64
const DRAG = 4; // pixels that make a drag of a click
const HELP = "Drag over a plot to mark runs in all of them. Click a run to open it, shift-click to pin it; " +
  "on the keyboard: arrows, Enter, P, and Escape to unmark.";
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

let leave = null; // ends the listeners of the view before

export async function showStudy(root, state, setState, openRun) {
  leave?.abort();
  leave = new AbortController();
  const { signal } = leave;
  root.replaceChildren(make("p", { role: "status" }, "Reading the runs of the study…"));
  let study;
  try {
    study = await readStudy();
  } catch (error) {
    if (!signal.aborted) root.replaceChildren(make("p", { role: "alert" }, error.message));
    return;
  }
  if (signal.aborted) return;
  const view = { root, study, openRun, signal, state: startingState(study, state), current: -1 };
  view.change = (partial) => {
    Object.assign(view.state, partial);
    setState(partial);
    redrawSoon(view);
  };
  build(view);
  new ResizeObserver(() => (signal.aborted ? null : redrawSoon(view))).observe(view.plots[0].box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redrawSoon(view), { signal });
  redraw(view);
}

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (typeof value === "boolean") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// ---- the runs ---------------------------------------------------------------------------------------------

async function readStudy() {
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
    ...record, numbers, scoreNames: Object.keys(record.scores), settingNames: Object.keys(record.settings),
    order: shuffled(record.runs), rowOf: new Map(record.id.map((id, row) => [id, row])),
  };
}

// Runs are drawn in an order that has nothing to do with their methods, or the last method would hide the others.
function shuffled(count) {
  const key = (row) => Math.imul(row + 1, 0x9e3779b1) >>> 0;
  return Uint32Array.from({ length: count }, (_, row) => row).sort((a, b) => key(a) - key(b));
}

// What the address says, as far as this study has it; the rest is chosen so that there is something to see.
function startingState(study, state) {
  const family = (name) => name.split(".")[0];
  const scores = study.scoreNames;
  const fractions = scores.filter((name) => study.numbers[name].every((value) => !(value < 0 || value > 1)));
  const first = fractions[0] ?? scores[0];
  const other = [...fractions, ...scores].find((name) => family(name) !== family(first)) ?? first;
  const wordNames = Object.keys(WORDS);
  const known = (name, names, otherwise) => (names.includes(name) ? name : otherwise);
  const all = [...scores, ...study.settingNames];
  const { brush } = state;
  const rightBrush = [0, 1, 2].includes(brush?.plot) && [brush.x, brush.y].every((ends) => isPair(ends, Number.isFinite));
  const ranges = Object.entries(state.ranges ?? {}).filter(
    ([name, ends]) => all.includes(name) && isPair(ends, (end) => end === null || Number.isFinite(end)),
  );
  return {
    x: known(state.x, all, other),
    y: known(state.y, all, first),
    against: known(state.against, study.settingNames, "strength"),
    group: known(state.group, [...wordNames, "seed"], "method"),
    colour: known(state.colour, wordNames, "method"),
    only: knownWords(study, state.only ?? {}),
    ranges: Object.fromEntries(ranges),
    brush: rightBrush ? brush : null,
    pins: [state.pins ?? []].flat().filter((id) => study.rowOf.has(id)).slice(0, 2),
    lowest: state.lowest === true,
  };
}

const isPair = (given, isRight) => Array.isArray(given) && given.length === 2 && given.every(isRight);

function knownWords(study, only) {
  const lists = Object.keys(WORDS).filter((name) => Array.isArray(only[name])).map((name) => {
    return [name, only[name].filter((each) => study.words[name].names.includes(each))];
  });
  return Object.fromEntries(lists.filter(([name, kept]) => kept.length || !only[name].length));
}

function shownRuns(study, { only, ranges }) {
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

const word = (study, name, row) => study.words[name].names[study.words[name].codes[row]];

function described(study, row) {
  const setting = word(study, "setting", row);
  const parts = [`${word(study, "method", row)} on ${word(study, "data", row)}`, setting, `seed ${study.numbers.seed[row]}`];
  return parts.filter(Boolean).join(", ");
}

// ---- the page ---------------------------------------------------------------------------------------------

function build(view) {
  const { study, state } = view;
  const scores = [...study.scoreNames, ...study.settingNames];
  const words = Object.keys(WORDS).filter((name) => name in { data: 1, method: 1 } || study.words[name].names.length > 1);
  const axis = (key, label, names) => make("label", {}, label, choice(names, state[key], (value) => {
    view.change({ [key]: value, brush: key === "colour" ? state.brush : null });
  }));
  view.status = make("p", { role: "status", "aria-live": "polite" });
  view.told = make("p", { class: "study-told study-dim", role: "status", "aria-live": "polite" });
  view.legend = make("ul", { class: "study-legend", "aria-label": "What colours and shapes stand for" });
  view.list = make("div", { class: "study-scroll" });
  view.pair = make("section", { class: "study-pair", "aria-label": "Comparison of two runs" });
  view.card = make("div", { class: "study-card", hidden: true });
  view.rangeList = make("div");
  view.plots = [0, 1, 2].map((place) => buildPlot(view, place));
  const axes = make("div", { class: "study-axes", role: "group", "aria-label": "What the plots show" },
    axis("y", "up", scores), axis("x", "across", scores), axis("against", "setting", study.settingNames),
    axis("group", "groups", [...words, "seed"]),
    axis("colour", "colour", words.filter((name) => study.words[name].names.length <= MOST_COLOURED)),
    make("button", { type: "button", click: () => savePng(view) }, "Save PNG"),
    make("button", { type: "button", click: () => saveSvg(view) }, "Save SVG"));
  const notes = make("details", {}, make("summary", {}, `${study.notes.length} notes on missing scores`),
    ...study.notes.map((note) => make("p", { class: "study-dim" }, note)));
  view.root.replaceChildren(make("div", { class: "study" },
    make("details", { open: innerWidth > WIDE }, make("summary", {}, "Filters"),
      make("form", { "aria-label": "Filters", submit: (event) => event.preventDefault() }, ...buildFilters(view, words))),
    make("div", {}, axes, view.legend, view.status, view.told,
      make("div", { class: "study-plots" }, ...view.plots.map((plot) => plot.box)),
      make("p", { class: "study-dim" }, HELP),
      view.pair, view.list, ...(study.notes.length ? [notes] : [])),
    view.card));
}

function choice(names, chosen, changed, more = {}) {
  const options = names.map((name) => make("option", { value: name, selected: name === chosen }, WORDS[name] ?? name));
  return make("select", { ...more, change: (event) => changed(event.target.value) }, ...options);
}

function buildFilters(view, words) {
  const { study, state } = view;
  const only = (name, kept) => {
    const rest = Object.fromEntries(Object.entries(state.only).filter(([other]) => other !== name));
    view.change({ only: kept.length < study.words[name].names.length ? { ...rest, [name]: kept } : rest });
  };
  const boxes = (name) => {
    const inputs = study.words[name].names.map((each) => make("input", {
      type: "checkbox", value: each, checked: state.only[name]?.includes(each) ?? true,
      change: () => only(name, inputs.filter((input) => input.checked).map((input) => input.value)),
    }));
    const labels = inputs.map((input) => make("label", {}, input, input.value));
    return make("fieldset", { "data-filter": name }, make("legend", {}, WORDS[name]), ...labels);
  };
  const settings = study.words.setting.names.map((each) => make("option", { value: each, title: each, selected: state.only.setting?.includes(each) ?? false }, each));
  const settingList = make("select", {
    multiple: true, size: String(Math.min(settings.length, 6)), "aria-label": "settings; none chosen means all",
    change: (event) => {
      const kept = [...event.target.selectedOptions].map((option) => option.value);
      only("setting", kept.length ? kept : study.words.setting.names);
    },
  }, ...settings);
  const free = () => study.scoreNames.concat(study.settingNames).filter((name) => name !== "seed" && !(name in state.ranges));
  const adder = make("label", {}, "add", choice(["", ...free()], "", (name) => {
    if (name) view.change({ ranges: { ...state.ranges, [name]: [null, null] } });
    showRanges(view);
  }, { "data-add": "range" }));
  view.rangeNames = free;
  view.rangeAdder = adder.lastElementChild;
  showRanges(view);
  return [
    ...words.filter((name) => name !== "setting").map(boxes),
    make("fieldset", { "data-filter": "setting" }, make("legend", {}, "setting"), settingList),
    make("fieldset", { "data-filter": "seed" }, make("legend", {}, "seed"), rangeInputs(view, "seed")),
    make("fieldset", { "data-filter": "ranges" }, make("legend", {}, "ranges of scores"), view.rangeList, adder),
    make("button", { type: "button", click: () => {
      view.change({ only: {}, ranges: {}, brush: null });
      build(view);
      redraw(view);
    } }, "Show all runs"),
  ];
}

function showRanges(view) {
  const names = Object.keys(view.state.ranges).filter((name) => name !== "seed");
  view.rangeList.replaceChildren(...names.map((name) => rangeInputs(view, name, () => {
    const { [name]: _, ...rest } = view.state.ranges;
    view.change({ ranges: rest });
    showRanges(view);
  })));
  view.rangeAdder.replaceChildren(...["", ...view.rangeNames()].map((name) => make("option", { value: name }, name || "choose…")));
}

const valueOrNone = (input) => (input.value === "" ? null : Number(input.value));

function rangeInputs(view, name, remove = null) {
  const values = view.study.numbers[name].filter(Number.isFinite);
  const ends = [values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), -Infinity)];
  const given = view.state.ranges[name] ?? [null, null];
  const inputs = ["from", "to"].map((end, k) => make("input", {
    type: "number", step: "any", placeholder: shortNumber(ends[k]), "aria-label": `${name} ${end}`,
    value: given[k] === null ? "" : String(given[k]),
    input: () => view.change({ ranges: { ...view.state.ranges, [name]: inputs.map(valueOrNone) } }),
  }));
  const button = remove ? [make("button", { type: "button", "aria-label": `remove the range of ${name}`, click: remove }, "×")] : [];
  return make("div", { class: "study-range" }, ...(remove ? [make("span", {}, name)] : []), ...inputs, ...button);
}

// ---- drawing ----------------------------------------------------------------------------------------------

function redrawSoon(view) {
  view.waiting ??= requestAnimationFrame(() => {
    view.waiting = null;
    if (!view.signal.aborted) redraw(view);
  });
}

function axisOf(study, name, shown) {
  const isSetting = study.settingNames.includes(name);
  return numberAxis(name, study.numbers[name], shown, { log: isSetting && name !== "seed", jitter: isSetting ? 5 : 0 });
}

function redraw(view) {
  const { study, state } = view;
  if (!view.plots[0].box.clientWidth) return; // not in the page yet: it is drawn when it has a size
  const shown = shownRuns(study, state);
  const theme = themeOf(view.root);
  const { names, codes } = study.words[state.colour];
  const looks = names.map((_, place) => lookOf(place, theme));
  const up = axisOf(study, state.y, shown);
  const group = state.group === "seed" ? axisOf(study, "seed", shown) : wordAxis(WORDS[state.group], study.words[state.group], shown);
  [axisOf(study, state.x, shown), axisOf(study, state.against, shown), group].forEach((across, place) => {
    const { box } = view.plots[place];
    view.plots[place].layout = layOut(box.clientWidth, box.clientHeight, across, up, shown);
  });
  const brushed = state.brush && view.plots[state.brush.plot].layout;
  const lit = brushed ? inRectangle(brushed, rectanglePixels(brushed, state.brush)) : null;
  Object.assign(view, { shown, lit, theme, drawing: { looks, names, codes, order: study.order, lit, theme } });
  for (const { canvas, layout } of view.plots) drawPlot(canvasPen(canvas, layout.width, layout.height, theme.paper), layout, view.drawing);
  drawAllOver(view);
  showWords(view);
}

function over(view, place) {
  const { state, study, theme } = view;
  const { layout } = view.plots[place];
  const rings = [...state.pins.map((id) => study.rowOf.get(id)), ...(view.current >= 0 ? [view.current] : [])];
  const rectangle = state.brush?.plot === place ? rectanglePixels(layout, state.brush) : null;
  return { rings, rectangle, theme };
}

function drawAllOver(view) {
  view.plots.forEach(({ above, layout }, place) => drawOver(canvasPen(above, layout.width, layout.height, null), layout, over(view, place)));
}

// Everything that is not a plot: how many runs there are, the legend, the list and the comparison.
function showWords(view) {
  const { study, state, shown, lit, drawing } = view;
  const count = (mask) => mask.reduce((sum, is) => sum + is, 0);
  const marked = lit ? `, ${count(lit).toLocaleString("en")} of them marked` : "";
  view.status.textContent = `${count(shown).toLocaleString("en")} of ${study.runs.toLocaleString("en")} runs${marked}`;
  view.legend.replaceChildren(...drawing.names.map((name, place) => make("li", {}, swatch(drawing.looks[place]), name)));
  view.plots.forEach(({ canvas, layout }) => {
    canvas.setAttribute("aria-label", `${layout.y.name} against ${layout.x.name}, one mark a run. ${HELP}`);
  });
  keepFocus(view.list, () => showList(view));
  keepFocus(view.pair, () => showPair(view));
}

// Make the contents of an element anew; a button that had the focus and is there again has it again.
function keepFocus(element, makeAnew) {
  const key = element.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  makeAnew();
  if (key) element.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

function swatch({ colour, shape }) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  for (const [name, value] of Object.entries({ width: 14, height: 14, viewBox: "-5 -5 10 10", "aria-hidden": "true" })) svg.setAttribute(name, value);
  path.setAttribute("d", shape);
  path.setAttribute("fill", colour);
  svg.append(path);
  return svg;
}

function showList(view) {
  const { study, state } = view;
  const values = study.numbers[state.y];
  const rows = [];
  (view.lit ?? view.shown).forEach((is, row) => is && Number.isFinite(values[row]) && rows.push(row));
  rows.sort((a, b) => (state.lowest ? values[a] - values[b] : values[b] - values[a]) || a - b);
  const button = make("button", { type: "button", "data-key": "order", click: () => view.change({ lowest: !state.lowest }) }, state.lowest ? "Show the highest" : "Show the lowest");
  const head = ["run", ...Object.values(WORDS).slice(0, 3), "seed", ...new Set([state.y, state.x])];
  const lines = rows.slice(0, LISTED).map((row) => make("tr", {},
    make("td", {}, openButton(view, row), " ", pinButton(view, row)),
    ...["data", "method", "setting"].map((name) => make("td", { class: `study-${name}` }, word(study, name, row))),
    make("td", {}, String(study.numbers.seed[row])),
    ...[...new Set([state.y, state.x])].map((name) => make("td", {}, shortNumber(study.numbers[name][row])))));
  const which = `The ${state.lowest ? "lowest" : "highest"} ${state.y} of the ${view.lit ? "marked" : "shown"} runs`;
  view.list.replaceChildren(make("h3", {}, which), button, make("table", { "aria-label": which },
    make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))), make("tbody", {}, ...lines)));
}

function openButton(view, row) {
  const here = view.study.here[row] === 1;
  const label = here ? `open ${described(view.study, row)}` : "the folder of this run is not here";
  return make("button", { type: "button", disabled: !here, "aria-label": label, "data-key": `open ${view.study.id[row]}`, click: () => view.openRun(view.study.id[row]) }, "open");
}

function pinButton(view, row) {
  const pinned = view.state.pins.includes(view.study.id[row]);
  const label = `${pinned ? "unpin" : "pin"} ${described(view.study, row)}`;
  return make("button", { type: "button", "aria-label": label, "data-key": `pin ${view.study.id[row]}`, click: () => pin(view, row) }, pinned ? "unpin" : "pin");
}

// Pin a run, or take its pin away; a third pin takes the place of the first.
function pin(view, row) {
  const id = view.study.id[row];
  const { pins } = view.state;
  view.change({ pins: pins.includes(id) ? pins.filter((each) => each !== id) : [...pins, id].slice(-2) });
}

// ---- two runs side by side --------------------------------------------------------------------------------

function showPair(view) {
  const { study, state } = view;
  const key = state.pins.join(" ");
  if (view.paired === key && view.pair.childElementCount) return;
  view.paired = key;
  const rows = state.pins.map((id) => study.rowOf.get(id));
  if (!rows.length) return view.pair.replaceChildren(make("p", { class: "study-dim" }, "Pin two runs to compare them."));
  const heads = ["", ...rows.map((_, k) => `run ${k + 1}`), ...(rows.length === 2 ? ["difference"] : [])];
  const line = (name, cells) => make("tr", {}, make("th", { scope: "row" }, name),
    ...heads.slice(1).map((_, k) => make("td", {}, cells[k] ?? "")));
  const difference = (values) => (values.length === 2 ? [shortNumber(values[1] - values[0])] : []);
  const numbers = (names) => names.map((name) => [name, rows.map((row) => study.numbers[name][row])])
    .filter(([, values]) => values.some(Number.isFinite))
    .map(([name, values]) => line(name, [...values.map(shortNumber), ...difference(values)]));
  view.pair.replaceChildren(make("h3", {}, rows.length === 2 ? "Two runs" : "One run is pinned: pin another to compare"),
    make("div", { class: "study-scroll" }, make("table", {},
      make("thead", {}, make("tr", {}, ...heads.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {},
        line("", rows.map((row) => make("span", {}, openButton(view, row), " ", pinButton(view, row)))),
        line("traversals", rows.map((row) => traversal(view, row))),
        line("id", rows.map((row) => study.id[row])),
        ...Object.keys(WORDS).map((name) => line(WORDS[name], rows.map((row) => word(study, name, row)))),
        ...numbers(study.settingNames), ...numbers(study.scoreNames)))));
}

function traversal(view, row) {
  if (!view.study.here[row]) return make("span", { class: "study-dim" }, "no picture");
  const picture = make("img", {
    src: `/api/run/${encodeURIComponent(view.study.id[row])}/traversal`, alt: `traversals of ${described(view.study, row)}`,
    error: () => picture.replaceWith(make("span", { class: "study-dim" }, "no picture")),
  });
  return picture;
}

// ---- pointer and keys -------------------------------------------------------------------------------------

function buildPlot(view, place) {
  const canvas = make("canvas", { tabindex: "0", role: "application" });
  const above = make("canvas", { "aria-hidden": "true" });
  const plot = { canvas, above, box: make("div", { class: "study-plot" }, canvas, above), layout: null };
  let start = null;
  let moved = false;
  const at = (event) => [event.offsetX, event.offsetY];
  const brush = (event) => ({ plot: place, ...rectangleValues(plot.layout, rectangleFrom(plot.layout.frame, start, at(event))) });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    [start, moved] = [at(event), false];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!plot.layout) return;
    const [x, y] = at(event);
    if (!start) {
      point(view, nearest(plot.layout, x, y), event);
      return;
    }
    moved ||= Math.hypot(x - start[0], y - start[1]) >= DRAG;
    if (!moved) return;
    point(view, -1, event);
    view.state.brush = brush(event); // the address is written when the rectangle is done
    redrawSoon(view);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (start && moved) view.change({ brush: brush(event) });
    else if (start) clicked(view, nearest(plot.layout, ...at(event)), event);
    start = null;
  });
  canvas.addEventListener("pointercancel", () => {
    start = null;
  });
  canvas.addEventListener("pointerleave", (event) => point(view, -1, event));
  canvas.addEventListener("blur", (event) => point(view, -1, event));
  canvas.addEventListener("keydown", (event) => pressed(view, plot, event));
  return plot;
}

function rectangleFrom({ left, right, top, bottom }, [x0, y0], [x1, y1]) {
  const inside = (value, low, high) => Math.min(Math.max(value, low), high);
  const [across, along] = [[x0, x1].map((x) => inside(x, left, right)), [y0, y1].map((y) => inside(y, top, bottom))];
  return [Math.min(...across), Math.min(...along), Math.max(...across), Math.max(...along)];
}

function clicked(view, row, event) {
  if (row < 0) {
    if (view.state.brush) view.change({ brush: null });
  } else if (event.shiftKey) pin(view, row);
  else if (event.pointerType === "touch" && view.tapped !== row) {
    view.tapped = row; // a finger cannot hover: the first tap shows the run, the second opens it
    point(view, row, event);
  } else if (view.study.here[row]) view.openRun(view.study.id[row]);
}

function pressed(view, plot, event) {
  const { layout } = plot;
  if (event.key in ARROWS) {
    const first = layout.placed.indexOf(1);
    const row = view.current >= 0 && layout.placed[view.current] ? neighbour(layout, view.current, ...ARROWS[event.key]) : first;
    const box = plot.canvas.getBoundingClientRect();
    if (row >= 0) {
      point(view, row, { clientX: box.left + layout.across[row], clientY: box.top + layout.along[row] });
      const value = shortNumber(view.study.numbers[view.state.y][row]);
      view.told.textContent = `${described(view.study, row)}: ${layout.y.name} ${value}`;
    }
  } else if (event.key === "Enter" && view.current >= 0 && view.study.here[view.current]) view.openRun(view.study.id[view.current]);
  else if (event.key.toLowerCase() === "p" && view.current >= 0) pin(view, view.current);
  else if (event.key === "Escape") view.change({ brush: null });
  else return;
  event.preventDefault();
}

// Make a run the current one: a ring in each plot, and a card beside the pointer; -1 for none.
function point(view, row, { clientX, clientY }) {
  const { study, state, card } = view;
  if (row !== view.current) {
    view.current = row;
    clearTimeout(view.hoverTimer);
    drawAllOver(view);
    card.hidden = row < 0;
    if (row < 0) return;
    const numbers = [...new Set([state.y, state.x])].map((name) => `${name} ${shortNumber(study.numbers[name][row])}`);
    card.replaceChildren(make("p", {}, make("strong", {}, described(study, row))), make("p", {}, numbers.join(", ")),
      make("p", { class: "study-dim" }, study.id[row]));
    if (study.here[row]) view.hoverTimer = setTimeout(() => card.append(traversal(view, row)), HOVER_WAIT);
  }
  if (row < 0) return;
  card.style.left = `${Math.max(8, Math.min(clientX + 16, innerWidth - 370))}px`;
  card.style.top = clientY < innerHeight / 2 ? `${clientY + 16}px` : "auto";
  card.style.bottom = clientY < innerHeight / 2 ? "auto" : `${innerHeight - clientY + 16}px`;
}

// ---- files ------------------------------------------------------------------------------------------------

function sheetSize(view) {
  const boxes = view.plots.map(({ box }) => [box.offsetLeft, box.offsetTop]);
  const origin = [Math.min(...boxes.map((each) => each[0])), Math.min(...boxes.map((each) => each[1])) - LEGEND_HEIGHT];
  const places = boxes.map(([left, top]) => [left - origin[0], top - origin[1]]);
  const ends = view.plots.map(({ layout }, k) => [places[k][0] + layout.width, places[k][1] + layout.height]);
  return { places, width: Math.max(...ends.map((end) => end[0])), height: Math.max(...ends.map((end) => end[1])) };
}

function savePng(view) {
  const { places, width, height } = sheetSize(view);
  const canvas = document.createElement("canvas");
  drawLegend(canvasPen(canvas, width, height, view.theme.paper), view.drawing.names, view.drawing.looks, view.theme);
  const context = canvas.getContext("2d");
  view.plots.forEach(({ canvas: below, above, layout }, k) => {
    for (const layer of [below, above]) context.drawImage(layer, ...places[k], layout.width, layout.height);
  });
  canvas.toBlob((blob) => download(blob, "study.png"));
}

function saveSvg(view) {
  const { places, width, height } = sheetSize(view);
  const pens = [...view.plots.map(() => svgPen()), svgPen()];
  view.plots.forEach(({ layout }, k) => {
    drawPlot(pens[k], layout, view.drawing);
    drawOver(pens[k], layout, over(view, k));
  });
  drawLegend(pens[3], view.drawing.names, view.drawing.looks, view.theme);
  const groups = pens.map((pen, k) => `<g transform="translate(${(places[k] ?? [0, 0]).join(" ")})">${pen.finish()}</g>`);
  const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="12">`;
  const text = `${head}<rect width="100%" height="100%" fill="${view.theme.paper}"/>${groups.join("\n")}</svg>`;
  download(new Blob([text], { type: "image/svg+xml" }), "study.svg");
}

function download(blob, name) {
  const address = URL.createObjectURL(blob);
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
