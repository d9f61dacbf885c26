// Work that failed, as a message that stays until this work has succeeded, and a button that tries it again.

import { make } from "./elements.js";
import { focusHeading } from "./focus.js";

// `changed` is called with whether anything has failed.
export function failureMessage(changed) {
  const failed = new Map(); // errors by the functions that do the work again
  const text = make("span");
  const again = make("button", {
    type: "button",
    textContent: "Try again",
    onclick: () => {
      for (const work of [...failed.keys()]) work();
    },
  });
  const element = make(
    "div",
    { className: "message failure", role: "alert", hidden: true },
    text,
    " ",
    again,
  );
  const report = (error, work) => {
    if (!error && !failed.has(work)) return;
    if (error) failed.set(work, error);
    else failed.delete(work);
    const hadFocus = element.contains(document.activeElement);
    element.hidden = !failed.size;
    if (element.hidden && hadFocus) focusHeading(element.parentElement);
    const sentences = new Set([...failed.values()].map(({ message }) => message));
    text.textContent = [...sentences, "What is shown here is out of date."].join(" ");
    changed(failed.size > 0);
  };
  return { element, report };
}
