// The panels of a run. Each makes its element once, and has update(what), called after something has changed:
// "codes" (a latent moved), "factors" (another true image), "selection" (another latent or factor), "theme".

import { colours, paint, savePng, sized, tile } from "./drawing.js";

const COLUMNS = 11; // of the traversal grid
const MOST_ROWS = 20;
let made = 0; // for ids that no other element has

export function make(tag, properties = {}, ...children) {
  const { label, pressed, role, ...rest } = properties;
  const element = Object.assign(document.createElement(tag), rest);
  if (label) element.setAttribute("aria-label", label);
  if (role) element.setAttribute("role", role);
  if (pressed !== undefined) element.setAttribute("aria-pressed", pressed);
  element.append(...children);
  return element;
}

export function panel(name, title, ...children) {
  const id = `title${++made}`;
  const element = make("section", { className: `panel ${name}` }, make("h2", { id, textContent: title }), ...children);
  element.setAttribute("aria-labelledby", id);
  return element;
}

// Work that may be asked for faster than it can be done: what was asked last is always done, nothing piles up.
// With a pause, it waits until nothing was asked for so many milliseconds.
export function latest(work, report, pause = 0) {
  let busy = false;
  let again = false;
  return async () => {
    again = true;
    if (busy) return;
    busy = true;
    while (again) {
      again = false;
      if (pause) await new Promise((resolve) => setTimeout(resolve, pause));
      if (again && pause) continue;
      try {
        await work();
        report(null);
      } catch (error) {
        report(error);
      }
    }
    busy = false;
  };
}

function slider(text, properties) {
  const id = `slider${++made}`;
  const input = make("input", { type: "range", id, ...properties });
  return { input, label: make("label", { htmlFor: id, textContent: text }), output: make("output", { htmlFor: id }) };
}

export const saver = (canvas, name) =>
  make("button", { type: "button", className: "save", textContent: "Save PNG", onclick: () => savePng(canvas, name) });

export function picturesPanel({ run, view, source, report }) {
  const picture = (text) => make("canvas", { role: "img", label: text, className: "picture" });
  const [truth, decoded] = [picture("the true image"), picture("the decoded image")];
  const element = panel("pictures", "Image");
  if (source.observe && view.factors) {
    element.append(make("figure", {}, truth, make("figcaption", { textContent: "true image" })));
  }
  element.append(make("figure", {}, decoded, make("figcaption", { textContent: "decoded from the sliders" })));
  const decode = latest(async () => {
    paint(decoded, await source.decode([view.codes]));
    decoded.dataset.codes = view.codes.map((z) => z.toFixed(2)).join(","); // what is shown now
    decoded.setAttribute("aria-label", `the decoded image of ${run.order.map((i) => `z${i} ${view.codes[i].toFixed(1)}`).join(", ")}`);
  }, report);
  const observe = latest(async () => paint(truth, await source.observe([view.factors])), report);
  return {
    element,
    canvas: decoded,
    update(what) {
      if (what === "codes") decode();
      if (what === "factors" && source.observe && view.factors) observe();
    },
  };
}

const valueText = (factor, value) => factor.labels?.[value] ?? `${value + 1} of ${factor.size}`;

export function factorsPanel({ run, view, select, chooseFactors }) {
  const element = panel("factors", "True factors");
  element.append(make("p", { className: "hint", textContent: "Choose a true image; the latents start from its code." }));
  const rows = run.factors.map((factor, j) => {
    const { input, label, output } = slider(factor.name, { min: 0, max: factor.size - 1, step: 1 });
    input.addEventListener("focus", () => select({ factor: j }));
    input.addEventListener("input", () => {
      view.factors[j] = Number(input.value);
      chooseFactors();
    });
    const row = make("div", { className: "slider factor" }, label, input, output);
    element.append(row);
    return { row, input, output, factor };
  });
  return {
    element,
    update(what) {
      if (what !== "factors" && what !== "selection") return;
      rows.forEach(({ row, input, output, factor }, j) => {
        input.value = view.factors[j];
        output.textContent = valueText(factor, view.factors[j]);
        input.setAttribute("aria-valuetext", output.textContent);
        row.classList.toggle("selected", view.factor === j);
      });
    },
  };
}

export function examplesPanel({ run, view, moved }) {
  const element = panel("examples", "Start from an image");
  const row = make("div", { className: "tiles" });
  run.examples.forEach(({ images, code }, i) => {
    const button = make("button", { type: "button", label: `start from image ${i + 1}` }, tile(images, 0));
    button.addEventListener("click", () => {
      view.codes = [...code];
      moved();
    });
    row.append(button);
  });
  element.append(row);
  return { element, update() {} };
}

export function latentsPanel({ run, view, select, moved, walk, reset }) {
  const element = panel("latents", "Latents");
  const best = Math.max(...(run.kl ?? [1]), 1e-9);
  const rows = [];
  const dead = make("div");
  for (const i of run.order) {
    const [min, max] = run.ranges[i];
    const { input, label, output } = slider(`z${i}`, { min, max, step: Math.min(0.01, (max - min) / 500) });
    input.addEventListener("focus", () => select({ latent: i }));
    input.addEventListener("input", () => {
      view.codes[i] = Number(input.value);
      walk(null);
      moved();
    });
    const bar = make("span", { className: "bar" });
    bar.style.setProperty("--share", run.kl ? run.kl[i] / best : 0);
    const worth = run.kl ? `${run.kl[i].toFixed(2)} nats` : "";
    const button = make("button", {
      type: "button", textContent: "walk", pressed: "false", label: `walk z${i}`, onclick: () => walk(view.walking === i ? null : i),
    });
    const row = make("div", { className: "slider latent" }, label, make("span", { className: "worth", title: "KL divergence from the prior" }, bar, worth), input, output, button);
    row.dataset.latent = i;
    (run.dead[i] ? dead : element).append(row);
    rows.push({ i, row, input, output, button });
  }
  const count = run.dead.filter(Boolean).length;
  if (count) {
    const all = count === run.latents;
    const text = `${count} dead latent${count > 1 ? "s" : ""}: less than 0.01 nats of information`;
    element.append(make("details", { open: all, className: "dead" }, make("summary", { textContent: text }), dead));
  }
  element.append(make("button", { type: "button", className: "reset", textContent: "Back to the image’s code", onclick: reset }));
  return {
    element,
    update(what) {
      if (what === "factors") return;
      for (const { i, row, input, output, button } of rows) {
        input.value = view.codes[i];
        output.textContent = view.codes[i].toFixed(2);
        button.setAttribute("aria-pressed", view.walking === i);
        row.classList.toggle("selected", view.latent === i);
      }
    },
  };
}

const shownLatents = (run) => {
  const live = run.order.filter((i) => !run.dead[i]);
  return (live.length ? live : run.order).slice(0, MOST_ROWS);
};

export function matrixPanel({ run, view, select }) {
  const caption = `Mutual information in nats, from ${run.points.toLocaleString("en")} images. A cell selects its latent and its factor.`;
  const canvas = make("canvas");
  const element = panel("matrix", "Which latent knows which factor", make("p", { className: "hint", textContent: caption }));
  const head = make("tr", {}, make("td"), ...run.factors.map((f) => make("th", { scope: "col", textContent: f.name })));
  const most = run.factors.map((f) => Math.log(Math.max(f.size, 2)));
  const cells = [];
  const body = run.order.map((i) => {
    const row = make("tr", { className: run.dead[i] ? "faded" : "" }, make("th", { scope: "row", textContent: `z${i}` }));
    run.information[i].forEach((value, j) => {
      const label = `z${i} and ${run.factors[j].name}: ${value.toFixed(2)} nats`;
      const button = make("button", { type: "button", label, textContent: value.toFixed(2), onclick: () => select({ latent: i, factor: j }) });
      button.style.setProperty("--share", Math.min(1, value / most[j]));
      button.classList.toggle("strong", value / most[j] > 0.65);
      button.dataset.cell = `${i},${j}`;
      row.append(make("td", {}, button));
      cells.push({ i, j, button });
    });
    return row;
  });
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
  table.addEventListener("keydown", (event) => moveInTable(event, run.factors.length, cells));
  element.append(make("div", { className: "scroll" }, table), saver(canvas, `${run.name}-information`));
  return {
    element,
    canvas,
    update(what) {
      if (what !== "selection" && what !== "theme") return;
      drawMatrix(canvas, run, most);
      for (const { i, j, button } of cells) {
        button.setAttribute("aria-pressed", view.latent === i && view.factor === j);
        button.classList.toggle("crossed", view.latent === i || view.factor === j);
      }
    },
  };
}

function moveInTable(event, columns, cells) {
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
  const at = cells.findIndex(({ button }) => button === document.activeElement);
  if (!step || at < 0 || !cells[at + step]) return;
  event.preventDefault();
  cells[at + step].button.focus();
}

function drawMatrix(canvas, run, most) {
  const [wide, high, left, top] = [76, 28, 48, 30];
  const pen = sized(canvas, left + wide * run.factors.length, top + high * run.latents);
  const { ink, accent, paper } = colours();
  run.factors.forEach((factor, j) => {
    pen.fillStyle = ink;
    pen.fillText(factor.name.slice(0, 11), left + j * wide + 4, top / 2);
    run.order.forEach((i, row) => {
      const share = Math.min(1, run.information[i][j] / most[j]);
      pen.globalAlpha = share;
      pen.fillStyle = accent;
      pen.fillRect(left + j * wide, top + row * high, wide - 2, high - 2);
      pen.globalAlpha = 1;
      pen.fillStyle = share > 0.65 ? paper : ink;
      pen.fillText(run.information[i][j].toFixed(2), left + j * wide + 20, top + (row + 0.5) * high);
    });
  });
  pen.fillStyle = ink;
  run.order.forEach((i, row) => pen.fillText(`z${i}`, 10, top + (row + 0.5) * high));
}

export function traversalPanel({ run, view, source, report, select, moved }) {
  const [left, top, size] = [90, 26, 64];
  const latents = shownLatents(run);
  // With a prior all latents go over the same numbers; without one, each over those that images have.
  const alike = latents.every((i) => run.spans[i].every((end, k) => end === run.spans[latents[0]][k]));
  const columns = Array.from({ length: COLUMNS }, (_, c) => c / (COLUMNS - 1));
  const valueOf = (i, share) => run.spans[i][0] + share * (run.spans[i][1] - run.spans[i][0]);
  const heading = (share) => (alike ? valueOf(latents[0], share).toFixed(1) : `${Math.round(100 * share)} %`);
  const range = alike ? `from ${heading(0)} to ${heading(1)}` : "over 95 % of the range that images have";
  const canvas = make("canvas", {
    role: "img", className: "wide",
    label: `Traversals: each row moves one latent ${range}, the others stay. Rows: ${latents.map((i) => `z${i}`).join(", ")}.`,
  });
  let images = null;
  const draw = () => {
    const pen = sized(canvas, left + COLUMNS * size, top + latents.length * size);
    const { ink, dim, accent } = colours();
    pen.fillStyle = dim;
    columns.forEach((share, c) => pen.fillText(heading(share), left + c * size + 16, top / 2));
    latents.forEach((i, r) => {
      pen.fillStyle = view.latent === i ? accent : ink;
      pen.fillText(`z${i}`, 8, top + (r + 0.5) * size);
      pen.fillStyle = dim;
      if (run.kl) pen.fillText(run.kl[i].toFixed(2), 40, top + (r + 0.5) * size);
      if (images) columns.forEach((_, c) => pen.drawImage(tile(images, r * COLUMNS + c), left + c * size, top + r * size, size - 2, size - 2));
      if (view.latent !== i) return;
      pen.strokeStyle = accent;
      pen.lineWidth = 2;
      pen.strokeRect(left - 2, top + r * size - 1, COLUMNS * size, size);
    });
  };
  const decode = latest(async () => {
    const codes = latents.flatMap((i) => columns.map((share) => view.codes.map((z, k) => (k === i ? valueOf(i, share) : z))));
    images = await source.decode(codes);
    draw();
    canvas.dataset.drawn = Number(canvas.dataset.drawn ?? 0) + 1;
  }, report, 150);
  canvas.addEventListener("click", (event) => {
    const scale = (left + COLUMNS * size) / canvas.clientWidth;
    const [c, r] = [Math.floor((event.offsetX * scale - left) / size), Math.floor((event.offsetY * scale - top) / size)];
    if (!(c in columns) || !(r in latents)) return;
    view.codes[latents[r]] = valueOf(latents[r], columns[c]);
    select({ latent: latents[r] });
    moved();
  });
  const hint = `From the code of the sliders, one latent a row, ${range}. Click an image to go there.`;
  const element = panel("traversal", "Traversals", make("p", { className: "hint", textContent: hint }), canvas, saver(canvas, `${run.name}-traversals`));
  return {
    element,
    canvas,
    update(what) {
      if (what === "codes" && view.walking === null) decode();
      if (what === "selection" || what === "theme") draw();
    },
  };
}
