// The view of 2 to 8 runs side by side: those of the address, or those that the subject consists of.

import { showComparison } from "../compare/compare.js";

export async function show({ view, subject, state, place }) {
  const ids = state.get("compare")?.split(",").filter(Boolean) ?? subject.runs;
  const study = state.get("study");
  const end = await showComparison(view, ids, study ? { study } : {});
  place();
  return end;
}
