// Which view is shown: the one that the address names, or that of the run or study that was named.

import { acceptFiles, backButton } from "./lib/drop.js";
import { make } from "./lib/elements.js";
import { focusHeading, skipTo } from "./lib/focus.js";
import { showOpening } from "./lib/opening.js";
import { askJson } from "./lib/source.js";
import { readState } from "./lib/state.js";

// A view is a module with `show({ view, subject, state, place })`. It fills the element `view` and calls `place` to put it
// on the page (false: another view was asked for meanwhile). It may return a function to be called when it is left. Its
// name is the key in the address that shows it, or a kind of subject.
const VIEWS = {
  compare: () => import("./views/compare.js"),
  run: () => import("./views/run.js"),
  study: () => import("./views/study.js"),
  live: () => import("./views/live.js"),
};

const main = document.getElementById("main");
const home = document.getElementById("home");
const training = document.getElementById("training");
const dropped = document.getElementById("dropped");
let leave = () => {};
let shown = 0; // how many views were asked for: only the last one is shown

async function show() {
  const mine = ++shown;
  leave();
  leave = () => {};
  const opened = showOpening(main);
  try {
    const subject = await askJson("/api/subject");
    const state = readState();
    const first = subject.live ? "live" : subject.kind;
    const name = Object.keys(VIEWS).find((key) => state.has(key)) ?? first;
    nameThePage(subject, name === first, state);
    dropped.replaceChildren(...(subject.before ? [backButton(subject, showFirst)] : []));
    training.hidden = !subject.logs || name === "live";
    const view = make("div");
    const place = () => {
      if (mine === shown) main.replaceChildren(view);
      return mine === shown;
    };
    const { show: fill } = await VIEWS[name]();
    const end = (await fill({ view, subject, state, place })) ?? (() => {});
    if (mine !== shown) return end();
    leave = end;
    if (mine > 1) focusHeading(main); // what had the focus is gone
  } catch (error) {
    if (mine === shown) say(error.message);
  } finally {
    opened();
  }
}

function nameThePage(subject, isFirst, state) {
  document.getElementById("where").textContent = subject.name;
  document.title = `${subject.name} – unweave explore`;
  home.textContent = isFirst ? "unweave" : `← ${subject.kind === "run" ? "the run" : "all runs"}`;
  home.href = !isFirst && state.get("study") ? `#${new URLSearchParams({ study: state.get("study") })}` : "#";
}

function say(sentence) {
  const message = make("p", { className: "message", role: "alert", textContent: sentence });
  main.replaceChildren(message, make("button", { type: "button", textContent: "Try again", onclick: show }));
}

// Shows the subject from its start, whatever the address names.
function showFirst() {
  history.replaceState(null, "", location.pathname);
  show();
}

skipTo(main);
acceptFiles(showFirst, (error) => say(error.message));
addEventListener("hashchange", show);
show();
