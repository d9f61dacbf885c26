// Axes of the plots: over numbers, over words, and one with the setting of each method.

import { labelOf } from "../lib/names.js";

export const OWN_SETTING = "setting of each method";

// An axis over numbers: the limits hold all shown values, and a little more.
export function numberAxis(name, values, shown, { log = false, jitter = 0 } = {}) {
  let low = Infinity;
  let high = -Infinity;
  for (let i = 0; i < values.length; i++) {
    if (shown[i] && Number.isFinite(values[i])) {
      if (values[i] < low) low = values[i];
      if (values[i] > high) high = values[i];
    }
  }
  if (low > high) [low, high] = [0, 1];
  const logarithmic = log && low > 0 && high / low >= 10;
  const ends = logarithmic ? [Math.log(low), Math.log(high)] : [low, high];
  const room = ends[1] > ends[0] ? 0.05 * (ends[1] - ends[0]) : 0.05 * (Math.abs(ends[0]) || 1);
  const axis = { name, values, jitter, log: logarithmic, low: ends[0] - room, high: ends[1] + room };
  axis.ticks = logarithmic ? logTicks(low, high) : roundTicks(axis.low, axis.high);
  return axis;
}

// An axis over words: the places 0, 1, ... of those that shown runs have.
export function wordAxis(name, words, shown) {
  const seen = new Uint8Array(words.names.length);
  words.codes.forEach((code, i) => {
    seen[code] |= shown[i];
  });
  const kept = words.names.filter((_, code) => seen[code]);
  const placeOf = words.names.map((word) => (kept.includes(word) ? kept.indexOf(word) : NaN));
  const values = Float64Array.from(words.codes, (code) => placeOf[code]);
  const ticks = kept.map((word, place) => [place, word]);
  return { name, values, jitter: 0.3, words: true, low: -0.5, high: Math.max(kept.length, 1) - 0.5, ticks };
}

function roundTicks(low, high, wanted = 5) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((step) => step * power).find((step) => step >= rough);
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) ticks.push([k * step, shortNumber(k * step)]);
  return ticks;
}

function logTicks(low, high) {
  const decades = Math.log10(high / low);
  const [steps, every] = decades <= 3 ? [[1, 2, 5], 1] : [[1], Math.ceil(decades / 8)];
  const first = Math.floor(Math.log10(low));
  const ticks = [];
  for (let power = Math.ceil(first / every) * every; power <= Math.log10(high); power += every) {
    for (const factor of steps) {
      const value = factor * 10 ** power;
      const text = value < 1e-3 ? value.toExponential(0).replace("-", "−") : shortNumber(value);
      if (value >= low * 0.99 && value <= high * 1.01) ticks.push([value, text]);
    }
  }
  return ticks;
}

export function shortNumber(value, digits = 4) {
  if (!Number.isFinite(value)) return "–";
  return String(Number(value.toPrecision(digits))).replace("-", "−");
}

// The axis of a plot over settings: the values of each method's own setting next to each other, a gap between methods.
export function settingAxis(study, shown) {
  const { names, codes } = study.words.method;
  const { strength } = study.numbers;
  const values = new Float64Array(study.runs).fill(NaN);
  const [ticks, groups] = [[], []];
  let place = 0;
  names.forEach((method, code) => {
    const rows = [...codes.keys()].filter((row) => codes[row] === code);
    const kept = [...new Set(rows.filter((row) => shown[row]).map((row) => strength[row]))];
    if (!kept.length) return;
    kept.sort((a, b) => a - b || Number.isNaN(a) - Number.isNaN(b));
    const label = labelOf(study.labels, "method", method);
    groups.push({
      from: place,
      to: place + kept.length - 1,
      method: label,
      setting: study.strengths[method],
    });
    const placeOf = new Map(kept.map((value, k) => [value, place + k]));
    for (const row of rows) values[row] = placeOf.get(strength[row]) ?? NaN;
    ticks.push(...kept.map((value, k) => [place + k, shortNumber(value)]));
    place += kept.length + 1;
  });
  const high = Math.max(place - 1, 1) - 0.5;
  return { name: OWN_SETTING, values, jitter: 0.3, words: true, groups, low: -0.5, high, ticks };
}
