// Colours and shapes of marks. Words have those of Okabe and Ito (2008), each with a shape of its own; numbers have
// the colours of viridis.

import { shortNumber } from "./axes.js";
import { wordLabel } from "./runs.js";

const ON_DARK = { "#0072B2": "#2F92D4" }; // the first of them is too dark to be seen there
const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#56B4E9", "#D55E00", "#CC79A7", "ink", "#B5A900"];
export const SHAPES = [
  "M3 0A3 3 0 1 1 -3 0A3 3 0 1 1 3 0Z",
  "M-2.7 -2.7H2.7V2.7H-2.7Z",
  "M0 -3.4L3.2 2.4H-3.2Z",
  "M0 3.4L3.2 -2.4H-3.2Z",
  "M0 -3.8L3.8 0L0 3.8L-3.8 0Z",
  "M-1.2 -3.5H1.2V-1.2H3.5V1.2H1.2V3.5H-1.2V1.2H-3.5V-1.2H-1.2Z",
  "M-3.3 -1.7L-1.7 -3.3L0 -1.6L1.7 -3.3L3.3 -1.7L1.6 0L3.3 1.7L1.7 3.3L0 1.6L-1.7 3.3L-3.3 1.7L-1.6 0Z",
  "M0 -4L1.1 -1.4L3.9 -1.2L1.8 0.6L2.4 3.4L0 1.9L-2.4 3.4L-1.8 0.6L-3.9 -1.2L-1.1 -1.4Z",
];

const VIRIDIS = ["#440154", "#472f7d", "#39568c", "#2a788e", "#1f988b", "#35b779", "#8fd744", "#fde725"];
const STEPS = 64; // colours of numbers
const STOPS = 5; // numbers in the legend
export const MOST_COLOURED = 40; // words that colours can stand for; colours and shapes repeat after 64

export function lookOf(place, theme) {
  const colour = COLOURS[place % COLOURS.length];
  const seen = isDark(theme.paper) ? (ON_DARK[colour] ?? colour) : colour;
  return {
    colour: colour === "ink" ? theme.ink : seen,
    shape: SHAPES[(place + Math.floor(place / 8)) % 8],
  };
}

// How runs are coloured by a column: each run's place among the looks, and what the legend says.
export function colouring(study, name, theme, shown) {
  if (!(name in study.words)) return numberColouring(study.numbers[name], theme, shown);
  const { names, codes } = study.words[name];
  const looks = names.map((_, place) => lookOf(place, theme));
  return {
    looks,
    codes,
    legend: names.map((word, place) => ({
      name: word,
      label: wordLabel(study, name, word),
      look: looks[place],
    })),
  };
}

function numberColouring(values, theme, shown) {
  const kept = values.filter((value, row) => shown[row] && Number.isFinite(value));
  const low = kept.reduce((a, b) => Math.min(a, b), Infinity);
  const high = kept.reduce((a, b) => Math.max(a, b), -Infinity);
  const [from, to] = isDark(theme.paper) ? [0.25, 1] : [0, 0.88]; // the ends that can be seen on the paper
  const look = (share) => ({ colour: viridis(from + share * (to - from)), shape: SHAPES[0] });
  const looks = Array.from({ length: STEPS }, (_, k) => look(k / (STEPS - 1)));
  looks.push({ colour: theme.faint, shape: SHAPES[0] }); // of runs without the number
  const shareOf = (value) => (high > low ? Math.min(Math.max((value - low) / (high - low), 0), 1) : 0.5);
  const codes = Uint8Array.from(values, (value) =>
    Number.isFinite(value) ? Math.round(shareOf(value) * (STEPS - 1)) : STEPS,
  );
  const stops = kept.length ? Array.from({ length: STOPS }, (_, k) => k / (STOPS - 1)) : [];
  const legend = stops.map((share) => ({
    label: shortNumber(low + share * (high - low), 3),
    look: look(share),
  }));
  return { looks, codes, legend, numbers: true };
}

function viridis(share) {
  const place = share * (VIRIDIS.length - 1);
  const [first, second] = [Math.floor(place), Math.ceil(place)].map((k) => channels(VIRIDIS[k]));
  const mixed = first.map((value, k) =>
    Math.round(value + (second[k] - value) * (place - Math.floor(place))),
  );
  return `rgb(${mixed.join(" ")})`;
}

const isDark = (paper) => Math.max(...channels(paper)) < 128;

const channels = (hex) => [1, 3, 5].map((k) => Number.parseInt(hex.slice(k, k + 2), 16));
