"""What each layer of a code knows about each factor, as a picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from unweave.display.inline_figure import InlineFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unweave.evaluation.layer_scores import LayerScores

DARK = 0.6  # information above which numbers are white


def draw(scores: LayerScores) -> Figure:
    """Rows are layers, from the top down, with the divergences of those with a prior; columns are factors."""
    rows, columns = scores.information.shape
    figure = InlineFigure(figsize=(2.4 + 0.75 * columns, 1.3 + 0.34 * rows), layout="constrained")
    axes = figure.subplots()
    axes.imshow(scores.information, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(columns), scores.factors, rotation=30, fontsize=8)
    nats = ["" if math.isnan(kl) else f"  {kl:.1f} nats" for kl in scores.kl]
    labels = [f"{layer}{part}" for layer, part in zip(scores.layers, nats, strict=True)]
    axes.set_yticks(range(rows), labels, fontsize=8)
    axes.set_title("share of each factor that a layer knows", fontsize=9)
    for (i, j), value in np.ndenumerate(scores.information):
        colour = "w" if value > DARK else "0.25"
        axes.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=7, color=colour)
    return figure
