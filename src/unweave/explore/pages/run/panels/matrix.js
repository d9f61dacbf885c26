// How much each latent knows of each factor.

import { colours, sized } from "../../lib/drawing.js";
import { make, panel, saver } from "../../lib/elements.js";
import { oneTabStop } from "../../lib/focus.js";

export function matrixPanel({ run, view, select }) {
  const dead = run.dead.some(Boolean)
    ? " Rows without colour are dead latents: their mean codes may depend on a factor, but noise hides it in samples."
    : "";
  const caption = `Mutual information of mean codes and factors in nats, from ${run.points.toLocaleString("en")} images, corrected for chance. A cell selects its latent and its factor.${dead}`;
  const canvas = make("canvas");
  const element = panel(
    "matrix",
    "Which latent knows which factor",
    make("p", { className: "hint", textContent: caption }),
  );
  const head = make(
    "tr",
    {},
    make("td"),
    ...run.factors.map((f) => make("th", { scope: "col", textContent: f.name })),
  );
  const most = run.factors.map((f) => Math.log(Math.max(f.size, 2)));
  // A colour stands for what a latent knows of a factor. A dead latent knows nothing, whatever its mean code does.
  const share = (i, j) => (run.dead[i] ? 0 : Math.min(1, run.information[i][j] / most[j]));
  const cells = [];
  const body = run.order.map((i) => {
    const row = make(
      "tr",
      { className: run.dead[i] ? "faded" : "" },
      make("th", { scope: "row", textContent: `z${i}` }),
    );
    run.information[i].forEach((value, j) => {
      const label = `z${i} and ${run.factors[j].name}: ${value.toFixed(2)} nats`;
      const button = make("button", {
        type: "button",
        label,
        textContent: value.toFixed(2),
        onclick: () => select({ latent: i, factor: j }),
      });
      button.style.setProperty("--share", share(i, j));
      button.dataset.cell = `${i},${j}`;
      row.append(make("td", {}, button));
      cells.push({ i, j, button });
    });
    return row;
  });
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
  table.style.setProperty("--columns", run.factors.length);
  oneTabStop(
    table,
    run.order.map((i) => cells.filter((cell) => cell.i === i).map(({ button }) => button)),
  );
  element.append(make("div", { className: "scroll" }, table), saver(canvas, `${run.name}-information`));
  return {
    element,
    canvas,
    update(what) {
      if (what !== "selection" && what !== "theme") return;
      drawMatrix(canvas, run, share);
      for (const { i, j, button } of cells) {
        button.setAttribute("aria-pressed", view.latent === i && view.factor === j);
        button.classList.toggle("crossed", view.latent === i || view.factor === j);
      }
    },
  };
}

function drawMatrix(canvas, run, shareOf) {
  const [wide, high, left, top] = [76, 28, 48, 30];
  const pen = sized(canvas, left + wide * run.factors.length, top + high * run.latents);
  const { ink, accent, deepest } = colours();
  run.factors.forEach((factor, j) => {
    pen.fillStyle = ink;
    pen.fillText(factor.name.slice(0, 11), left + j * wide + 4, top / 2);
    run.order.forEach((i, row) => {
      const share = shareOf(i, j);
      pen.globalAlpha = deepest * share;
      pen.fillStyle = accent;
      pen.fillRect(left + j * wide, top + row * high, wide - 2, high - 2);
      pen.globalAlpha = 1;
      pen.fillStyle = ink;
      pen.fillText(run.information[i][j].toFixed(2), left + j * wide + 20, top + (row + 0.5) * high);
    });
  });
  pen.fillStyle = ink;
  run.order.forEach((i, row) => {
    pen.fillText(`z${i}`, 10, top + (row + 0.5) * high);
  });
}
