// The panels of a run, in their order on the page: one file each, and one row here.
//
// A panel is a function of the context {run, view, source, report, select, moved, walk, reset, chooseFactors,
// chooseExample}. It makes its element once and returns {element, canvas, update(what)}; update is called after
// something has changed: "codes" (a latent moved), "factors" (another true image), "selection" (another latent or factor), "theme".
// `suits` says for which runs the panel is shown.

import { examplesPanel } from "./panels/examples.js";
import { factorsPanel } from "./panels/factors.js";
import { interventionPanel } from "./panels/interventions.js";
import { latentsPanel } from "./panels/latents.js";
import { matrixPanel } from "./panels/matrix.js";
import { picturesPanel } from "./panels/pictures.js";
import { swapsPanel } from "./panels/swaps.js";
import { traversalPanel } from "./panels/traversals.js";

const always = () => true;

const PANELS = [
  { create: picturesPanel, suits: always },
  { create: latentsPanel, suits: always },
  { create: factorsPanel, suits: ({ view, source }) => source.encode && view.factors },
  { create: examplesPanel, suits: ({ run }) => run.examples },
  { create: matrixPanel, suits: ({ run }) => run.information },
  { create: traversalPanel, suits: always },
  { create: interventionPanel, suits: ({ run }) => run.first_factors && run.information },
  { create: swapsPanel, suits: ({ run }) => run.swap },
];

export const panelsOf = (context) =>
  PANELS.filter(({ suits }) => suits(context)).map(({ create }) => create(context));
