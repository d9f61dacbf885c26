// The states of a run in the order of its life: a sign, so that colour is not needed, and what it means.

export const STATES = {
  waiting: { sign: "·", text: "waiting", help: "not started yet" },
  training: { sign: "▶", text: "training", help: "a process trains it now" },
  stopped: {
    sign: "‖",
    text: "stopped",
    help: "started, and no process trains it; the same command resumes it",
  },
  trained: { sign: "○", text: "trained", help: "training has finished, nothing is measured yet" },
  measured: { sign: "●", text: "measured", help: "training has finished, and its codes are measured" },
  diverged: { sign: "≠", text: "diverged", help: "its loss was not finite" },
  failed: { sign: "✕", text: "failed", help: "it ended with an error" },
};

export const isEnded = (run) => !["waiting", "training", "stopped"].includes(run.state);

// Seconds as a clock: 0:07, 1:02:05, 2 days 7:33:20.
export function clock(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const two = (number) => String(number).padStart(2, "0");
  const days = Math.floor(whole / 86400);
  const hours = Math.floor(whole / 3600) % 24;
  const rest = `${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
  const time = days || hours ? `${hours}:${rest}` : rest.replace(/^0/, "");
  return days ? `${days} ${days > 1 ? "days" : "day"} ${time}` : time;
}

export const count = (number) => Math.round(number).toLocaleString("en");

// A number with four digits, or all digits before the point.
export function short(number) {
  if (number === null || number === undefined) return "not finite";
  return Math.abs(number) >= 1000 ? count(number) : String(Number(number.toPrecision(4)));
}

export const percent = (share) => `${Math.floor(100 * share)}%`;
