// A sentence that says how many latents a panel shows, and a button that shows all of them.

import { make } from "../lib/elements.js";

// Hidden where `few` is `total` already. `which` says what the few are; `changed` is called after a click.
export function fewOrAll(few, total, which, changed) {
  let all = few === total;
  const text = make("span");
  const button = make("button", { type: "button" });
  const say = () => {
    text.textContent = all
      ? `All ${total} latents are shown.`
      : `${few} of ${total} latents are shown: ${which}.`;
    button.textContent = all ? `Show ${few}` : `Show all ${total}`;
  };
  button.addEventListener("click", () => {
    all = !all;
    say();
    changed();
  });
  say();
  return {
    element: make("p", { className: "hint how-many", hidden: few === total }, text, " ", button),
    showsAll: () => all,
  };
}
