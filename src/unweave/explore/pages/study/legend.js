// The legend of the study page: what colours and shapes stand for. A click on a word hides its runs or shows them.

import { make } from "./elements.js";
import { keepOnly } from "./filters.js";
import { columnLabel, wordLabel } from "./runs.js";

export function showLegend(view) {
  const { legend, numbers } = view.drawing;
  const item = numbers ? number : word;
  view.legend.replaceChildren(
    make("li", { class: "study-dim" }, `${columnLabel(view.study, view.state.colour)}:`),
    ...legend.map(({ name, label, look }) => make("li", {}, ...item(view, name ?? label, look))),
  );
}

const number = (_, text, look) => [swatch(look), text];

function word(view, name, look) {
  const { study, state } = view;
  const all = study.words[state.colour].names;
  const kept = state.only[state.colour] ?? all;
  const isShown = kept.includes(name);
  const toggle = (event) => {
    const others = kept.filter((other) => other !== name);
    const alone = event.shiftKey || event.altKey;
    keepOnly(
      view,
      state.colour,
      alone ? [name] : isShown ? others : all.filter((other) => kept.includes(other) || other === name),
    );
    checkBoxes(view);
  };
  const attributes = {
    type: "button",
    "aria-pressed": String(isShown),
    "data-key": `legend ${name}`,
    click: toggle,
  };
  const label = wordLabel(study, state.colour, name);
  const title = `${isShown ? "hide" : "show"} runs of ${label}; with shift: show these only`;
  return [make("button", { ...attributes, title, class: "study-word" }, swatch(look), label)];
}

// The filters say the same as the legend.
function checkBoxes({ root, study, state }) {
  const kept = state.only[state.colour] ?? study.words[state.colour].names;
  for (const input of root.querySelectorAll(`[data-filter="${state.colour}"] input[type=checkbox]`))
    input.checked = kept.includes(input.value);
}

export function swatch({ colour, shape }) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  const attributes = { width: 14, height: 14, viewBox: "-5 -5 10 10", "aria-hidden": "true" };
  for (const [name, value] of Object.entries(attributes)) svg.setAttribute(name, value);
  path.setAttribute("d", shape);
  path.setAttribute("fill", colour);
  svg.append(path);
  return svg;
}
