// The plots of the study page as a PNG or SVG file.

import { over } from "./drawing.js";
import { make } from "./elements.js";
import { canvasPen, svgPen } from "./pens.js";
import { drawLegend, drawOver, drawPlot, LEGEND_HEIGHT } from "./plots.js";
import { columnLabel, WORDS, wordLabel } from "./runs.js";

const HEAD_HEIGHT = 2 * LEGEND_HEIGHT; // the legend, and a line that says which runs are shown
const LETTER = 7; // pixels of a letter, about

function sheetSize(view) {
  const boxes = view.plots.map(({ box }) => [box.offsetLeft, box.offsetTop]);
  const origin = [
    Math.min(...boxes.map((each) => each[0])),
    Math.min(...boxes.map((each) => each[1])) - HEAD_HEIGHT,
  ];
  const places = boxes.map(([left, top]) => [left - origin[0], top - origin[1]]);
  const ends = view.plots.map(({ layout }, k) => [places[k][0] + layout.width, places[k][1] + layout.height]);
  return {
    places,
    width: Math.max(...ends.map((end) => end[0])),
    height: Math.max(...ends.map((end) => end[1])),
  };
}

// How many runs are shown, and by which filters.
function filtersOf({ study, status, state }) {
  const only = Object.entries(state.only).map(
    ([name, kept]) =>
      `${WORDS[name]}: ${kept.map((one) => wordLabel(study, name, one)).join(", ") || "none"}`,
  );
  const ranges = Object.entries(state.ranges).map(
    ([name, [low, high]]) => `${columnLabel(study, name)}: ${low ?? "lowest"} to ${high ?? "highest"}`,
  );
  return [status.textContent, ...only, ...ranges].join("; ");
}

function drawHead(pen, view, width) {
  drawLegend(pen, view.drawing.legend, view.theme);
  const [text, most] = [filtersOf(view), Math.floor((width - 64) / LETTER)];
  const short = text.length > most ? `${text.slice(0, most - 1)}…` : text;
  pen.text(short, 54, 1.5 * LEGEND_HEIGHT, { colour: view.theme.dim, align: "left", middle: true });
}

export function savePng(view) {
  const { places, width, height } = sheetSize(view);
  const canvas = document.createElement("canvas");
  drawHead(canvasPen(canvas, width, height, view.theme.paper), view, width);
  const context = canvas.getContext("2d");
  view.plots.forEach(({ canvas: below, above, layout }, k) => {
    for (const layer of [below, above]) context.drawImage(layer, ...places[k], layout.width, layout.height);
  });
  canvas.toBlob((blob) => download(blob, "study.png"));
}

export function saveSvg(view) {
  const { places, width, height } = sheetSize(view);
  const pens = [...view.plots.map(() => svgPen()), svgPen()];
  view.plots.forEach(({ layout }, k) => {
    drawPlot(pens[k], layout, view.drawing);
    drawOver(pens[k], layout, over(view, k));
  });
  drawHead(pens[3], view, width);
  const groups = pens.map(
    (pen, k) => `<g transform="translate(${(places[k] ?? [0, 0]).join(" ")})">${pen.finish()}</g>`,
  );
  const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="12">`;
  const text = `${head}<rect width="100%" height="100%" fill="${view.theme.paper}"/>${groups.join("\n")}</svg>`;
  download(new Blob([text], { type: "image/svg+xml" }), "study.svg");
}

function download(blob, name) {
  const address = URL.createObjectURL(blob);
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
