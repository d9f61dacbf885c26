// Runs while they train: what the server says every other second, and what the reader wants to see of it.

import { make, panel } from "../lib/elements.js";
import { failureMessage } from "../lib/failures.js";
import { askJson } from "../lib/source.js";
import { writeState } from "../lib/state.js";
import { lossCharts, MOST_LINES } from "./charts.js";
import { chartControls, lineLegend } from "./controls.js";
import { runDetails } from "./details.js";
import { stateGrid } from "./grid.js";
import { liveRuns } from "./runs.js";
import { liveSummary } from "./summary.js";

const OFTEN = 2000; // milliseconds between two questions while something trains
const SELDOM = 6000; // else

export function showLive(view, subject, state) {
  const { runs, curves, labels, address, take } = liveRuns();
  const chosen = (state.get("live") ?? "").split(",").filter(Boolean).slice(0, MOST_LINES);
  const options = { log: state.has("log"), smoothing: Number(state.get("smooth")) || 0 };
  let shown = chosen; // keys of the runs whose curves are drawn
  let focus = state.get("focus") ?? shown[0] ?? null;
  let picked = shown.length > 0; // by the reader; else the page follows what trains
  let timer = 0;
  let ended = false;

  const name = (key) => `${grid.name(key)}, seed ${runs.get(key)?.seed}`;
  const lines = () => shown.map((key) => ({ key, name: name(key), curve: curves.get(key) }));
  const remember = () => {
    const kept = { live: picked ? shown.join(",") : "", ...(focus && picked ? { focus } : {}) };
    if (options.log) kept.log = 1;
    if (options.smoothing) kept.smooth = options.smoothing;
    writeState(new URLSearchParams(kept));
  };
  const choose = (key) => {
    if (shown.includes(key) && focus === key && shown.length > 1) {
      shown = shown.filter((one) => one !== key);
      focus = shown[0];
    } else {
      if (!shown.includes(key)) shown = [...shown, key].slice(-MOST_LINES);
      focus = key;
    }
    picked = true;
    remember();
    grid.update(runs.keys());
    draw();
    poll();
  };

  const summary = liveSummary();
  const grid = stateGrid(runs, labels, choose, (key) => shown.includes(key));
  const charts = lossCharts(lines, () => options);
  const controls = chartControls(options, () => {
    remember();
    charts.update();
  });
  const legend = lineLegend(choose);
  const details = runDetails(labels);
  const { element: message, report } = failureMessage((failed) => view.classList.toggle("stale", failed));
  const gridPanel = panel("live-runs", "Runs", grid.element);
  gridPanel.append(
    make("p", {
      className: "hint",
      textContent: `A click shows a run's losses; up to ${MOST_LINES} at once.`,
    }),
  );
  const lossPanel = panel("live-losses", "Losses", controls, legend.element, charts.element);
  const runPanel = panel("live-run", "Run", details.element);
  const title = make("h1", { textContent: `Training: ${subject.name}` });
  view.append(message, title, summary.element, gridPanel, lossPanel, runPanel);
  view.classList.add("live");

  const draw = () => {
    legend.update(lines(), focus);
    charts.update();
    const run = runs.get(focus);
    runPanel.hidden = !run;
    if (run) details.update(run, grid.name(focus), curves.get(focus));
  };

  const follow = () => {
    shown = shown.filter((key) => runs.has(key));
    if (!picked) shown = followed(runs, shown);
    if (!shown.includes(focus)) focus = shown[0] ?? null;
  };

  const poll = async () => {
    clearTimeout(timer);
    try {
      const answer = await askJson(address(shown));
      if (ended) return;
      const others = take(answer);
      const before = shown.join();
      follow();
      if (others) grid.rebuild();
      else grid.update(answer.runs.map((run) => run.key));
      if (before !== shown.join()) grid.update(runs.keys());
      for (const part of [gridPanel, lossPanel]) part.hidden = runs.size < (part === gridPanel ? 2 : 1);
      summary.update(answer, runs, subject);
      draw();
      report(null, poll);
      const isBehind = shown.some((key) => !curves.get(key)?.complete);
      timer = setTimeout(poll, isBehind ? 0 : answer.counts.training ? OFTEN : SELDOM);
    } catch (error) {
      if (ended) return;
      report(error, poll);
      timer = setTimeout(poll, SELDOM);
    }
  };

  const redraw = () => charts.update();
  const themes = new MutationObserver(redraw);
  themes.observe(document.documentElement, { attributes: true });
  addEventListener("resize", redraw);
  poll();
  return () => {
    ended = true;
    clearTimeout(timer);
    themes.disconnect();
    removeEventListener("resize", redraw);
  };
}

// The runs that train now, those that are shown already first; where none trains, those that were trained last.
function followed(runs, shown) {
  const all = [...runs.values()];
  const training = all.filter((run) => run.state === "training");
  const begun = all.filter((run) => run.state !== "waiting");
  const keys = (training.length ? training : begun).map((run) => run.key);
  const kept = shown.filter((key) => keys.includes(key));
  return [...kept, ...keys.filter((key) => !kept.includes(key))].slice(0, MOST_LINES);
}
