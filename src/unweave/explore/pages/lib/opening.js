// What the server is opening, while a view waits for it.

import { make } from "./elements.js";
import { askJson } from "./source.js";

const PAUSE = 300; // milliseconds between two questions

function wordsOf({ what, done, total }) {
  const amount = total ? `: ${done.toLocaleString("en")} of ${total.toLocaleString("en")}` : "";
  return `${what}${amount} …`;
}

// Shows in an element what is being opened, above the view before; returns a function that ends it.
export function showOpening(main) {
  const text = make("span", { textContent: "Opening …" });
  const bar = make("progress", { label: "how much is opened" });
  const message = make("p", { className: "message opening", role: "status" }, text, " ", bar);
  let ended = false;
  const step = async () => {
    if (ended) return;
    const state = await askJson("/api/opening").catch(() => null); // the view says what is wrong
    if (ended) return;
    if (!message.isConnected) main.prepend(message);
    if (state) {
      text.textContent = wordsOf(state);
      if (state.total) {
        bar.max = state.total;
        bar.value = state.done;
      } else bar.removeAttribute("value");
    }
    setTimeout(step, PAUSE);
  };
  if (main.querySelector(":scope > [role=status]")) main.replaceChildren(message); // nothing else is shown yet
  setTimeout(step, PAUSE);
  return () => {
    ended = true;
    message.remove();
  };
}
