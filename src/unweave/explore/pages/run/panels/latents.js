// The latents as sliders.

import { make, panel, slider } from "../../lib/elements.js";

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
      type: "button",
      textContent: "walk",
      pressed: "false",
      label: `walk z${i}`,
      onclick: () => walk(view.walking === i ? null : i),
    });
    const row = make(
      "div",
      { className: "slider latent" },
      label,
      make("span", { className: "worth", title: "KL divergence from the prior" }, bar, worth),
      input,
      output,
      button,
    );
    row.dataset.latent = i;
    (run.dead[i] ? dead : element).append(row);
    rows.push({ i, row, input, output, button });
  }
  const count = run.dead.filter(Boolean).length;
  if (count) {
    const all = count === run.latents;
    const less = run.kl
      ? "less than 0.01 nats of KL divergence from the prior"
      : "the same code for all images";
    const text = `${count} dead latent${count > 1 ? "s" : ""}: ${less}`;
    element.append(
      make("details", { open: all, className: "dead" }, make("summary", { textContent: text }), dead),
    );
  }
  element.append(
    make("button", {
      type: "button",
      className: "reset",
      textContent: "Back to the image’s code",
      onclick: reset,
    }),
  );
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
