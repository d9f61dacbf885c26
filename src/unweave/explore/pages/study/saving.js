// The plots of the study page as a PNG or SVG file.

import { over } from "./drawing.js";
import { make } from "./elements.js";
import { canvasPen, svgPen } from "./pens.js";
import { drawLegend, drawOver, drawPlot, LEGEND_HEIGHT } from "./plots.js";

function sheetSize(view) {
  const boxes = view.plots.map(({ box }) => [box.offsetLeft, box.offsetTop]);
  const origin = [
    Math.min(...boxes.map((each) => each[0])),
    Math.min(...boxes.map((each) => each[1])) - LEGEND_HEIGHT,
  ];
  const places = boxes.map(([left, top]) => [left - origin[0], top - origin[1]]);
  const ends = view.plots.map(({ layout }, k) => [places[k][0] + layout.width, places[k][1] + layout.height]);
  return {
    places,
    width: Math.max(...ends.map((end) => end[0])),
    height: Math.max(...ends.map((end) => end[1])),
  };
}

export function savePng(view) {
  const { places, width, height } = sheetSize(view);
  const canvas = document.createElement("canvas");
  drawLegend(
    canvasPen(canvas, width, height, view.theme.paper),
    view.drawing.names,
    view.drawing.looks,
    view.theme,
  );
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
  drawLegend(pens[3], view.drawing.names, view.drawing.looks, view.theme);
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
