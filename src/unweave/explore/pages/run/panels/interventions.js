// Interventions: one true factor takes all its values, the others stay; which latents move?

import { colours, sized, tile } from "../../lib/drawing.js";
import { latest, make, panel, saver, scrollBox } from "../../lib/elements.js";
import { fewOrAll } from "../few.js";

const [LEFT, ROW, WIDTH, RIGHT, SHOWN] = [60, 36, 460, 90, 8];
const MOST_ROWS = 10;

// What a factor that changes moves, in words; moves that are shown as 0.00 are none.
function finding(factor, order, moves) {
  const [first, second] = order.filter((i) => moves[i] >= 0.005).map((i) => `z${i}`);
  const by = (place) => moves[order[place]].toFixed(2);
  if (!first) return `Changing ${factor} moves no latent by 0.01 or more.`;
  return `Changing ${factor} moves ${first} most, by ${by(0)}${second ? `, then ${second}, by ${by(1)}` : ""}.`;
}

export function interventionPanel({ run, view, source, report, select }) {
  const canvas = make("canvas", { role: "img", className: "wide" });
  const sentence = make("p", { role: "status", className: "finding" });
  const choice = make("div", { className: "choice", role: "group", label: "the factor that changes" });
  run.factors.forEach((factor, j) => {
    choice.append(
      make("button", { type: "button", textContent: factor.name, onclick: () => select({ factor: j }) }),
    );
  });
  let found = null;
  const few = fewOrAll(Math.min(MOST_ROWS, run.latents), run.latents, "those that move most", () => redraw());
  const redraw = () => {
    if (found) draw(canvas, view, found, few.showsAll() ? found.order : found.order.slice(0, MOST_ROWS));
  };
  const update = latest(
    async () => {
      const factor = view.factor;
      const { values, mean } = await source.intervene(view.factors, factor);
      const moves = view.codes.map((_, i) => spread(mean.map((code) => code[i])));
      const order = run.order.toSorted((a, b) => moves[b] - moves[a]);
      found = { factor, values, mean, moves, order, images: await someImages(source, view, factor, values) };
      const name = run.factors[factor].name;
      sentence.textContent = finding(name, order, moves);
      canvas.setAttribute(
        "aria-label",
        `${sentence.textContent} Each line is a latent’s mean code over the values of ${name}.`,
      );
      redraw();
    },
    report,
    60,
  );
  const hint = source.encode
    ? "One true factor takes all its values, the others stay as they are chosen above. Each line is a latent’s mean code."
    : "One true factor of the first image takes all its values. Each line is a latent’s mean code.";
  const element = panel(
    "intervention",
    "Change one true factor",
    make("p", { className: "hint", textContent: hint }),
    choice,
    sentence,
    few.element,
    scrollBox(canvas),
    saver(canvas, `${run.name}-intervention`),
  );
  return {
    element,
    canvas,
    update(what) {
      [...choice.children].forEach((button, j) => {
        button.setAttribute("aria-pressed", view.factor === j);
      });
      if (what === "factors" || (what === "selection" && found?.factor !== view.factor)) update();
      else if (what !== "codes") redraw();
    },
  };
}

const spread = (values) => Math.max(...values) - Math.min(...values);

async function someImages(source, view, factor, values) {
  if (!source.observe) return null;
  const places = [
    ...new Set(Array.from({ length: SHOWN }, (_, s) => Math.round((s * (values.length - 1)) / (SHOWN - 1)))),
  ];
  const factors = places.map((place) => view.factors.map((v, j) => (j === factor ? values[place] : v)));
  return { places, batch: await source.observe(factors) };
}

function draw(canvas, view, { values, mean, moves, order, images }, shown) {
  const size = 44;
  const top = images ? size + 14 : 8;
  const pen = sized(canvas, LEFT + WIDTH + RIGHT, top + shown.length * ROW);
  const { ink, dim, accent, line } = colours();
  const inset = size / 2;
  const x = (place) => LEFT + inset + ((WIDTH - size) * place) / Math.max(values.length - 1, 1);
  images?.places.forEach((place, s) => {
    pen.drawImage(tile(images.batch, s), x(place) - size / 2, 2, size - 2, size - 2);
  });
  const scale = (ROW - 8) / Math.max(moves[order[0]], 1);
  shown.forEach((i, r) => {
    const middle = top + (r + 0.5) * ROW;
    const codes = mean.map((code) => code[i]);
    const centre = (Math.max(...codes) + Math.min(...codes)) / 2;
    pen.strokeStyle = line;
    pen.lineWidth = 1;
    pen.strokeRect(LEFT, top + r * ROW + 2, WIDTH, ROW - 4);
    pen.strokeStyle = view.latent === i ? accent : ink;
    pen.lineWidth = view.latent === i ? 3 : 1.5;
    pen.beginPath();
    codes.forEach((z, place) => {
      pen.lineTo(x(place), middle - (z - centre) * scale);
    });
    pen.stroke();
    pen.fillStyle = view.latent === i ? accent : ink;
    pen.fillText(`z${i}`, 12, middle);
    pen.fillStyle = dim;
    pen.fillText(`moves ${moves[i].toFixed(2)}`, LEFT + WIDTH + 8, middle);
  });
}
