// Plots of many runs: one mark a run, drawn on a canvas, because thousands of elements would make a page slow.

import { SHAPES } from "./colours.js";

const FEW = 400; // so many marks or fewer are drawn larger
const [DARK, CLEAR, MANY] = [0.75, 0.08, 800]; // opacities of few and of very many marks; so many are few
const NEAR = 9; // pixels within which the pointer finds a mark

// The colours of the page now; plots are drawn again when the page turns dark.
export function themeOf(element) {
  const style = getComputedStyle(element);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: colour("ink"),
    dim: colour("dim"),
    line: colour("line"),
    paper: colour("paper"),
    faint: colour("faint"),
  };
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
  const slanted = Boolean(x.words) && !x.groups && widest > room;
  const below = slanted ? 92 : x.groups ? 72 : 40;
  const frame = { left: 54, right: width - 10, top: 10, bottom: height - below, slanted };
  const across = positions(x, frame.left, frame.right);
  const along = positions(y, frame.bottom, frame.top);
  const placed = new Uint8Array(shown.length);
  for (let i = 0; i < placed.length; i++) {
    placed[i] = shown[i] && !Number.isNaN(across[i]) && !Number.isNaN(along[i]) ? 1 : 0;
  }
  return { width, height, x, y, frame, across, along, placed };
}

export function nearest(layout, x, y, within = NEAR) {
  let best = -1;
  let least = within * within;
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

// Marks become more transparent as their number grows, so that dense areas remain visible.
const opacityOf = (count) => Math.max(CLEAR, Math.min(DARK, DARK * Math.sqrt(MANY / Math.max(count, 1))));

// Draw the runs; those that are not lit, if any are, are faint. Medians are of the shown runs of each word.
export function drawPlot(pen, layout, { looks, codes, order, lit, theme }) {
  drawAxes(pen, layout, theme);
  const counts = [0, 0]; // marks that are not lit, and those that are
  layout.placed.forEach((is, i) => {
    counts[!lit || lit[i] ? 1 : 0] += is;
  });
  const size = counts[0] + counts[1] <= FEW ? 1.4 : 1;
  const faint = { colour: theme.faint, shape: SHAPES[0] };
  pen.marks((stampOf) => {
    for (const bright of lit ? [false, true] : [true]) {
      const stamps = bright
        ? looks.map((look) => stampOf(look, size, opacityOf(counts[1])))
        : [stampOf(faint, 0.7, Math.min(0.5, opacityOf(counts[0])))];
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

export function drawLegend(pen, legend, theme) {
  let left = 54;
  const places = legend.map(({ label }) => {
    const place = left;
    left += 34 + 7 * label.length;
    return place;
  });
  pen.marks((stampOf) => {
    places.forEach((at, k) => {
      stampOf(legend[k].look, 1.4, 1)(at, LEGEND_HEIGHT / 2);
    });
  });
  legend.forEach(({ label }, k) => {
    pen.text(label, places[k] + 10, LEGEND_HEIGHT / 2, { colour: theme.ink, align: "left", middle: true });
  });
}

function drawAxes(pen, { x, y, frame, height }, theme) {
  const space = x.groups ? 24 : 16; // pixels that a word needs
  const every = Math.ceil((space * x.ticks.length) / (frame.right - frame.left)); // where words are crowded
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
  if (x.groups) drawGroups(pen, x, frame, theme);
  pen.text(x.name, (frame.left + frame.right) / 2, height - 6, { colour: theme.ink, align: "center" });
  pen.text(y.name, 12, (frame.top + frame.bottom) / 2, {
    colour: theme.ink,
    align: "center",
    turn: -Math.PI / 2,
  });
}

// The method and its setting below the values of the setting, and lines between methods.
function drawGroups(pen, x, frame, theme) {
  const at = (value) => positionOf(x, value, frame.left, frame.right);
  for (const { from, to, method, setting } of x.groups) {
    const most = Math.max(3, Math.floor((at(to + 1) - at(from)) / 7));
    [setting, method].forEach((text, k) => {
      const short = text.length > most ? `${text.slice(0, most - 1)}…` : text;
      pen.text(short, at((from + to) / 2), frame.bottom + 31 + 15 * k, {
        colour: theme.ink,
        align: "center",
      });
    });
    if (from > 0) pen.line(at(from - 1), frame.top, at(from - 1), frame.bottom, theme.dim);
  }
}

function drawMedians(pen, layout, theme) {
  const groups = new Map(layout.x.ticks.map(([place]) => [place, []]));
  const { values } = layout.x;
  for (let i = 0; i < values.length; i++) if (layout.placed[i]) groups.get(values[i]).push(layout.along[i]);
  groups.forEach((group, place) => {
    if (!group.length) return;
    const sorted = Float32Array.from(group).sort();
    const half = (sorted.length - 1) / 2;
    const median = (sorted[Math.floor(half)] + sorted[Math.ceil(half)]) / 2;
    const [from, to] = [place - 0.35, place + 0.35].map((end) =>
      positionOf(layout.x, end, layout.frame.left, layout.frame.right),
    );
    pen.line(from, median, to, median, theme.paper, 5);
    pen.line(from, median, to, median, theme.ink, 2.5);
  });
}
