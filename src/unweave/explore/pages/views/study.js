// The view of all runs of a study.

import { make } from "../lib/elements.js";
import { writeState } from "../lib/state.js";
import { showStudy } from "../study/study.js";

export async function show({ view, subject, state, place }) {
  const study = make("div");
  view.replaceChildren(make("h1", { textContent: subject.name }), study);
  if (place()) await showStudy(study, ...studyState(state));
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
