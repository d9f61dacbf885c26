// The view of runs while they train.

import { showLive } from "../live/live.js";

export async function show({ view, subject, state, place }) {
  if (place()) return showLive(view, subject, state);
}
