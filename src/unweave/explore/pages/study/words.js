// What the study page says about its runs next to the plots: counts, legend, list and pinned runs.

import { showLegend } from "./legend.js";
import { showList } from "./list.js";
import { showPinned } from "./tables.js";

export const HELP =
  "Drag over a plot to mark runs in all of them. Click a run to open it, shift-click to pin it. Keys: arrows, Enter, P, " +
  "and Escape to unmark. On a touch screen, tap a run to see it and again to open it; swipe sideways to mark runs.";

export function showWords(view) {
  const { study, shown, lit } = view;
  const count = (mask) => mask.reduce((sum, is) => sum + is, 0).toLocaleString("en");
  const marked = lit ? `, ${count(lit)} of them marked` : "";
  view.status.textContent = `${count(shown)} of ${study.runs.toLocaleString("en")} runs${marked}`;
  view.plots.forEach(({ canvas, layout }) => {
    canvas.setAttribute("aria-label", `${layout.y.name} against ${layout.x.name}, one mark a run. ${HELP}`);
  });
  keepFocus(view.legend, () => showLegend(view));
  keepFocus(view.list, () => showList(view));
  keepFocus(view.pair, () => showPinned(view));
}

// Replace the contents of an element; what had the focus keeps it if it is still there.
function keepFocus(element, fill) {
  const key = element.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  fill();
  if (key) element.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
}
