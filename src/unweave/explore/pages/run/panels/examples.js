// True images to start from, where there is no encoder.

import { tile } from "../../lib/drawing.js";
import { make, panel } from "../../lib/elements.js";
import { oneTabStop } from "../../lib/focus.js";

export function examplesPanel({ run, view, chooseExample }) {
  const element = panel("examples", "Start from an image");
  const row = make("div", { className: "tiles" });
  const buttons = run.examples.map(({ images }, i) => {
    const button = make("button", { type: "button", label: `start from image ${i + 1}` }, tile(images, 0));
    button.addEventListener("click", () => chooseExample(i));
    return button;
  });
  row.append(...buttons);
  oneTabStop(row, [buttons]);
  element.append(row);
  return {
    element,
    update(what) {
      if (what !== "factors") return;
      buttons.forEach((button, i) => {
        button.setAttribute("aria-pressed", view.example === i);
      });
    },
  };
}
