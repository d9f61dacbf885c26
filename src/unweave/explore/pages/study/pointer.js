// Pointer and keys in a plot: the run under the pointer, the brushed rectangle, clicks and arrows.

import { shortNumber } from "./axes.js";
import { drawAllOver, redrawSoon } from "./drawing.js";
import { make } from "./elements.js";
import { nearest, neighbour, rectangleValues } from "./plots.js";
import { columnLabel, described } from "./runs.js";
import { pin, traversal } from "./tables.js";

const HOVER_WAIT = 150; // milliseconds before a traversal is asked for
const DRAG = 4; // pixels that make a drag of a click
const SWIPE = 12; // pixels across that make a drag of a tap; up and down, a finger scrolls the page
const CARD_WIDTH = 370; // pixels, with some room
const NEAR_FINGER = 24; // pixels within which a tap finds a run
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export function buildPlot(view, place) {
  const canvas = make("canvas", { tabindex: "0", role: "application" });
  const above = make("canvas", { "aria-hidden": "true" });
  const plot = { canvas, above, box: make("div", { class: "study-plot" }, canvas, above), layout: null };
  let drag = null; // where it began, the brush before it, and whether it is more than a click
  const at = (event) => [event.offsetX, event.offsetY];
  const brush = (event) => ({
    plot: place,
    ...rectangleValues(plot.layout, rectangleFrom(plot.layout.frame, drag.start, at(event))),
  });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.isPrimary) return;
    drag = { start: at(event), brush: view.state.brush, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!plot.layout || !event.isPrimary) return;
    if (!drag) {
      point(view, nearest(plot.layout, ...at(event)), event);
      return;
    }
    drag.moved ||= isDrag(event, drag.start, at(event));
    if (!drag.moved) return;
    point(view, -1, event);
    view.state.brush = brush(event); // the address is written when the rectangle is done
    redrawSoon(view);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag?.moved) view.change({ brush: brush(event) });
    else if (drag) clicked(view, plot.layout, at(event), event);
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => {
    if (drag?.moved) view.change({ brush: drag.brush }); // the browser took the finger, to scroll or to zoom
    drag = null;
  });
  canvas.addEventListener("pointerleave", (event) => {
    if (event.pointerType !== "touch") point(view, -1, event); // a lifted finger leaves, and its card stays
  });
  canvas.addEventListener("blur", (event) => point(view, -1, event));
  canvas.addEventListener("keydown", (event) => pressed(view, plot, event));
  return plot;
}

function isDrag({ pointerType }, [x0, y0], [x1, y1]) {
  return pointerType === "touch" ? Math.abs(x1 - x0) >= SWIPE : Math.hypot(x1 - x0, y1 - y0) >= DRAG;
}

function rectangleFrom({ left, right, top, bottom }, [x0, y0], [x1, y1]) {
  const inside = (value, low, high) => Math.min(Math.max(value, low), high);
  const [across, along] = [
    [x0, x1].map((x) => inside(x, left, right)),
    [y0, y1].map((y) => inside(y, top, bottom)),
  ];
  return [Math.min(...across), Math.min(...along), Math.max(...across), Math.max(...along)];
}

function clicked(view, layout, [x, y], event) {
  const isTouch = event.pointerType === "touch";
  const row = nearest(layout, x, y, isTouch ? NEAR_FINGER : undefined);
  if (row < 0) {
    point(view, -1, event);
    if (view.state.brush) view.change({ brush: null });
  } else if (event.shiftKey) pin(view, row);
  else if (isTouch && view.current !== row) {
    // A finger cannot hover: the first tap shows the run, the second opens it. The plot has the focus before the
    // card is shown, because a plot that loses the focus hides it.
    event.target.focus({ preventScroll: true });
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
function point(view, row, { clientX, clientY, pointerType }) {
  const { study, state, card } = view;
  if (row !== view.current) {
    view.current = row;
    clearTimeout(view.hoverTimer);
    drawAllOver(view);
    card.hidden = row < 0;
    if (row < 0) return;
    const numbers = [...new Set([state.y, state.x])].map(
      (name) => `${columnLabel(study, name)} ${shortNumber(study.numbers[name][row])}`,
    );
    card.replaceChildren(
      make("p", {}, make("strong", {}, described(study, row))),
      make("p", {}, numbers.join(", ")),
      make("p", { class: "study-dim" }, study.id[row]),
      ...(pointerType === "touch" && study.here[row] ? [make("p", {}, "Tap it again to open it.")] : []),
    );
    if (study.here[row]) view.hoverTimer = setTimeout(() => card.append(traversal(view, row)), HOVER_WAIT);
  }
  if (row >= 0) placeCard(card, clientX, clientY);
}

// The card stands in the page, not in the window: it scrolls with its plot.
function placeCard(card, x, y) {
  const isAbove = y > innerHeight / 2;
  card.style.left = `${scrollX + Math.max(8, Math.min(x + 16, innerWidth - CARD_WIDTH))}px`;
  card.style.top = `${scrollY + y + (isAbove ? -16 : 16)}px`;
  card.classList.toggle("above", isAbove);
}
