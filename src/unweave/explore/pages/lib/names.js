// Display names next to those of programs: "FactorVAE" for factor_vae. The server sends them as `labels`.

import { make } from "./elements.js";

// The display name of a method, a data set ("data") or a score, or its own name.
export const labelOf = (labels, kind, name) => labels?.[kind]?.[name] ?? name;

// Both names as nodes: the display name, and, where it is another, the own name as code.
export function bothNames(labels, kind, name) {
  const label = labelOf(labels, kind, name);
  return label === name ? [name] : [label, " ", make("code", { className: "own-name", textContent: name })];
}
