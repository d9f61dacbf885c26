// Swaps: the content of one image with the style of another, for methods whose codes have these two parts, or levels.

import { colours, sized, tile } from "../../lib/drawing.js";
import { latest, make, panel, saver, scrollBox } from "../../lib/elements.js";

const [SIZE, GAP, CORNER] = [84, 8, 110]; // of an image, between sources and what is made of them, for the words

export function swapsPanel({ run, view, source, report, select }) {
  const { rows, columns, sheets } = run.swap;
  const canvas = make("canvas", {
    role: "img",
    className: "wide",
    label: `${rows} rows and ${columns} columns of decoded images: content from the image at the left, style from the image at the top.`,
  });
  const cut = run.swap.levels ? cutAt(run.swap.levels, () => ask()) : null;
  let shown = null;
  const draw = () => drawSheet(canvas, rows, columns, shown.images);
  const ask = latest(async () => {
    const sheet = view.sheet;
    const levels = cut ? Number(cut.value) : undefined;
    shown = { sheet, images: await source.swap(sheet, levels) };
    draw();
    canvas.dataset.sheet = sheet; // what is shown now
    if (cut) canvas.dataset.levels = levels;
  }, report);
  const others = make("button", {
    type: "button",
    textContent: "Other images",
    hidden: sheets === 1,
    onclick: () => select({ sheet: (view.sheet + 1) % sheets }),
  });
  const hint =
    `${partsOf(run)}: ` +
    `the images at the left and at the top are true ones, all others are ${run.decodes ? "decoded" : "the true images with the nearest codes"}.`;
  const element = panel(
    "swaps",
    "Content of one image, style of another",
    make("p", { className: "hint", textContent: hint }),
    scrollBox(canvas),
    make(
      "div",
      { className: "choice" },
      ...(cut ? [cut.parentElement] : []),
      others,
      saver(canvas, `${run.name}-swaps`),
    ),
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

// A choice of the last level that is content; the finest one is always style.
function cutAt(levels, changed) {
  const options = levels.slice(0, -1).map((level, i) => make("option", { value: i, textContent: level }));
  const select = make("select", { onchange: changed }, ...options);
  select.value = Math.floor(levels.length / 2) - 1;
  make("label", { textContent: "Content up to level " }, select);
  return select;
}

function partsOf({ swap, latents }) {
  if (swap.levels) return "Coarse levels of the code from the row, the others from the column";
  const [content, style] = [latentsFrom(0, swap.content), latentsFrom(swap.content, latents)];
  return `Content (${content}) from the row, style (${style}) from the column`;
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
