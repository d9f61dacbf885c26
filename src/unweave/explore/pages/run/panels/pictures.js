// The true image, and the one that the sliders decode to.

import { paint } from "../../lib/drawing.js";
import { latest, make, panel } from "../../lib/elements.js";

export function picturesPanel({ run, view, source, report }) {
  const picture = (text) => make("canvas", { role: "img", label: text, className: "picture" });
  const made = run.decodes ? "decoded image" : "nearest true image";
  const [truth, decoded] = [picture("the true image"), picture(`the ${made}`)];
  const element = panel("pictures", "Image");
  const observed = trueImage(run, view, source);
  if (observed) {
    element.append(make("figure", {}, truth, make("figcaption", { textContent: "true image" })));
  }
  element.append(make("figure", {}, decoded, make("figcaption", { textContent: captionOf(run) })));
  const decode = latest(async () => {
    paint(decoded, await source.decode([view.codes]));
    decoded.dataset.codes = view.codes.map((z) => z.toFixed(2)).join(","); // what is shown now
    decoded.setAttribute(
      "aria-label",
      `the ${made} of ${run.order.map((i) => `z${i} ${view.codes[i].toFixed(1)}`).join(", ")}`,
    );
  }, report);
  const observe = latest(async () => paint(truth, await observed()), report);
  return {
    element,
    canvas: decoded,
    update(what) {
      if (what === "codes") decode();
      if (what === "factors" && observed) observe();
    },
  };
}

const captionOf = (run) =>
  run.decodes
    ? "decoded from the sliders"
    : `nearest to the sliders, of ${run.images.toLocaleString("en")} true images (the model has no decoder)`;

// A function that gives the true image that was chosen, or null where there are none.
function trueImage(run, view, source) {
  if (source.observe && view.factors) return () => source.observe([view.factors]);
  return run.examples ? () => run.examples[view.example].images : null;
}
