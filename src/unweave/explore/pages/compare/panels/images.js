// The true image, its reconstruction in each run, and what each run makes of the sliders.

import { paint } from "../../lib/drawing.js";
import { latest, make, panel } from "../../lib/elements.js";
import { runName, scrolling } from "../tables.js";

const picture = (label) => make("canvas", { role: "img", label, className: "picture" });

export function imagesPanel({ record, runs, sources, view, codes, report }) {
  const truth = picture("the true image");
  const observe = latest(async () => {
    const { images } = record.examples[view.example] ?? {};
    paint(truth, images ?? (await sources[0].observe([view.factors])));
  }, report);
  const columns = runs.map((run, k) => runColumn(run, k, { sources, view, codes, report }));
  const element = panel(
    "compared-images",
    "The same image in all runs",
    scrolling(
      "Images of all runs",
      "compared-columns",
      make(
        "div",
        { className: "compared-run" },
        make("p", { className: "compared-title", textContent: "true image" }),
        make("figure", {}, truth),
      ),
      ...columns.map((column) => column.element),
    ),
  );
  return {
    element,
    update(what) {
      if (what === "image") observe();
      for (const column of columns) column.update(what);
    },
  };
}

function runColumn(run, k, { sources, view, codes, report }) {
  const reconstruction = picture(`reconstruction by ${run.label}`);
  const moved = picture(`decoded from the sliders by ${run.label}`);
  moved.dataset.run = k;
  const reconstruct = latest(
    async () => paint(reconstruction, await sources[k].decode([view.base[k]])),
    report,
  );
  const decode = latest(async () => {
    const code = codes(k);
    paint(moved, await sources[k].decode([code]));
    moved.dataset.codes = code.map((z) => z.toFixed(2)).join(","); // what is shown now
  }, report);
  const caption = (text) => make("figcaption", { textContent: text });
  const element = make(
    "div",
    { className: "compared-run" },
    make("p", { className: "compared-title" }, runName(run)),
    make("figure", {}, reconstruction, caption("reconstruction")),
    make("figure", {}, moved, caption("from the sliders")),
  );
  return {
    element,
    update(what) {
      if (what === "image") reconstruct();
      if (what === "codes") decode();
    },
  };
}
