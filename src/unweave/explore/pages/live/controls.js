// What can be changed about the charts, and which line is which run.

import { make, slider } from "../lib/elements.js";

export function chartControls(options, changed) {
  const log = make("input", { type: "checkbox", checked: options.log });
  log.onchange = () => {
    options.log = log.checked;
    changed();
  };
  const smoothing = slider("Smoothing", { min: 0, max: 0.98, step: 0.02, value: options.smoothing });
  smoothing.output.textContent = options.smoothing.toFixed(2);
  smoothing.input.oninput = () => {
    options.smoothing = Number(smoothing.input.value);
    smoothing.output.textContent = options.smoothing.toFixed(2);
    changed();
  };
  return make(
    "div",
    { className: "live-controls" },
    make("label", {}, log, " Log scale"),
    make("div", { className: "live-smoothing" }, smoothing.label, smoothing.input, smoothing.output),
  );
}

// A button for each line; `choose(key)` is called when it is pressed.
export function lineLegend(choose) {
  const element = make("ul", { className: "live-legend" });
  let shown = "";
  const update = (lines, focus) => {
    const text = JSON.stringify([lines.map(({ key, name }) => [key, name]), focus]);
    if (text === shown) return; // the button that has the focus stays
    shown = text;
    const focused = document.activeElement?.dataset?.line;
    element.hidden = lines.length < 2;
    element.replaceChildren(...lines.map((line, i) => entry(line, i, line.key === focus, choose)));
    if (focused) element.querySelector(`[data-line="${focused}"]`)?.focus();
  };
  return { element, update };
}

function entry({ key, name }, i, isFocus, choose) {
  const swatch = make("span", { className: "live-swatch", ariaHidden: "true" });
  swatch.style.setProperty("--swatch", `var(--curve-${i})`);
  const button = make(
    "button",
    { type: "button", pressed: isFocus, onclick: () => choose(key) },
    swatch,
    ` ${name}`,
  );
  button.dataset.line = key;
  return make("li", {}, button);
}
