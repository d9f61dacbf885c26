"""Do metrics agree? Scores of the same runs against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from unweave.report.figures.codes import POINTS, drawn_rows
from unweave.report.names import DATA, data_sets, label, methods, score_label
from unweave.report.style import dot_size, few_ticks, legend, look_of, panels, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def score_pairs(runs: pd.DataFrame, scores: Sequence[str], points: int = POINTS) -> Figure:
    """Each two scores against each other, coloured by data set; so many points of each are drawn."""
    data = data_sets(runs)
    looks = look_of(data)
    n = len(scores) - 1
    figure, axes = panels(n, n, height=1.1, widest=1.8, margins=(0.5, 0.1, 0.28, 0.4))
    shown = drawn_rows(runs, points)
    shown = shown.iloc[drawn_order(shown)]
    colours = shown["data"].map(lambda name: looks[name]["color"])
    for i, second in enumerate(scores[1:]):
        for j, first in enumerate(scores[:-1]):
            axis = axes[i, j]
            if j > i:
                axis.set_visible(False)
                continue
            axis.scatter(
                shown[first],
                shown[second],
                s=dot_size(len(shown)),
                c=colours,
                linewidths=0,
                alpha=0.6,
                rasterized=True,
            )
            few_ticks(axis.xaxis)
            few_ticks(axis.yaxis)
            axis.tick_params(labelleft=j == 0, labelbottom=i == n - 1)
            axis.set_ylabel(score_label(second) if j == 0 else "")
            axis.set_xlabel(score_label(first) if i == n - 1 else "")
    legend(figure, data, dots=True)
    return figure


def drawn_order(runs: pd.DataFrame) -> list[int]:
    """Rows so that data sets take turns, and the last one does not hide the others."""
    turn = runs.groupby("data", sort=False).cumcount().to_numpy()
    return [int(i) for i in turn.argsort(kind="stable")]


@styled
def scores_against(
    runs: pd.DataFrame, rows: Sequence[str], columns: Sequence[str], points: int = POINTS
) -> Figure:
    """Scores (columns) against other numbers of the same runs (rows), coloured by method.

    Meant for the runs of one data set, because losses of two have different scales.
    """
    names = methods(runs)
    looks = look_of(names)
    figure, axes = panels(len(rows), len(columns), height=0.95, margins=(0.62, 0.1, 0.28, 0.4))
    shown = drawn_rows(runs, points)
    colours = shown["method"].map(lambda name: looks[name]["color"])
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            axis = axes[i, j]
            look = {"c": colours, "linewidths": 0, "alpha": 0.6, "rasterized": True}
            axis.scatter(shown[column], shown[row], s=dot_size(len(shown)), **look)
            few_ticks(axis.xaxis)
            few_ticks(axis.yaxis)
            axis.tick_params(labelleft=j == 0, labelbottom=i == len(rows) - 1)
            axis.set_ylabel(score_label(row) if j == 0 else "")
            axis.set_xlabel(score_label(column) if i == len(rows) - 1 else "")
    legend(figure, names, dots=True)
    return figure


@styled
def score_across_data(means: pd.DataFrame, score: str) -> Figure:
    """The mean score of each setting on one data set against that on another, coloured by method.

    `means` is the table of `unweave.report.tables.setting_means`.
    """
    data = [str(name) for name in means.columns]
    settings = means.reset_index()
    names = methods(settings)
    looks = look_of(names)
    n = len(data) - 1
    figure, axes = panels(n, n, height=0.95, widest=1.7, margins=(0.5, 0.1, 0.4, 0.4))
    for i, second in enumerate(data[1:]):
        for j, first in enumerate(data[:-1]):
            axis = axes[i, j]
            if j > i:
                axis.set_visible(False)
                continue
            for method in names:
                of_method = settings[settings["method"] == method]
                axis.scatter(of_method[first], of_method[second], s=8, linewidths=0, **looks[method])
            few_ticks(axis.xaxis)
            few_ticks(axis.yaxis)
            axis.tick_params(labelleft=j == 0, labelbottom=i == n - 1)
            axis.set_ylabel(label(second, DATA) if j == 0 else "")
            axis.set_xlabel(label(first, DATA) if i == n - 1 else "")
    if n > 1:  # in the empty corner
        figure.suptitle(f"mean {score_label(score)} of each setting", fontsize=7.5, x=0.72, y=0.8)
    else:
        axes[0, 0].set_xlabel(f"{score_label(score)} on {label(data[0], DATA)}")
        axes[0, 0].set_ylabel(f"{score_label(score)} on {label(data[1], DATA)}")
    legend(figure, names)
    return figure
