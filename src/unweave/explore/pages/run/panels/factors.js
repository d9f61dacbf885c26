// The true factors as sliders: they choose a true image.

import { make, panel, slider } from "../../lib/elements.js";
import { factorText } from "../caption.js";

export function factorsPanel({ run, view, select, chooseFactors }) {
  const element = panel("factors", "True factors");
  element.append(
    make("p", { className: "hint", textContent: "Choose a true image; the latents start from its code." }),
  );
  const rows = run.factors.map((factor, j) => {
    const { input, label, output } = slider(factor.name, { min: 0, max: factor.size - 1, step: 1 });
    input.addEventListener("focus", () => select({ factor: j }));
    input.addEventListener("input", () => {
      view.factors[j] = Number(input.value);
      chooseFactors();
    });
    const row = make("div", { className: "slider factor" }, label, input, output);
    element.append(row);
    return { row, input, output, factor };
  });
  return {
    element,
    update(what) {
      if (what !== "factors" && what !== "selection") return;
      rows.forEach(({ row, input, output, factor }, j) => {
        input.value = view.factors[j];
        output.textContent = factorText(factor, view.factors[j]);
        input.setAttribute("aria-valuetext", output.textContent);
        row.classList.toggle("selected", view.factor === j);
      });
    },
  };
}
