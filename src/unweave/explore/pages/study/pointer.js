// Pointer and keys in a plot: the run under the pointer, the brushed rectangle, clicks and arrows.

import { drawAllOver, redrawSoon } from "./drawing.js";
import { make } from "./elements.js";
import { nearest, neighbour, rectangleValues, shortNumber } from "./plots.js";
import { described } from "./runs.js";
import { pin, traversal } from "./tables.js";

const HOVER_WAIT = 150; // milliseconds before a traversal is asked for
const DRAG = 4; // pixels that make a drag of a click
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export function buildPlot(view, place) {
  const canvas = make("canvas", { tabindex: "0", role: "application" });
  const above = make("canvas", { "aria-hidden": "true" });
  const plot = { canvas, above, box: make("div", { class: "study-plot" }, canvas, above), layout: null };
  let start = null;
  let moved = false;
  const at = (event) => [event.offsetX, event.offsetY];
  const brush = (event) => ({
    plot: place,
    ...rectangleValues(plot.layout, rectangleFrom(plot.layout.frame, start, at(event))),
  });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    [start, moved] = [at(event), false];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!plot.layout) return;
    const [x, y] = at(event);
    if (!start) {
      point(view, nearest(plot.layout, x, y), event);
      return;
    }
    moved ||= Math.hypot(x - start[0], y - start[1]) >= DRAG;
    if (!moved) return;
    point(view, -1, event);
    view.state.brush = brush(event); // the address is written when the rectangle is done
    redrawSoon(view);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (start && moved) view.change({ brush: brush(event) });
    else if (start) clicked(view, nearest(plot.layout, ...at(event)), event);
    start = null;
  });
  canvas.addEventListener("pointercancel", () => {
    start = null;
  });
  canvas.addEventListener("pointerleave", (event) => point(view, -1, event));
  canvas.addEventListener("blur", (event) => point(view, -1, event));
  canvas.addEventListener("keydown", (event) => pressed(view, plot, event));
  return plot;
}

function rectangleFrom({ left, right, top, bottom }, [x0, y0], [x1, y1]) {
  const inside = (value, low, high) => Math.min(Math.max(value, low), high);
  const [across, along] = [
    [x0, x1].map((x) => inside(x, left, right)),
    [y0, y1].map((y) => inside(y, top, bottom)),
  ];
  return [Math.min(...across), Math.min(...along), Math.max(...across), Math.max(...along)];
}

function clicked(view, row, event) {
  if (row < 0) {
    if (view.state.brush) view.change({ brush: null });
  } else if (event.shiftKey) pin(view, row);
  else if (event.pointerType === "touch" && view.tapped !== row) {
    view.tapped = row; // a finger cannot hover: the first tap shows the run, the second opens it
    point(view, row, event);
  } else if (view.study.here[row]) view.openRun(view.study.id[row]);
}

function pressed(view, plot, event) {
  const { layout } = plot;
  if (event.key in ARROWS) {
    const first = layout.placed.indexOf(1);
    const row =
      view.current >= 0 && layout.placed[view.current]
        ? neighbour(layout, view.current, ...ARROWS[event.key])
        : first;
    const box = plot.canvas.getBoundingClientRect();
    if (row >= 0) {
      point(view, row, { clientX: box.left + layout.across[row], clientY: box.top + layout.along[row] });
      const value = shortNumber(view.study.numbers[view.state.y][row]);
      view.runText.textContent = `${described(view.study, row)}: ${layout.y.name} ${value}`;
    }
  } else if (event.key === "Enter" && view.current >= 0 && view.study.here[view.current])
    view.openRun(view.study.id[view.current]);
  else if (event.key.toLowerCase() === "p" && view.current >= 0) pin(view, view.current);
  else if (event.key === "Escape") view.change({ brush: null });
  else return;
  event.preventDefault();
}

// Make a run the current one: a ring in each plot, and a card next to the pointer; -1 for none.
function point(view, row, { clientX, clientY }) {
  const { study, state, card } = view;
  if (row !== view.current) {
    view.current = row;
    clearTimeout(view.hoverTimer);
    drawAllOver(view);
    card.hidden = row < 0;
    if (row < 0) return;
    const numbers = [...new Set([state.y, state.x])].map(
      (name) => `${name} ${shortNumber(study.numbers[name][row])}`,
    );
    card.replaceChildren(
      make("p", {}, make("strong", {}, described(study, row))),
      make("p", {}, numbers.join(", ")),
      make("p", { class: "study-dim" }, study.id[row]),
    );
    if (study.here[row]) view.hoverTimer = setTimeout(() => card.append(traversal(view, row)), HOVER_WAIT);
  }
  if (row < 0) return;
  card.style.left = `${Math.max(8, Math.min(clientX + 16, innerWidth - 370))}px`;
  card.style.top = clientY < innerHeight / 2 ? `${clientY + 16}px` : "auto";
  card.style.bottom = clientY < innerHeight / 2 ? "auto" : `${innerHeight - clientY + 16}px`;
}
