// True images to start from, where there is no encoder.

import { tile } from "../../lib/drawing.js";
import { make, panel } from "../../lib/elements.js";

export function examplesPanel({ run, view, moved }) {
  const element = panel("examples", "Start from an image");
  const row = make("div", { className: "tiles" });
  run.examples.forEach(({ images, code }, i) => {
    const button = make("button", { type: "button", label: `start from image ${i + 1}` }, tile(images, 0));
    button.addEventListener("click", () => {
      view.codes = [...code];
      moved();
    });
    row.append(button);
  });
  element.append(row);
  return { element, update() {} };
}
