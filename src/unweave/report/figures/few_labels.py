"""What labels in training change: differences of chosen runs, with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from unweave.report.names import score_label
from unweave.report.style import GREY, MARKERS, OKABE_ITO, panels, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def paired_differences(table: pd.DataFrame) -> Figure:
    """Differences between chosen runs, with intervals; the line is no difference.

    `table` has the rows of `training` or `labellers` of `unweave.report.few_labels`. A panel for each kind of
    run that is compared with, a row for each score, a colour for each number of labels and labeller.
    """
    from matplotlib.lines import Line2D

    table = table.assign(
        kind=[f"{n:,} labels, {who}" for n, who in zip(table["labels"], table["labeller"], strict=True)]
    )
    sides, scores, kinds = (list(dict.fromkeys(table[name])) for name in ("against", "score", "kind"))
    height = len(scores) * (0.1 * len(kinds) + 0.1) + 0.1
    figure, axes = panels(1, len(sides), height=height, widest=2.8, margins=(0.95, 0.1, 0.6, 0.4))
    shifts = np.linspace(-0.3, 0.3, len(kinds)) if len(kinds) > 1 else np.zeros(1)
    for axis, side in zip(axes[0], sides, strict=True):
        axis.axvline(0, color=GREY, linestyle="--", linewidth=0.8)
        for i, kind in enumerate(kinds):
            rows = table[(table["against"] == side) & (table["kind"] == kind)]
            place = np.array([scores.index(score) for score in rows["score"]]) + shifts[i]
            colour = OKABE_ITO[i % len(OKABE_ITO)]
            axis.hlines(place, rows["low"], rows["high"], color=colour, linewidth=1)
            axis.plot(rows["difference"], place, MARKERS[i % len(MARKERS)], color=colour, markersize=3.5)
        axis.set_title(f"against {side} {'labels' if side == 'perfect' else 'runs'}")
        axis.set_yticks(range(len(scores)), [score_label(score) for score in scores])
        axis.set_ylim(len(scores) - 0.5, -0.5)
        axis.grid(visible=False, axis="y")
        axis.tick_params(labelleft=axis is axes[0, 0])
    handles = [
        Line2D([], [], linestyle="", marker=MARKERS[i % len(MARKERS)], color=OKABE_ITO[i % len(OKABE_ITO)])
        for i in range(len(kinds))
    ]
    figure.legend(handles, kinds, loc="upper center", ncols=min(len(kinds), 3), handletextpad=0.1)
    figure.supxlabel("difference of the score of the chosen run", fontsize=7, y=0.02)
    return figure
