// The selected latent of every run moves over the same places, one run a row.

import { colours, sized, tile } from "../../lib/drawing.js";
import { latest, make, panel, saver } from "../../lib/elements.js";
import { drawnGrid } from "../../lib/focus.js";
import { applied } from "../alignment.js";

const [COLUMNS, REACH] = [9, 2];
const [LEFT, TOP, SIZE] = [150, 26, 64];
const PLACES = Array.from({ length: COLUMNS }, (_, c) => REACH * ((2 * c) / (COLUMNS - 1) - 1));
const HINT = `The selected latent moves from −${REACH} to ${REACH} standard deviations in every run. Click an image to go there, or use arrows and Enter.`;
const written = (place) => place.toFixed(1).replace("-", "−");

export function traversalsPanel({ record, runs, sources, view, report, move }) {
  const canvas = make("canvas", { role: "application", className: "wide" });
  const status = make("p", { role: "status", className: "hint cell-text" });
  const goTo = (column) => move(shown.row, PLACES[column]);
  const cell = drawnGrid(canvas, {
    start: () => [0, (COLUMNS - 1) / 2],
    size: () => [1, COLUMNS], // a place is the same in all runs
    moved: (at) => {
      status.textContent = at ? `${written(PLACES[at[1]])} in all runs. Enter goes there.` : "";
      draw();
    },
    chosen: ([, column]) => goTo(column),
  });
  let shown = { row: view.row, images: runs.map(() => null) };
  const draw = () => {
    const { row, images } = shown;
    const { ink, dim } = colours();
    const pen = sized(canvas, LEFT + COLUMNS * SIZE, TOP + runs.length * SIZE);
    pen.fillStyle = dim;
    PLACES.forEach((place, c) => {
      pen.fillText(written(place), LEFT + c * SIZE + 16, TOP / 2);
    });
    runs.forEach(({ label }, k) => {
      const match = record.rows[row][k];
      const middle = TOP + (k + 0.5) * SIZE;
      pen.fillStyle = ink;
      pen.fillText(label, 8, middle - 9, LEFT - 16);
      pen.fillStyle = dim;
      pen.fillText(
        match ? `z${match.latent}${match.correlation < 0 ? ", flipped" : ""}` : "no match",
        8,
        middle + 9,
      );
      if (!images[k]) return;
      PLACES.forEach((_, c) => {
        pen.drawImage(tile(images[k], c), LEFT + c * SIZE, TOP + k * SIZE, SIZE - 2, SIZE - 2);
      });
    });
    if (cell()) {
      pen.strokeStyle = ink;
      pen.lineWidth = 4;
      pen.strokeRect(LEFT + cell()[1] * SIZE, TOP, SIZE - 2, runs.length * SIZE - 2);
    }
    const names = record.rows[row].map((match, k) => match && `${runs[k].letter} z${match.latent}`);
    canvas.setAttribute(
      "aria-label",
      `Traversals of ${names.filter(Boolean).join(", ")} from ${-REACH} to ${REACH} standard deviations, one run a row. Arrows choose a place, Enter goes there.`,
    );
  };
  const decode = latest(
    async () => {
      const row = view.row;
      const images = await Promise.all(
        runs.map((_, k) => {
          if (!record.rows[row][k]) return null;
          const moved = (place) => applied(record, view, k, new Map([...view.moves, [row, place]]));
          return sources[k].decode(PLACES.map(moved));
        }),
      );
      shown = { row, images };
      draw();
      canvas.dataset.drawn = Number(canvas.dataset.drawn ?? 0) + 1;
    },
    report,
    150,
  );
  canvas.addEventListener("click", (event) => {
    const scale = (LEFT + COLUMNS * SIZE) / canvas.clientWidth;
    const column = Math.floor((event.offsetX * scale - LEFT) / SIZE);
    if (column in PLACES) goTo(column);
  });
  let before = null; // the other sliders, on which the traversals depend
  const others = () =>
    JSON.stringify([view.row, view.base, [...view.moves].filter(([row]) => row !== view.row)]);
  return {
    element: panel(
      "compared-traversals",
      "Traversals in step",
      make("p", { className: "hint", textContent: HINT }),
      make("div", { className: "scroll" }, canvas),
      status,
      saver(canvas, "compared-traversals"),
    ),
    update(what) {
      if (what === "theme") draw();
      if (what !== "codes" && what !== "selection") return;
      if (others() === before) return;
      before = others();
      decode();
    },
  };
}
