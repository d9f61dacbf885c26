// Which view is shown: the run or the study that was named, or one run of the study.

import { make } from "./lib/elements.js";
import { askJson, serverSource } from "./lib/source.js";
import { readState, writeState } from "./lib/state.js";
import { showRun } from "./run/run.js";

const main = document.getElementById("main");
const home = document.getElementById("home");
let leave = () => {};
let shown = 0; // how many views were asked for: only the last one is shown

async function show() {
  const mine = ++shown;
  leave();
  leave = () => {};
  try {
    const subject = await askJson("/api/subject");
    const state = readState();
    const run = state.get("run") ?? subject.run;
    nameThePage(subject, run, state);
    const view = make("div");
    if (!run) {
      const { showStudy } = await import("./study/study.js");
      if (mine !== shown) return;
      main.replaceChildren(view);
      await showStudy(view, ...studyState(state));
      return;
    }
    const study = state.get("study");
    const end = await showRun(view, serverSource(run), study ? { run, study } : { run });
    if (mine !== shown) {
      end();
      return;
    }
    leave = end;
    main.replaceChildren(view);
  } catch (error) {
    if (mine === shown) say(error.message);
  }
}

function nameThePage(subject, run, state) {
  const inStudy = subject.kind === "study" && run;
  document.getElementById("where").textContent = subject.name;
  document.title = `${subject.name} – unweave explore`;
  home.textContent = inStudy ? "← all runs" : "unweave";
  home.href = inStudy && state.get("study") ? `#${new URLSearchParams({ study: state.get("study") })}` : "#";
}

// What is chosen in the study, a function that changes some of it, and one that opens a run.
function studyState(state) {
  let chosen = {};
  try {
    chosen = Object(JSON.parse(state.get("study") ?? "{}"));
  } catch {
    // The address was cut off: start from the defaults.
  }
  const address = () => ({ study: JSON.stringify(chosen) });
  const change = (partial) => {
    Object.assign(chosen, partial);
    writeState(new URLSearchParams(address()));
  };
  return [{ ...chosen }, change, (run) => (location.hash = new URLSearchParams({ run, ...address() }))];
}

function say(sentence) {
  const message = make("p", { className: "message", role: "alert", textContent: sentence });
  main.replaceChildren(message, make("button", { type: "button", textContent: "Try again", onclick: show }));
}

addEventListener("hashchange", show);
show();
