"""Are codes uncorrelated where the objective asks for it? Total correlation of sampled and of mean codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from unweave.report.figures.settings import SMALLEST
from unweave.report.names import DATA, data_sets, label, methods, score_label
from unweave.report.style import (
    GREY,
    dot_size,
    few_ticks,
    legend,
    look_of,
    panels,
    styled,
)
from unweave.report.tables import by_data
from unweave.streams import Stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 600  # of each data set in a scatter plot


def drawn_rows(runs: pd.DataFrame, points: int = POINTS, seed: int | Stream = 0) -> pd.DataFrame:
    """So many runs of each data set, drawn at random, in random order so that no method hides the others."""
    parts = []
    for data, of_data in by_data(runs):
        order = Stream.of(seed).child("points", data).permutations(1, len(of_data))[0]
        parts.append(of_data.iloc[order[:points]])
    return pd.concat(parts) if parts else runs


@styled
def mean_against_sampled(pairs: pd.DataFrame, score: str, points: int = POINTS) -> Figure:
    """A score of mean codes against that of sampled codes, a panel for each data set.

    `pairs` is the table of `unweave.report.tables.both_codes`; so many points of each data set are drawn.
    """
    data, names = data_sets(pairs), methods(pairs)
    looks = look_of(names)
    columns = min(len(data), 4)
    rows = -(-len(data) // columns)
    figure, axes = panels(
        rows, columns, height=1.55, widest=1.7, margins=(0.5, 0.1, 0.42, 0.4), gaps=(0.26, 0.32)
    )
    shown = drawn_rows(pairs, points)
    ends = np.array([shown[["mean", "sampled"]].min().min(), shown[["mean", "sampled"]].max().max()])
    ends = np.clip(ends, SMALLEST, None) * [0.7, 1.4]
    for axis, name in zip(axes.ravel(), data, strict=False):
        of_data = shown[shown["data"] == name]
        colours = [looks[method]["color"] for method in of_data["method"]]
        x, y = (of_data[side].clip(lower=SMALLEST) for side in ("sampled", "mean"))
        axis.scatter(x, y, s=dot_size(len(x)), c=colours, linewidths=0, alpha=0.6, rasterized=True)
        axis.plot(ends, ends, color=GREY, linestyle="--", linewidth=0.7)
        axis.set(xscale="log", yscale="log", xlim=ends, ylim=ends, title=label(name, DATA))
        few_ticks(axis.xaxis, log=True)
        few_ticks(axis.yaxis, log=True)
    for axis in axes.ravel()[len(data) :]:
        axis.set_visible(False)
    for axis in axes[:, 1:].ravel():
        axis.tick_params(which="both", labelleft=False)
    figure.supxlabel(f"{score_label(score)}, sampled codes", fontsize=7, y=0.02)
    figure.supylabel(f"{score_label(score)}, mean codes", fontsize=7, x=0.01)
    legend(figure, names, dots=True)
    return figure
