// Sliders under a finger. Browsers move a slider as soon as a finger touches it, even if the finger then scrolls the page.

const SWIPE = 8; // pixels across after which the finger moves the slider

// Hold the events of a slider back until the finger moves across or is lifted; if it scrolls, the value stays. A slider
// that was moved gets the focus, as it does with a mouse. Call this before any other listener is added.
export function holdBackUntilMoved(input) {
  let held = null; // where the finger came down, and the value before
  const release = () => {
    if (!held) return;
    held = null;
    input.dispatchEvent(new Event("input", { bubbles: true })); // before the focus, whose listeners reset the value
    input.focus({ preventScroll: true });
  };
  input.addEventListener("pointerdown", ({ pointerType, clientX }) => {
    held = pointerType === "touch" ? { x: clientX, value: input.value } : null;
  });
  input.addEventListener("pointermove", ({ clientX }) => {
    if (held && Math.abs(clientX - held.x) >= SWIPE) release();
  });
  input.addEventListener("pointerup", release);
  input.addEventListener("pointercancel", () => {
    if (held) input.value = held.value;
    held = null;
  });
  const stop = (event) => {
    if (held) event.stopImmediatePropagation();
  };
  for (const kind of ["input", "change"]) input.addEventListener(kind, stop, { capture: true });
}
