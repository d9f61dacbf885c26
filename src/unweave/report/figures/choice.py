"""Can a good setting be chosen elsewhere? How often a transferred choice beats a random one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from unweave.report.style import GREY, OKABE_ITO, panels, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORDS = {
    ("same", "same"): "same data set, same metric",
    ("same", "other"): "same data set, other metric",
    ("other", "same"): "other data set, same metric",
    ("other", "other"): "other data set, other metric",
}


@styled
def transfer_bars(table: pd.DataFrame) -> Figure:
    """Bars of the probability that a chosen setting beats a random other one, with their intervals.

    `table` is that of `unweave.report.transfer.transfer`; the marks are what a random choice reaches.
    """
    figure, axes = panels(1, 1, height=0.24 * len(table) + 0.1, widest=3.6, margins=(1.9, 0.3, 0.1, 0.4))
    axis = axes[0, 0]
    place = np.arange(len(table))
    axis.barh(place, table["probability"], color=OKABE_ITO[0], height=0.65)
    axis.hlines(place, table["low"], table["high"], color=GREY, linewidth=1)
    axis.vlines(table["random"], place - 0.4, place + 0.4, color="black", linewidth=1)
    ends = table[["probability", "high"]].max(axis=1)
    for i, (end, probability) in enumerate(zip(ends, table["probability"], strict=True)):
        axis.text(end + 0.01, i, f"{probability:.3f}", va="center")
    kinds = zip(table["data"], table["score"], strict=True)
    axis.set_yticks(place, [WORDS[data, score] for data, score in kinds])
    axis.invert_yaxis()
    axis.set_xlim(0.0, 1)
    axis.grid(visible=False, axis="y")
    axis.set_xlabel("probability of beating a random other setting (mark: a random choice)", color=GREY)
    return figure
