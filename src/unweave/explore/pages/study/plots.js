// Plots of many runs: one mark a run, drawn on a canvas, because thousands of elements would make a page slow.
//
// Colours are those of Okabe and Ito (2008); each goes with a shape of its own.

const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#56B4E9", "#D55E00", "#CC79A7", "ink", "#B5A900"];
const SHAPES = [
  "M3 0A3 3 0 1 1 -3 0A3 3 0 1 1 3 0Z",
  "M-2.7 -2.7H2.7V2.7H-2.7Z",
  "M0 -3.4L3.2 2.4H-3.2Z",
  "M0 3.4L3.2 -2.4H-3.2Z",
  "M0 -3.8L3.8 0L0 3.8L-3.8 0Z",
  "M-1.2 -3.5H1.2V-1.2H3.5V1.2H1.2V3.5H-1.2V1.2H-3.5V-1.2H-1.2Z",
  "M-3.3 -1.7L-1.7 -3.3L0 -1.6L1.7 -3.3L3.3 -1.7L1.6 0L3.3 1.7L1.7 3.3L0 1.6L-1.7 3.3L-3.3 1.7L-1.6 0Z",
  "M0 -4L1.1 -1.4L3.9 -1.2L1.8 0.6L2.4 3.4L0 1.9L-2.4 3.4L-1.8 0.6L-3.9 -1.2L-1.1 -1.4Z",
];

const FEW = 400; // so many marks or fewer are drawn larger and darker
const NEAR = 9; // pixels within which the pointer finds a mark

// The colours of the page now; plots are drawn again when the page turns dark.
export function themeOf(element) {
  const style = getComputedStyle(element);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const found = (name, light, other) => style.getPropertyValue(name).trim() || (dark ? other : light);
  return {
    ink: found("--ink", "#1c1c20", "#e9e9ee"),
    dim: found("--dim", "#5d5d66", "#a5a5b0"),
    line: found("--line", "#d9d9de", "#3a3a42"),
    paper: found("--paper", "#ffffff", "#17171a"),
    faint: dark ? "#4b4b55" : "#c9c9d0",
  };
}

export function lookOf(place, theme) {
  const colour = COLOURS[place % COLOURS.length];
  return {
    colour: colour === "ink" ? theme.ink : colour,
    shape: SHAPES[(place + Math.floor(place / 8)) % 8],
  };
}

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
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
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
    for (const each of steps) {
      const value = each * 10 ** power;
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

// A number in [-1, 1) for a run, always the same one: marks on the same value are drawn side by side.
function shift(row) {
  return (Math.imul(row + 1, 0x9e3779b1) >>> 0) / 2 ** 31 - 1;
}

function positions(axis, from, to) {
  const scale = (to - from) / (axis.high - axis.low);
  const spread = axis.words ? axis.jitter * Math.abs(scale) : axis.jitter;
  const places = new Float32Array(axis.values.length);
  for (let i = 0; i < places.length; i++) {
    const value = axis.log ? Math.log(axis.values[i]) : axis.values[i];
    places[i] = from + (value - axis.low) * scale + (spread ? spread * shift(i) : 0);
  }
  return places;
}

function positionOf(axis, value, from, to) {
  return from + (((axis.log ? Math.log(value) : value) - axis.low) * (to - from)) / (axis.high - axis.low);
}

function valueAt(axis, place, from, to) {
  const value = axis.low + ((place - from) * (axis.high - axis.low)) / (to - from);
  return axis.log ? Math.exp(value) : value;
}

// Where everything is: the frame in pixels, and the place of each run that is shown and has both values.
export function layOut(width, height, x, y, shown) {
  const widest = Math.max(...x.ticks.map((tick) => tick[1].length)) * 7;
  const room = (width - 70) / Math.max(x.ticks.length, 1);
  const slanted = Boolean(x.words) && widest > room;
  const frame = { left: 54, right: width - 10, top: 10, bottom: height - (slanted ? 92 : 40), slanted };
  const across = positions(x, frame.left, frame.right);
  const along = positions(y, frame.bottom, frame.top);
  const placed = new Uint8Array(shown.length);
  for (let i = 0; i < placed.length; i++) {
    placed[i] = shown[i] && !Number.isNaN(across[i]) && !Number.isNaN(along[i]) ? 1 : 0;
  }
  return { width, height, x, y, frame, across, along, placed };
}

export function nearest(layout, x, y) {
  let best = -1;
  let least = NEAR * NEAR;
  for (let i = 0; i < layout.placed.length; i++) {
    if (!layout.placed[i]) continue;
    const distance = (layout.across[i] - x) ** 2 + (layout.along[i] - y) ** 2;
    if (distance < least) [best, least] = [i, distance];
  }
  return best;
}

// The next run from a run in a direction (dx, dy), for the arrow keys: near, and not far to the side.
export function neighbour(layout, from, dx, dy) {
  let best = from;
  let least = Infinity;
  for (let i = 0; i < layout.placed.length; i++) {
    if (!layout.placed[i] || i === from) continue;
    const [x, y] = [layout.across[i] - layout.across[from], layout.along[i] - layout.along[from]];
    const ahead = x * dx + y * dy;
    const cost = ahead + 3 * Math.abs(x * dy - y * dx);
    if (ahead > 0 && cost < least) [best, least] = [i, cost];
  }
  return best;
}

// A rectangle of pixels as values, which stay right when the window changes its size; and back.
export function rectangleValues({ x, y, frame }, [x0, y0, x1, y1]) {
  const across = [x0, x1].map((place) => valueAt(x, place, frame.left, frame.right));
  const along = [y0, y1].map((place) => valueAt(y, place, frame.bottom, frame.top));
  const sorted = (pair) => pair.sort((a, b) => a - b).map((value) => Number(value.toPrecision(5)));
  return { x: sorted(across), y: sorted(along) };
}

export function rectanglePixels({ x, y, frame }, values) {
  const [x0, x1] = values.x.map((value) => positionOf(x, value, frame.left, frame.right));
  const [y1, y0] = values.y.map((value) => positionOf(y, value, frame.bottom, frame.top));
  return [x0, y0, x1, y1];
}

export function inRectangle(layout, [x0, y0, x1, y1]) {
  const inside = new Uint8Array(layout.placed.length);
  for (let i = 0; i < inside.length; i++) {
    const [x, y] = [layout.across[i], layout.along[i]];
    inside[i] = layout.placed[i] && x >= x0 && x <= x1 && y >= y0 && y <= y1 ? 1 : 0;
  }
  return inside;
}

// Draw the runs; those that are not lit, if any are, are faint. Medians are of the shown runs of each word.
export function drawPlot(pen, layout, { looks, codes, order, lit, theme }) {
  drawAxes(pen, layout, theme);
  const count = layout.placed.reduce((sum, is) => sum + is, 0);
  const size = count <= FEW ? 1.4 : 1;
  const faint = { colour: theme.faint, shape: SHAPES[0] };
  pen.marks((stampOf) => {
    for (const bright of lit ? [false, true] : [true]) {
      const stamps = bright ? looks.map((look) => stampOf(look, size, 0.75)) : [stampOf(faint, 0.7, 0.5)];
      for (const i of order) {
        if (!layout.placed[i] || (lit && Boolean(lit[i]) !== bright)) continue;
        stamps[bright ? codes[i] : 0](layout.across[i], layout.along[i]);
      }
    }
  });
  if (layout.x.words) drawMedians(pen, layout, theme);
}

// Draw what changes while the pointer moves: rings around some runs, and the brushed rectangle.
export function drawOver(pen, layout, { rings, rectangle, theme }) {
  for (const i of rings) {
    if (layout.placed[i]) pen.ring(layout.across[i], layout.along[i], 7, theme.ink);
  }
  if (rectangle) pen.box(...rectangle, theme.ink);
}

export const LEGEND_HEIGHT = 24;

export function drawLegend(pen, names, looks, theme) {
  let left = 54;
  const places = names.map((name) => {
    const place = left;
    left += 34 + 7 * name.length;
    return place;
  });
  pen.marks((stampOf) => {
    places.forEach((at, k) => {
      stampOf(looks[k], 1.4, 1)(at, LEGEND_HEIGHT / 2);
    });
  });
  names.forEach((name, k) => {
    pen.text(name, places[k] + 10, LEGEND_HEIGHT / 2, { colour: theme.ink, align: "left", middle: true });
  });
}

function drawAxes(pen, { x, y, frame, height }, theme) {
  const every = Math.ceil((16 * x.ticks.length) / (frame.right - frame.left)); // where words are crowded
  for (const [value, text] of y.ticks) {
    const place = positionOf(y, value, frame.bottom, frame.top);
    pen.line(frame.left, place, frame.right, place, theme.line);
    pen.text(text, frame.left - 6, place, { colour: theme.dim, align: "right", middle: true });
  }
  x.ticks.forEach(([value, text], k) => {
    const place = positionOf(x, value, frame.left, frame.right);
    if (!x.words) pen.line(place, frame.top, place, frame.bottom, theme.line);
    if (k % every) return;
    const most = frame.slanted ? 12 : 20;
    const short = text.length > most ? `${text.slice(0, most - 1)}…` : text;
    if (frame.slanted)
      pen.text(short, place + 4, frame.bottom + 10, { colour: theme.dim, align: "right", turn: -0.7 });
    else pen.text(short, place, frame.bottom + 15, { colour: theme.dim, align: "center" });
  });
  pen.text(x.name, (frame.left + frame.right) / 2, height - 6, { colour: theme.ink, align: "center" });
  pen.text(y.name, 12, (frame.top + frame.bottom) / 2, {
    colour: theme.ink,
    align: "center",
    turn: -Math.PI / 2,
  });
}

function drawMedians(pen, layout, theme) {
  const groups = layout.x.ticks.map(() => []);
  const { values } = layout.x;
  for (let i = 0; i < values.length; i++) if (layout.placed[i]) groups[values[i]].push(layout.along[i]);
  groups.forEach((group, place) => {
    if (!group.length) return;
    const sorted = Float32Array.from(group).sort();
    const half = (sorted.length - 1) / 2;
    const median = (sorted[Math.floor(half)] + sorted[Math.ceil(half)]) / 2;
    const [from, to] = [place - 0.35, place + 0.35].map((each) =>
      positionOf(layout.x, each, layout.frame.left, layout.frame.right),
    );
    pen.line(from, median, to, median, theme.paper, 5);
    pen.line(from, median, to, median, theme.ink, 2.5);
  });
}
