// The study page: all runs in three plots that share filters, a brush and the run under the pointer.
//
// All runs are read once; filters and drawing happen here, so that the page answers at once. What is chosen is
// kept in `state`. For plots: x, y, against and group (axes), colour and brush (a rectangle in one plot). Filters: only
// (words that stay) and ranges (numbers that stay). Also pins (up to eight run ids), sort (column and direction of the
// table) and find (text that runs in the table have).

import { OWN_SETTING } from "./axes.js";
import { MOST_COLOURED } from "./colours.js";
import { redraw, redrawSoon } from "./drawing.js";
import { make } from "./elements.js";
import { buildFilters, choice } from "./filters.js";
import { buildList } from "./list.js";
import { buildPlot } from "./pointer.js";
import { readStudy, startingState, WORDS } from "./runs.js";
import { savePng, saveSvg } from "./saving.js";
import { HELP } from "./words.js";

const WIDE = 960; // pixels from which on the filters stand next to the plots

let leave = null; // ends the listeners of the view before

export async function showStudy(root, state, setState, openRun) {
  leave?.abort();
  leave = new AbortController();
  const { signal } = leave;
  root.replaceChildren(make("p", { role: "status" }, "Reading the runs of the study…"));
  let study;
  try {
    study = await readStudy();
  } catch (error) {
    if (!signal.aborted) root.replaceChildren(make("p", { role: "alert" }, error.message));
    return;
  }
  if (signal.aborted) return;
  const view = { root, study, openRun, signal, state: startingState(study, state), current: -1 };
  view.change = (partial) => {
    Object.assign(view.state, partial);
    setState(partial);
    redrawSoon(view);
  };
  view.rebuild = () => {
    build(view);
    redraw(view);
  };
  build(view);
  new ResizeObserver(() => (signal.aborted ? null : redrawSoon(view))).observe(view.plots[0].box);
  document.addEventListener("themechange", () => redrawSoon(view), { signal });
  redraw(view);
}

function build(view) {
  const { study, state } = view;
  const scores = [...study.scoreNames, ...study.settingNames];
  const words = Object.keys(WORDS).filter(
    (name) => name in { data: 1, method: 1 } || study.words[name].names.length > 1,
  );
  const coloured = words.filter((name) => study.words[name].names.length <= MOST_COLOURED);
  const axis = (key, label, names) =>
    make(
      "label",
      {},
      label,
      choice(study, names, state[key], (value) => {
        view.change({ [key]: value, brush: key === "colour" ? state.brush : null });
      }),
    );
  view.status = make("p", { role: "status", "aria-live": "polite" });
  view.runText = make("p", { class: "study-run-text study-dim", role: "status", "aria-live": "polite" });
  view.legend = make("ul", { class: "study-legend", "aria-label": "What colours and shapes stand for" });
  view.pair = make("section", { class: "study-pair", "aria-label": "Pinned runs" });
  view.card = make("div", { class: "study-card", hidden: true });
  view.rangeList = make("div");
  view.plots = [0, 1, 2].map((place) => buildPlot(view, place));
  const axes = make(
    "div",
    { class: "study-axes", role: "group", "aria-label": "What the plots show" },
    axis("y", "vertical axis", scores),
    axis("x", "horizontal axis", scores),
    axis("group", "groups", [...words, "seed"]),
    axis("against", "settings", [OWN_SETTING, ...study.settingNames]),
    axis("colour", "colour by", [...coloured, ...scores]),
    make("button", { type: "button", click: () => savePng(view) }, "Save PNG"),
    make("button", { type: "button", click: () => saveSvg(view) }, "Save SVG"),
  );
  const notes = make(
    "details",
    {},
    make("summary", {}, `${study.notes.length} notes on missing scores`),
    ...study.notes.map((note) => make("p", { class: "study-dim" }, note)),
  );
  view.root.replaceChildren(
    make(
      "div",
      { class: "study" },
      make(
        "details",
        { open: innerWidth > WIDE },
        make("summary", {}, "Filters"),
        make(
          "form",
          { "aria-label": "Filters", submit: (event) => event.preventDefault() },
          ...buildFilters(view, words),
        ),
      ),
      make(
        "div",
        {},
        axes,
        view.legend,
        view.status,
        view.runText,
        make("div", { class: "study-plots" }, ...view.plots.map((plot) => plot.box)),
        make("p", { class: "study-dim" }, HELP),
        view.pair,
        ...buildList(view),
        ...(study.notes.length ? [notes] : []),
      ),
      view.card,
    ),
  );
}
