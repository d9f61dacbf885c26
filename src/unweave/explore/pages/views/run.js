// The view of one run, also of one run of a study.

import { serverSource } from "../lib/source.js";
import { showRun } from "../run/run.js";

export async function show({ view, subject, state, place }) {
  const run = state.get("run") ?? subject.run;
  const study = state.get("study");
  const end = await showRun(view, serverSource(run), study ? { run, study } : { run });
  place();
  return end;
}
