// One latent a row moves over its range, the others stay.

import { colours, sized, tile } from "../../lib/drawing.js";
import { latest, make, panel, saver } from "../../lib/elements.js";
import { drawnGrid } from "../../lib/focus.js";
import { fewOrAll } from "../few.js";

const COLUMNS = 11;
const MOST_ROWS = 20;

// The latents that are shown at first, and in words which they are.
function firstLatents(run) {
  const live = run.order.filter((i) => !run.dead[i]);
  const used = live.length ? live : run.order;
  const few = used.slice(0, MOST_ROWS);
  return { few, which: few.length < used.length ? "those that are used most" : "dead latents are left out" };
}

export function traversalPanel({ run, view, source, report, select, moved }) {
  const [left, top, size] = [90, 26, 64];
  const { few, which } = firstLatents(run);
  const choice = fewOrAll(few.length, run.latents, which, () => {
    decode();
  });
  const shown = () => (choice.showsAll() ? run.order : few);
  let latents = shown(); // of the images
  // With a prior all latents go over the same numbers; without one, each over those that images have.
  const alike = run.order.every((i) => run.spans[i].every((end, k) => end === run.spans[few[0]][k]));
  const columns = Array.from({ length: COLUMNS }, (_, c) => c / (COLUMNS - 1));
  const codeAt = (i, share) => run.spans[i][0] + share * (run.spans[i][1] - run.spans[i][0]);
  const heading = (share) => (alike ? codeAt(few[0], share).toFixed(1) : `${Math.round(100 * share)} %`);
  const range = alike ? `from ${heading(0)} to ${heading(1)}` : "over 95 % of the range that images have";
  const canvas = make("canvas", { role: "application", className: "wide" });
  const status = make("p", { role: "status", className: "hint cell-text" });
  const goTo = ([r, c]) => {
    view.codes[latents[r]] = codeAt(latents[r], columns[c]);
    select({ latent: latents[r] });
    moved();
  };
  const cell = drawnGrid(canvas, {
    start: () => [Math.max(0, latents.indexOf(view.latent)), (COLUMNS - 1) / 2],
    size: () => [latents.length, COLUMNS],
    moved: (at) => {
      status.textContent = at
        ? `z${latents[at[0]]} at ${codeAt(latents[at[0]], columns[at[1]]).toFixed(2)}. Enter goes there.`
        : "";
      draw();
    },
    chosen: goTo,
  });
  let images = null;
  const draw = () => {
    const names = latents.map((i) => `z${i}`).join(", ");
    canvas.setAttribute(
      "aria-label",
      `Traversals: each row moves one latent ${range}, the others stay. Rows: ${names}. Arrows choose an image, Enter goes there.`,
    );
    const pen = sized(canvas, left + COLUMNS * size, top + latents.length * size);
    const { ink, dim, accent } = colours();
    pen.fillStyle = dim;
    columns.forEach((share, c) => {
      pen.fillText(heading(share), left + c * size + 16, top / 2);
    });
    latents.forEach((i, r) => {
      pen.fillStyle = view.latent === i ? accent : ink;
      pen.fillText(`z${i}`, 8, top + (r + 0.5) * size);
      pen.fillStyle = dim;
      if (run.kl) pen.fillText(run.kl[i].toFixed(2), 40, top + (r + 0.5) * size);
      if (!images) return;
      columns.forEach((_, c) => {
        pen.drawImage(tile(images, r * COLUMNS + c), left + c * size, top + r * size, size - 2, size - 2);
      });
      if (view.latent !== i) return;
      pen.strokeStyle = accent;
      pen.lineWidth = 2;
      pen.strokeRect(left - 2, top + r * size - 1, COLUMNS * size, size);
    });
    if (!cell()) return;
    const [r, c] = cell();
    pen.strokeStyle = ink;
    pen.lineWidth = 4;
    pen.strokeRect(left + c * size, top + r * size, size - 2, size - 2);
  };
  const decode = latest(
    async () => {
      const rows = shown();
      const codes = rows.flatMap((i) =>
        columns.map((share) => view.codes.map((z, k) => (k === i ? codeAt(i, share) : z))),
      );
      images = await source.decode(codes);
      latents = rows;
      draw();
      canvas.dataset.drawn = Number(canvas.dataset.drawn ?? 0) + 1;
    },
    report,
    150,
  );
  canvas.addEventListener("click", (event) => {
    const scale = (left + COLUMNS * size) / canvas.clientWidth;
    const [c, r] = [
      Math.floor((event.offsetX * scale - left) / size),
      Math.floor((event.offsetY * scale - top) / size),
    ];
    if (c in columns && r in latents) goTo([r, c]);
  });
  const shownImages = run.decodes ? "" : " The images are the true ones with the nearest codes.";
  const hint = `From the code of the sliders, one latent a row, ${range}. Click an image to go there, or use arrows and Enter.${shownImages}`;
  const element = panel(
    "traversal",
    "Traversals",
    make("p", { className: "hint", textContent: hint }),
    choice.element,
    make("div", { className: "scroll" }, canvas),
    status,
    saver(canvas, `${run.name}-traversals`),
  );
  return {
    element,
    canvas,
    update(what) {
      if (what === "codes" && view.walking === null) decode();
      if (what === "selection" || what === "theme") draw();
    },
  };
}
