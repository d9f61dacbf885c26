// The settings that are not the same in all runs.

import { make, panel } from "../../lib/elements.js";
import { columnHead, runName, runsTable } from "../tables.js";

export function settingsPanel({ record, runs }) {
  const element = panel("compared-settings", "Settings that differ");
  if (!record.settings.length)
    element.append(make("p", { textContent: "All settings are the same in all runs." }));
  else element.append(table(record.settings, runs));
  return { element, update() {} };
}

function table(settings, runs) {
  const heads = [columnHead("setting"), ...runs.map((run) => columnHead(runName(run)))];
  const rows = settings.map(({ name, values }) =>
    make(
      "tr",
      {},
      make("th", { scope: "row", textContent: name }),
      ...values.map((value) =>
        make("td", { textContent: value ?? "–", title: value === null ? "not a setting of this run" : "" }),
      ),
    ),
  );
  return runsTable("Settings that differ", heads, rows);
}
