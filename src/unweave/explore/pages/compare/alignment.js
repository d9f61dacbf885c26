// Where the sliders of aligned latents put the code of each run.

import { labelOf } from "../lib/names.js";

const LETTERS = "ABCDEFGH";

// The runs with the letter and the label that name them on the page; the pixels of examples become images.
export function comparedRuns(record) {
  const [channels, height, width] = record.shape ?? [];
  for (const example of record.examples ?? []) {
    const bytes = Uint8Array.from(atob(example.image), (character) => character.charCodeAt(0));
    example.images = { n: 1, channels, height, width, bytes };
  }
  return record.runs.map((run, k) => {
    const label = `${LETTERS[k]} ${labelOf(record.labels, "method", run.method)}`;
    return { ...run, ...record.codes?.[k], letter: LETTERS[k], label };
  });
}

// A place is in standard deviations of the mean codes, from their mean. A negative correlation flips it.
const directed = ({ correlation }) => (correlation < 0 ? -1 : 1);

function codeAt(run, match, place) {
  return run.mean[match.latent] + directed(match) * place * run.deviation[match.latent];
}

// The place of a row's slider: where it was moved to, else where the code of the image is in the first run of the row.
export function placeOf(record, view, row) {
  if (view.moves.has(row)) return view.moves.get(row);
  const k = record.rows[row].findIndex(Boolean);
  const { latent } = record.rows[row][k];
  const run = record.codes[k];
  return run.deviation[latent] ? (view.base[k][latent] - run.mean[latent]) / run.deviation[latent] : 0;
}

// The code of run k: that of the image, with all moves.
export function applied(record, view, k, moves = view.moves) {
  const codes = [...view.base[k]];
  for (const [row, place] of moves) {
    const match = record.rows[row][k];
    if (match) codes[match.latent] = codeAt(record.codes[k], match, place);
  }
  return codes;
}

// Moves in the address: row:place, separated by commas.
export const writtenMoves = (moves) =>
  [...moves].map(([row, place]) => `${row}:${Number(place.toFixed(2))}`).join(",");

export function readMoves(text, { rows, reach }) {
  const pairs = (text ?? "")
    .split(",")
    .filter(Boolean)
    .map((pair) => pair.split(":").map(Number));
  const known = pairs.filter(([row, place]) => row in rows && Number.isFinite(place));
  return new Map(known.map(([row, place]) => [row, Math.max(-reach, Math.min(reach, place))]));
}
