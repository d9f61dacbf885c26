// Swaps: the content of one image with the style of another, for methods whose codes have these two parts.

import { colours, sized, tile } from "../../lib/drawing.js";
import { latest, make, panel, saver, scrollBox } from "../../lib/elements.js";

const [SIZE, GAP, CORNER] = [84, 8, 110]; // of an image, between sources and what is made of them, for the words

export function swapsPanel({ run, view, source, report, select }) {
  const { content, rows, columns, sheets } = run.swap;
  const canvas = make("canvas", {
    role: "img",
    className: "wide",
    label: `${rows} rows and ${columns} columns of decoded images: content from the image at the left, style from the image at the top.`,
  });
  let shown = null;
  const draw = () => drawSheet(canvas, rows, columns, shown.images);
  const ask = latest(async () => {
    const sheet = view.sheet;
    shown = { sheet, images: await source.swap(sheet) };
    draw();
    canvas.dataset.sheet = sheet; // what is shown now
  }, report);
  const others = make("button", {
    type: "button",
    textContent: "Other images",
    onclick: () => select({ sheet: (view.sheet + 1) % sheets }),
  });
  const hint =
    `Content (${latentsFrom(0, content)}) from the row, style (${latentsFrom(content, run.latents)}) from the column: ` +
    `the images at the left and at the top are true ones, all others are ${run.decodes ? "decoded" : "the true images with the nearest codes"}.`;
  const element = panel(
    "swaps",
    "Content of one image, style of another",
    make("p", { className: "hint", textContent: hint }),
    scrollBox(canvas),
    make("div", { className: "choice" }, others, saver(canvas, `${run.name}-swaps`)),
  );
  return {
    element,
    canvas,
    update(what) {
      if (what === "selection" && shown?.sheet !== view.sheet) ask();
      if (what === "theme" && shown) draw();
    },
  };
}

const latentsFrom = (first, end) => (end - first > 1 ? `z${first} to z${end - 1}` : `z${first}`);

// The images are in the order of a sheet: those that give content, those that give style, then the rows.
function drawSheet(canvas, rows, columns, images) {
  const [left, top] = [CORNER + GAP, SIZE + GAP];
  const pen = sized(canvas, left + columns * SIZE, top + rows * SIZE);
  const place = (i, x, y) => pen.drawImage(tile(images, i), x, y, SIZE - 2, SIZE - 2);
  pen.fillStyle = colours().dim;
  pen.textAlign = "right";
  pen.fillText("style from →", CORNER, SIZE / 3);
  pen.fillText("content from ↓", CORNER, (2 * SIZE) / 3);
  for (let c = 0; c < columns; c++) place(rows + c, left + c * SIZE, 0);
  for (let r = 0; r < rows; r++) {
    place(r, CORNER - SIZE, top + r * SIZE);
    for (let c = 0; c < columns; c++)
      place(rows + columns + r * columns + c, left + c * SIZE, top + r * SIZE);
  }
}
