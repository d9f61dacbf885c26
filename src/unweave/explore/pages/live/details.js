// One run: how far it is, its last losses, its scores as they come, and what its latents do now.

import { make } from "../lib/elements.js";
import { bothNames, labelOf } from "../lib/names.js";
import { ask } from "../lib/source.js";
import { clock, count, isEnded, STATES, short } from "./states.js";

export function runDetails(labels) {
  const facts = make("p");
  const alarm = make("p", { className: "message", role: "alert", hidden: true });
  const link = make("p", { hidden: true }, make("a", { textContent: "Open the run: move its latents" }));
  const losses = make("table", { className: "live-table" });
  const scores = make("table", { className: "live-table" });
  const pictures = traversals();
  const element = make(
    "div",
    { className: "live-details" },
    facts,
    alarm,
    link,
    make("div", { className: "live-columns" }, losses, scores),
    pictures.element,
  );
  const update = (run, name, curve) => {
    facts.textContent = describe(run, name, labelOf(labels, "data", run.data));
    alarm.hidden = !run.error;
    alarm.textContent = run.error ? `${STATES[run.state].text}: ${run.error}` : "";
    link.hidden = !["trained", "measured"].includes(run.state);
    link.firstChild.href = `#${new URLSearchParams({ run: run.id })}`;
    const losing = Object.entries(curve?.last ?? {}).map(([term, value]) => [[term], value]);
    fill(losses, ["loss", "last value"], losing);
    fill(
      scores,
      ["score", "value"],
      (curve?.scores ?? []).map((score) => [bothNames(labels, "score", scoreName(score)), score.value]),
    );
    pictures.update(run, curve?.weights ?? "");
  };
  return { element, update };
}

function describe(run, name, data) {
  const pace = run.rate ? [`${short(run.rate)} steps/s`] : [];
  const left = run.left !== null && !isEnded(run) ? [`${clock(run.left)} left`] : [];
  const steps = `step ${count(run.step)} of ${count(run.steps)}`;
  return [`${name}, seed ${run.seed}, ${data}: ${STATES[run.state].text}`, steps, ...pace, ...left].join(
    " · ",
  );
}

const scoreName = ({ name, representation }) =>
  representation && representation !== "mean" ? `${name} (${representation})` : name;

// Rows are the nodes of a name, and a value.
function fill(table, heads, rows) {
  table.hidden = !rows.length;
  const text = JSON.stringify(
    rows.map(([name, value]) => [name.map((part) => part.textContent ?? part), value]),
  );
  if (table.dataset.shown === text) return; // a selection of text in it would be lost
  table.dataset.shown = text;
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col", textContent: text })));
  const lines = rows.map(([name, value]) =>
    make("tr", {}, make("th", { scope: "row" }, ...name), make("td", { textContent: short(value) })),
  );
  table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...lines));
}

// Drawn when it is opened, and again when the run has newer weights: it needs the time of a processor.
function traversals() {
  const image = make("img", { alt: "", hidden: true });
  const text = make("p", { className: "hint", role: "status" });
  const element = make("details", {}, make("summary", { textContent: "Traversals of the newest weights" }));
  element.append(text, image);
  let wanted = null; // what should be shown
  let drawn = ""; // what was asked for last
  const draw = async () => {
    if (!element.open || !wanted || drawn === wanted.of) return;
    const { of, key, weights } = wanted;
    drawn = of;
    if (!weights) {
      image.hidden = true;
      text.textContent = "There is no checkpoint yet.";
      return;
    }
    text.textContent = "Drawing …";
    try {
      const answer = await ask(`/api/live/traversals?${new URLSearchParams({ run: key })}`);
      const blob = await answer.blob();
      if (drawn !== of) return;
      URL.revokeObjectURL(image.src);
      image.src = URL.createObjectURL(blob);
      const step = weights.match(/\d+/)?.[0];
      image.alt = "One row for each latent: what the decoder shows while it moves.";
      text.textContent = step ? `Checkpoint after ${count(step)} steps.` : "Trained weights.";
      image.hidden = false;
    } catch (error) {
      if (drawn === of) text.textContent = error.message;
    }
  };
  element.ontoggle = draw;
  const update = ({ key }, weights) => {
    wanted = { key, weights, of: `${key} ${weights}` };
    draw();
  };
  return { element, update };
}
