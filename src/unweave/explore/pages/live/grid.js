// The runs as a table: a row for each method and setting, a column for each seed, coloured by state.

import { make } from "../lib/elements.js";
import { runNames } from "./runs.js";
import { percent, STATES } from "./states.js";

const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

// `choose(key)` is called when a cell is activated; `isShown(key)` says whether its curve is drawn.
export function stateGrid(runs, labels, choose, isShown) {
  const table = make("table", { className: "live-grid" });
  const element = make("div", { className: "live-scroll" }, table);
  const cells = new Map(); // buttons by key
  let names = new Map();
  let reached = null; // the key of the cell that the Tab key reaches: one of them only

  const rebuild = () => {
    const all = [...runs.values()];
    names = runNames(all, labels);
    const seeds = [...new Set(all.map((run) => run.seed))].sort((a, b) => a - b);
    const rows = Map.groupBy(all, (run) => names.get(run.key).text);
    const focused = document.activeElement?.dataset?.key;
    cells.clear();
    const head = make("tr", {}, make("th", { scope: "col", textContent: "seed" }));
    head.append(...seeds.map((seed) => make("th", { scope: "col", textContent: String(seed) })));
    const lines = [...rows.values()].map((some) => {
      const line = make("tr", {}, make("th", { scope: "row" }, ...names.get(some[0].key).nodes()));
      const bySeed = Map.groupBy(some, (run) => run.seed);
      for (const seed of seeds) line.append(make("td", {}, ...(bySeed.get(seed) ?? []).map(cell)));
      return line;
    });
    table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...lines));
    if (!cells.has(reached)) reached = cells.keys().next().value ?? null;
    update(cells.keys());
    cells.get(focused)?.focus();
  };

  const cell = (run) => {
    const button = make("button", { type: "button", tabIndex: -1, onclick: () => choose(run.key) });
    button.dataset.key = run.key;
    cells.set(run.key, button);
    return button;
  };

  const update = (keys) => {
    for (const key of keys) {
      const button = cells.get(key);
      const run = runs.get(key);
      if (!button || !run) continue;
      const { sign, text } = STATES[run.state];
      const far = run.state === "training" ? ` ${percent(run.step / run.steps)}` : "";
      const label = `${names.get(key).text}, seed ${run.seed}: ${text}${far}`;
      if (button.textContent !== sign) button.textContent = sign;
      button.className = `live-cell live-${run.state}`;
      button.title = label;
      button.tabIndex = key === reached ? 0 : -1;
      button.setAttribute("aria-label", label);
      button.setAttribute("aria-pressed", isShown(key));
    }
  };

  const reach = (button) => {
    const before = reached;
    reached = button.dataset.key;
    update([before, reached]);
  };
  table.addEventListener("focusin", ({ target }) => {
    if (target.dataset.key) reach(target);
  });
  table.onkeydown = (event) => {
    const move = ARROWS[event.key];
    const here = event.target.closest("td");
    if (!move || !here) return;
    event.preventDefault();
    neighbour(table, here, move)?.focus();
  };
  return { element, rebuild, update, name: (key) => names.get(key)?.text ?? "" };
}

// The next cell with a run in a direction.
function neighbour(table, here, [down, right]) {
  const rows = [...table.tBodies[0].rows];
  let row = rows.indexOf(here.parentElement);
  let column = here.cellIndex;
  while (true) {
    row += down;
    column += right;
    const cell = rows[row]?.cells[column];
    if (!cell || cell.tagName === "TH") return null;
    const button = cell.querySelector("button");
    if (button) return button;
  }
}
