// The three plots of the study page, drawn again when something changes.

import { numberAxis, OWN_SETTING, settingAxis, wordAxis } from "./axes.js";
import { colouring } from "./colours.js";
import { canvasPen } from "./pens.js";
import { drawOver, drawPlot, inRectangle, layOut, rectanglePixels, themeOf } from "./plots.js";
import { columnLabel, shownRuns, WORDS, wordLabel } from "./runs.js";
import { showWords } from "./words.js";

export function redrawSoon(view) {
  view.waiting ??= requestAnimationFrame(() => {
    view.waiting = null;
    if (!view.signal.aborted) redraw(view);
  });
}

function axisOf(study, name, shown) {
  const isSetting = study.settingNames.includes(name);
  return numberAxis(columnLabel(study, name), study.numbers[name], shown, {
    log: isSetting && name !== "seed",
    jitter: isSetting ? 5 : 0,
  });
}

// The words of a kind with their display names.
function labelled({ words, ...study }, kind) {
  const { names, codes } = words[kind];
  return { names: names.map((name) => wordLabel(study, kind, name)), codes };
}

export function redraw(view) {
  const { study, state } = view;
  if (!view.plots[0].box.clientWidth) return; // not in the page yet: it is drawn when it has a size
  const shown = shownRuns(study, state);
  const theme = themeOf(view.root);
  const up = axisOf(study, state.y, shown);
  const group =
    state.group === "seed"
      ? axisOf(study, "seed", shown)
      : wordAxis(WORDS[state.group], labelled(study, state.group), shown);
  const against =
    state.against === OWN_SETTING ? settingAxis(study, shown) : axisOf(study, state.against, shown);
  [axisOf(study, state.x, shown), group, against].forEach((across, place) => {
    const { box } = view.plots[place];
    view.plots[place].layout = layOut(box.clientWidth, box.clientHeight, across, up, shown);
  });
  const brushed = state.brush && view.plots[state.brush.plot].layout;
  const lit = brushed ? inRectangle(brushed, rectanglePixels(brushed, state.brush)) : null;
  Object.assign(view, {
    shown,
    lit,
    theme,
    drawing: { ...colouring(study, state.colour, theme, shown), order: study.order, lit, theme },
  });
  for (const { canvas, layout } of view.plots)
    drawPlot(canvasPen(canvas, layout.width, layout.height, theme.paper), layout, view.drawing);
  drawAllOver(view);
  showWords(view);
}

export function over(view, place) {
  const { state, study, theme } = view;
  const { layout } = view.plots[place];
  const rings = [
    ...state.pins.map((id) => study.rowOf.get(id)),
    ...(view.current >= 0 ? [view.current] : []),
  ];
  const rectangle = state.brush?.plot === place ? rectanglePixels(layout, state.brush) : null;
  return { rings, rectangle, theme };
}

export function drawAllOver(view) {
  view.plots.forEach(({ above, layout }, place) => {
    drawOver(canvasPen(above, layout.width, layout.height, null), layout, over(view, place));
  });
}
