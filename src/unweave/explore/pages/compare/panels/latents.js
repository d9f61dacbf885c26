// Aligned latents as sliders: one slider moves the matching latent of every run.

import { make, panel, slider } from "../../lib/elements.js";
import { placeOf } from "../alignment.js";
import { columnHead, runName, runsTable } from "../tables.js";

const HINT =
  "One slider moves the matching latents of all runs, in standard deviations of the mean codes. Latents are matched to " +
  "those of run A by the absolute correlation of mean codes on the same images; the number is the correlation. Where it " +
  "is negative, the latent is flipped: it moves the other way.";

export function latentsPanel(context) {
  const { record, runs, view, reset } = context;
  const rows = record.rows.map((matches, row) => sliderRow(context, matches, row));
  const isMatched = (row) => record.rows[row].filter(Boolean).length > 1;
  const [matched, alone] = [true, false].map((is) => rows.filter((_, row) => isMatched(row) === is));
  const element = panel(
    "compared-latents",
    "Aligned latents",
    make("p", { className: "hint", textContent: HINT }),
  );
  if (matched.length) element.append(tableOf(runs, matched, "Aligned latents"));
  else element.append(make("p", { textContent: "No latent of run A has a match in another run." }));
  if (alone.length) {
    const text = `${alone.length} latent${alone.length > 1 ? "s" : ""} without a match`;
    element.append(
      make(
        "details",
        { open: !matched.length },
        make("summary", { textContent: text }),
        tableOf(runs, alone, "Latents without a match"),
      ),
    );
  }
  const dead = deadText(runs);
  if (dead) element.append(make("p", { className: "hint", textContent: dead }));
  element.append(
    make("button", {
      type: "button",
      className: "reset",
      textContent: "Back to the image’s codes",
      onclick: reset,
    }),
  );
  return {
    element,
    update(what) {
      if (what !== "codes" && what !== "selection") return;
      rows.forEach(({ tr, input, output }, row) => {
        const place = placeOf(record, view, row);
        input.value = place;
        output.textContent = place.toFixed(2);
        tr.classList.toggle("selected", view.row === row);
      });
    },
  };
}

function tableOf(runs, rows, label) {
  const heads = [columnHead("slider"), ...runs.map((run) => columnHead(runName(run)))];
  return runsTable(
    label,
    heads,
    rows.map(({ tr }) => tr),
  );
}

function sliderRow({ record, runs, select, move }, matches, row) {
  const first = matches.findIndex(Boolean);
  const name = `${runs[first].letter} z${matches[first].latent}`;
  const { reach } = record;
  const { input, label, output } = slider(name, { min: -reach, max: reach, step: 0.01 });
  input.addEventListener("focus", () => select({ row }));
  input.addEventListener("input", () => {
    select({ row });
    move(row, Number(input.value));
  });
  const tr = make(
    "tr",
    {},
    make("th", { scope: "row" }, make("div", { className: "compared-slider" }, label, input, output)),
    ...matches.map((match, k) => matchCell(match, k === first)),
  );
  tr.dataset.row = row;
  return { tr, input, output };
}

function matchCell(match, isFirst) {
  if (!match) return make("td", { className: "hint", textContent: "no match" });
  const cell = make("td", {}, make("b", { textContent: `z${match.latent}` }));
  if (isFirst) return cell;
  const bar = make("span", { className: "bar" });
  bar.style.setProperty("--share", Math.abs(match.correlation));
  cell.append(
    ` ${match.correlation.toFixed(2).replace("-", "−")}${match.correlation < 0 ? " flipped" : ""}`,
    bar,
  );
  return cell;
}

function deadText(runs) {
  const parts = runs
    .filter(({ dead }) => dead.length)
    .map(({ letter, dead }) => `${letter}: ${dead.map((i) => `z${i}`).join(", ")}`);
  return parts.length ? `Dead latents, which are not matched: ${parts.join("; ")}.` : "";
}
