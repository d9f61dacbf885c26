"""Differences on held-out combinations, and scores against the strength of a correlation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from unweave.report.names import DATA, METHODS, data_sets, label, methods, score_label
from unweave.report.style import (
    GREY,
    few_ticks,
    heat_map,
    legend,
    look_of,
    outer_labels,
    panels,
    same_limits,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

A_ROW = 4  # data sets in a figure


@styled
def held_out_differences(table: pd.DataFrame) -> Figure:
    """Held-out less training scores of each method, with intervals: a row a score, a column a data set.

    `table` is that of `unweave.report.generalisation.held_out_table`.
    """
    names, data = methods(table), data_sets(table)
    scores = list(dict.fromkeys(table["score"]))
    looks = look_of(names)
    margins = (0.6, 0.1, 0.4, 0.8)
    figure, axes = panels(len(scores), len(data), height=0.9, margins=margins, gaps=(0.12, 0.14))
    for i, score in enumerate(scores):
        for j, name in enumerate(data):
            part = table[(table["score"] == score) & (table["data"] == name)]
            for row in part.itertuples():
                place = names.index(str(row.method))
                _point(axes[i, j], place, row.difference, (row.low, row.high), looks[names[place]])
            axes[i, j].axhline(0, color=GREY, linestyle="--", linewidth=0.8)
            axes[i, j].set_xticks(range(len(names)), [label(name, METHODS) for name in names], rotation=90)
            axes[i, j].set_xlim(-0.6, len(names) - 0.4)
            few_ticks(axes[i, j].yaxis)
        same_limits(axes[i])
    outer_labels(axes, [score_label(name) for name in scores], [label(name, DATA) for name in data])
    return figure


@styled
def scores_against_correlation(table: pd.DataFrame) -> Figure:
    """Scores on all combinations against the condition of the training data, a line for each method.

    `table` is that of `unweave.report.correlated_factors.condition_table`: its rows have the order of the
    conditions, from no correlation to the strongest one.
    """
    names, bases = methods(table), data_sets(table)
    scores = list(dict.fromkeys(table["score"]))
    looks = look_of(names)
    margins = (0.5, 0.1, 0.5, 1.1)
    figure, axes = panels(len(scores), len(bases), height=1.0, widest=3.2, margins=margins, gaps=(0.2, 0.14))
    for j, base in enumerate(bases):
        of_data = table[table["data"] == base]
        conditions = list(dict.fromkeys(of_data["condition"]))
        for i, score in enumerate(scores):
            for shift, name in zip(_shifts(len(names)), names, strict=True):
                rows = of_data[(of_data["score"] == score) & (of_data["method"] == name)]
                places = np.array([conditions.index(condition) for condition in rows["condition"]]) + shift
                axes[i, j].plot(places, rows["mean"], **looks[name])
                axes[i, j].vlines(
                    places, rows["low"], rows["high"], color=looks[name]["color"], linewidth=0.8
                )
            axes[i, j].set_xticks(range(len(conditions)), _short(base, conditions), rotation=90)
            few_ticks(axes[i, j].yaxis)
    for row in axes:
        same_limits(row)
    outer_labels(axes, [score_label(name) for name in scores], [label(base, DATA) for base in bases])
    legend(figure, names)
    return figure


@styled
def loss_correlations(table: pd.DataFrame) -> Figure:
    """Rank correlations of metrics with what is lost: a row a data set, a column a metric, in hundredths.

    `table` is that of `unweave.report.rank_correlation.correlations`, with the metrics in "first".
    """
    data, scores = data_sets(table), list(dict.fromkeys(table["first"]))
    matrix = table.pivot_table("estimate", "data", "first").reindex(index=data, columns=scores)
    matrix.index = pd.Index([label(name, DATA) for name in data])
    matrix.columns = pd.Index([score_label(name) for name in scores])
    margins = (2.2, 0.1, 0.1, 0.85)
    figure, axes = panels(1, 1, height=0.2 * len(data), widest=0.4 * len(scores), margins=margins)
    heat_map(axes[0, 0], matrix)
    return figure


def _point(axis: Any, place: int, value: float, ends: tuple[float, float], look: dict[str, Any]) -> None:
    axis.vlines(place, *ends, color=look["color"], linewidth=1)
    axis.plot(place, value, markersize=3.5, linestyle="", **look)


def _shifts(count: int) -> Any:
    """Places around a tick, so that intervals do not cover each other."""
    return np.linspace(-0.2, 0.2, count) if count > 1 else np.zeros(1)


def _short(base: str, conditions: list[str]) -> list[str]:
    """Conditions under an axis: those of the literature by their names."""
    return [label(f"{base}:{name}", DATA).partition(":")[2] for name in conditions]
