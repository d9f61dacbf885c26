// Loss curves: a chart for each term, with a line for each run.

import { colours, sized } from "../lib/drawing.js";
import { make } from "../lib/elements.js";
import { smoothed } from "./runs.js";
import { count, short } from "./states.js";

const HEIGHT = 190;
const MARGIN = { left: 58, right: 12, top: 10, bottom: 24 };
export const MOST_LINES = 8; // as many as there are colours

export function lineColour(i) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--curve-${i}`).trim();
}

// `lines()` gives what is drawn: { key, name, curve } of each run; `options()` gives { log, smoothing }.
export function lossCharts(lines, options) {
  const element = make("div", { className: "live-charts" });
  const charts = new Map(); // by term
  const update = () => {
    const shown = lines();
    const terms = [...new Set(shown.flatMap(({ curve }) => Object.keys(curve?.terms ?? {})))];
    for (const [term, chart] of charts) {
      if (terms.includes(term)) continue;
      chart.element.remove();
      charts.delete(term);
    }
    for (const term of terms) {
      if (!charts.has(term)) charts.set(term, oneChart(term));
      element.append(charts.get(term).element); // in the order of the log
      charts.get(term).draw(shown, options());
    }
  };
  return { element, update };
}

function oneChart(term) {
  const canvas = make("canvas", { className: "wide", role: "img" });
  const values = make("p", { className: "hint live-values" });
  const element = make("figure", {}, make("h3", { textContent: term }), canvas, values);
  let drawn = null;
  const draw = (shown, { log, smoothing }) => {
    const width = Math.max(240, Math.round(element.clientWidth || 320));
    const lines = shown.map(({ name, curve }, i) => ({
      name,
      colour: lineColour(i),
      steps: curve?.steps ?? [],
      values: smoothed(curve?.terms[term] ?? [], smoothing),
    }));
    const scale = scales(lines, width, log);
    drawn = { lines, scale };
    paintChart(sized(canvas, width, HEIGHT), lines, scale, width);
    const last = lines.map((line) => `${line.name}: ${short(lastOf(line.values))}`);
    canvas.setAttribute("aria-label", `${term} over the steps. Last values: ${last.join("; ")}.`);
    values.textContent = scale.note;
  };
  canvas.onpointermove = (event) => {
    if (!drawn?.scale.unit) return;
    const box = canvas.getBoundingClientRect();
    const step = drawn.scale.stepAt(((event.clientX - box.left) / box.width) * drawn.scale.width);
    const parts = drawn.lines.flatMap((line) => {
      const i = nearest(line.steps, step);
      return i < 0 ? [] : [`${line.name} at ${count(line.steps[i])}: ${short(line.values[i])}`];
    });
    values.textContent = parts.join(" · ");
  };
  return { element, draw };
}

const lastOf = (values) => values.findLast((value) => value !== null) ?? null;

function nearest(steps, step) {
  let low = 0;
  let high = steps.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] < step) low = middle + 1;
    else high = middle;
  }
  return low > 0 && step - steps[low - 1] < steps[low] - step ? low - 1 : steps.length ? low : -1;
}

// Where steps and values are on the canvas.
function scales(lines, width, wantsLog) {
  const all = lines.flatMap(({ values }) => values.filter((value) => value !== null));
  const positive = all.filter((value) => value > 0);
  const log = wantsLog && positive.length > 0;
  const usable = log ? positive : all;
  const steps = lines.flatMap((line) => line.steps);
  const last = steps.reduce((most, step) => Math.max(most, step), 1);
  const unit = log ? Math.log10 : (value) => value;
  let low = usable.reduce((least, value) => Math.min(least, unit(value)), Number.POSITIVE_INFINITY);
  let high = usable.reduce((most, value) => Math.max(most, unit(value)), Number.NEGATIVE_INFINITY);
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const across = width - MARGIN.left - MARGIN.right;
  const up = HEIGHT - MARGIN.top - MARGIN.bottom;
  return {
    width,
    unit: usable.length ? unit : null,
    low,
    high,
    last,
    log,
    note: noteOn(wantsLog, all.length, usable.length, positive.length),
    x: (step) => MARGIN.left + (step / last) * across,
    y: (value) => MARGIN.top + (1 - (unit(value) - low) / (high - low)) * up,
    stepAt: (x) => ((x - MARGIN.left) / across) * last,
  };
}

function noteOn(wantsLog, all, usable, positive) {
  if (wantsLog && all && !positive) return "All values are negative or 0: the scale is linear.";
  return all > usable ? `${all - usable} values that are not positive are not shown on the log scale.` : "";
}

// Where lines are drawn for orientation: round numbers, on a log scale 1, 2 and 5 times powers of ten.
function levels({ low, high, log }) {
  if (!log) return ticks(low, high, 4);
  const factors = high - low > 3 ? [1] : [1, 2, 5];
  const powers = Array.from({ length: Math.ceil(high) - Math.floor(low) + 1 }, (_, i) => Math.floor(low) + i);
  const all = powers.flatMap((power) => factors.map((factor) => factor * 10 ** power));
  return all.filter((value) => Math.log10(value) >= low && Math.log10(value) <= high);
}

// Round numbers between two limits, about as many as asked for.
function ticks(low, high, about) {
  const rough = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const unit = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const first = Math.ceil(low / unit) * unit;
  return Array.from({ length: Math.floor((high - first) / unit + 1e-9) + 1 }, (_, i) => first + i * unit);
}

function paintChart(pen, lines, scale, width) {
  const { dim, line: faint } = colours();
  pen.font = "12px system-ui, sans-serif";
  if (!scale.unit) {
    pen.fillStyle = dim;
    pen.fillText("no values yet", MARGIN.left, HEIGHT / 2);
    return;
  }
  pen.textAlign = "right";
  for (const value of levels(scale)) {
    const y = scale.y(value);
    pen.fillStyle = faint;
    pen.fillRect(MARGIN.left, y, width - MARGIN.left - MARGIN.right, 1);
    pen.fillStyle = dim;
    pen.fillText(short(value), MARGIN.left - 6, y);
  }
  pen.textAlign = "center";
  for (const step of ticks(0, scale.last, width < 500 ? 3 : 5)) {
    pen.fillStyle = dim;
    pen.fillText(count(step), Math.min(scale.x(step), width - 24), HEIGHT - 10);
  }
  pen.fillStyle = dim;
  pen.textAlign = "right";
  pen.fillText("step", MARGIN.left - 14, HEIGHT - 10);
  pen.lineWidth = 1.6;
  pen.lineJoin = "round";
  for (const { colour, steps, values } of lines) paintLine(pen, colour, steps, values, scale);
}

function paintLine(pen, colour, steps, values, scale) {
  pen.strokeStyle = colour;
  pen.beginPath();
  let begun = false;
  values.forEach((value, i) => {
    const usable = value !== null && (!scale.log || value > 0);
    if (usable && begun) pen.lineTo(scale.x(steps[i]), scale.y(value));
    else if (usable) pen.moveTo(scale.x(steps[i]), scale.y(value));
    begun = usable;
  });
  pen.stroke();
  const i = values.findLastIndex((value) => value !== null);
  if (i < 0 || (scale.log && values[i] <= 0)) return;
  pen.fillStyle = colour;
  pen.beginPath();
  pen.arc(scale.x(steps[i]), scale.y(values[i]), 2.5, 0, 2 * Math.PI);
  pen.fill();
}
