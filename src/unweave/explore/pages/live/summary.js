// How far all runs are: counts by state, a bar, the time left, and where to go when everything is finished.

import { make } from "../lib/elements.js";
import { clock, count, percent, STATES } from "./states.js";

export function liveSummary() {
  const bar = make("progress", { max: 1, value: 0, label: "Share of all steps that is done" });
  const pace = make("p", { role: "status" });
  const legend = make("ul", { className: "live-legend" });
  const done = make("p", { className: "message", hidden: true });
  const element = make("div", { className: "live-summary" }, bar, pace, legend, done);
  const update = (answer, runs, subject) => {
    bar.value = answer.done;
    setText(pace, paceOf(answer, runs));
    legend.replaceChildren(...legendOf(answer.counts));
    const link = whereNext(answer, runs, subject);
    done.hidden = !link;
    if (link && done.firstChild?.href !== link.href) done.replaceChildren(link);
  };
  return { element, update };
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function paceOf({ counts, done, rate, left }, runs) {
  if (!runs.size) return "No run has started yet. This page shows it when it does.";
  const parts = [`${percent(done)} of all steps`];
  if (rate) parts.push(`${count(rate)} steps/s${counts.training > 1 ? " of all runs together" : ""}`);
  if (left !== null) parts.push(`${clock(left)} left`);
  if (!counts.training) parts.push("nothing is being trained now");
  return parts.join(" · ");
}

function legendOf(counts) {
  return Object.entries(STATES)
    .filter(([state]) => counts[state])
    .map(([state, { sign, text, help }]) =>
      make(
        "li",
        { title: help },
        make("span", { className: `live-cell live-${state}`, textContent: sign, ariaHidden: "true" }),
        ` ${counts[state].toLocaleString("en")} ${text}`,
      ),
    );
}

// A link to the page of the finished run, or to that of the study as soon as it has a table.
function whereNext({ counts, table }, runs, subject) {
  if (counts.waiting || counts.training || counts.stopped) return null;
  const only = runs.size === 1 ? runs.values().next().value : null;
  if (only && ["trained", "measured"].includes(only.state))
    return make("a", {
      href: `#${new URLSearchParams({ run: only.id })}`,
      textContent: "The run has finished: move its latents",
    });
  if (!table || subject.kind === "run") return null;
  return make("a", { href: "#study={}", textContent: "All runs have finished: compare their scores" });
}
