"""Can runs be chosen by their agreement with others? How often the chosen one beats a random one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from unweave.report.names import score_label
from unweave.report.style import GREY, MARKERS, OKABE_ITO, panels, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def beaten_shares(table: pd.DataFrame) -> Figure:
    """The share of other runs that a chosen one beats, with its interval; the line is a random choice.

    `table` holds the rows of one data set of `unweave.report.chosen.choice_table`. A panel for each pool that
    was chosen from, a row for each score, a colour for each chooser.
    """
    from matplotlib.lines import Line2D

    pools, scores, choosers = (list(dict.fromkeys(table[name])) for name in ("among", "score", "chooser"))
    height = len(scores) * (0.1 * len(choosers) + 0.1) + 0.1
    figure, axes = panels(1, len(pools), height=height, widest=2.8, margins=(0.95, 0.1, 0.45, 0.4))
    shifts = np.linspace(-0.3, 0.3, len(choosers)) if len(choosers) > 1 else np.zeros(1)
    for axis, pool in zip(axes[0], pools, strict=True):
        axis.axvline(0.5, color=GREY, linestyle="--", linewidth=0.8)
        for i, chooser in enumerate(choosers):
            rows = table[(table["among"] == pool) & (table["chooser"] == chooser)]
            place = np.array([scores.index(score) for score in rows["score"]]) + shifts[i]
            axis.hlines(place, rows["low"], rows["high"], color=OKABE_ITO[i], linewidth=1)
            axis.plot(rows["beats"], place, MARKERS[i], color=OKABE_ITO[i], markersize=3.5)
        axis.set_title(f"among {pool}")
        axis.set_yticks(range(len(scores)), [score_label(score) for score in scores])
        axis.set_ylim(len(scores) - 0.5, -0.5)
        axis.set_xlim(-0.03, 1.03)
        axis.grid(visible=False, axis="y")
        axis.tick_params(labelleft=axis is axes[0, 0])
    handles = [
        Line2D([], [], linestyle="", marker=MARKERS[i], color=OKABE_ITO[i], markersize=4)
        for i in range(len(choosers))
    ]
    words = [score_label(chooser) for chooser in choosers]
    figure.legend(handles, words, loc="upper center", ncols=len(words), handletextpad=0.1, borderaxespad=0.2)
    figure.supxlabel("share of the other runs that the chosen one beats", fontsize=7, y=0.02)
    return figure
