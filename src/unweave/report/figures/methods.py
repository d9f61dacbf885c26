"""What decides a score: the method, its hyper-parameters, or the seed? Violins, lines, ranges and bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from unweave.report.names import (
    DATA,
    METHODS,
    data_sets,
    label,
    methods,
    score_label,
)
from unweave.report.statistics import FEW
from unweave.report.style import (
    GREY,
    MANY,
    OKABE_ITO,
    few_ticks,
    look_of,
    outer_labels,
    panels,
    room_for_names,
    same_limits,
    styled,
)
from unweave.report.tables import SETTING, quartiles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TALL = 1.0


def _grid(runs: pd.DataFrame, scores: Sequence[str], bottom: float, top: float) -> tuple[Figure, Any]:
    """A row for each data set and a column for each score."""
    height = TALL if len(data_sets(runs)) > 2 else 1.5
    return panels(
        len(data_sets(runs)), len(scores), height=height, margins=(0.6, 0.1, top, bottom), gaps=(0.28, 0.14)
    )


def _wide_panels(runs: pd.DataFrame, scores: Sequence[str], names: Sequence[str]) -> tuple[Figure, Any]:
    """The axes of `_grid`, one below the other, with names of methods under the last one."""
    data = data_sets(runs)
    count = len(data) * len(scores)
    figure, axes = panels(count, 1, height=TALL, gaps=(0.1, 0.24), **room_for_names(names, 0.6))
    for place, axis in enumerate(axes.ravel()):
        axis.set(
            title=score_label(scores[place % len(scores)]), ylabel=label(data[place // len(scores)], DATA)
        )
        axis.tick_params(labelbottom=place == count - 1)
    return figure, axes.reshape(len(data), len(scores))


def _finish(axes: Any, runs: pd.DataFrame, scores: Sequence[str]) -> None:
    """Scores of one column share an axis, which therefore has numbers in each column."""
    for column in axes.T:
        same_limits(column)
    for axis in axes.ravel():
        few_ticks(axis.yaxis)
    outer_labels(
        axes, [label(name, DATA) for name in data_sets(runs)], [score_label(name) for name in scores]
    )
    for axis in axes.ravel():
        axis.tick_params(labelleft=True)


@styled
def scores_by_method(runs: pd.DataFrame, scores: Sequence[str]) -> Figure:
    """Violins of the scores of each method over all its settings and seeds; lines are medians."""
    names = methods(runs)
    looks = look_of(names)
    wide = len(names) > MANY
    if wide:
        figure, axes = _wide_panels(runs, scores, names)
    else:
        figure, axes = _grid(runs, scores, bottom=0.75, top=0.25)
    for i, data in enumerate(data_sets(runs)):
        for j, score in enumerate(scores):
            axis = axes[i, j]
            of_data = runs[(runs["data"] == data) & runs[score].notna()]
            for place, method in enumerate(names):
                values = of_data.loc[of_data["method"] == method, score].to_numpy()
                violin(axis, values, place, looks[method]["color"])
            axis.set_xlim(-0.6, len(names) - 0.4)
            axis.set_xticks(range(len(names)), [label(name, METHODS) for name in names], rotation=90)
            axis.grid(visible=False, axis="x")
    if not wide:
        _finish(axes, runs, scores)
    return figure


def violin(axes: Any, values: Any, place: float, colour: str, width: float = 0.85) -> None:
    """The density of values as a shape around a place, and their median; points for fewer than ten."""
    if len(values) == 0:
        return
    if len(values) < FEW or np.ptp(values) < 1e-9:
        axes.plot(np.full(len(values), place), values, "o", color=colour, markersize=2)
        return
    parts = axes.violinplot(values, [place], widths=width, showextrema=False, points=60)
    for body in parts["bodies"]:
        body.set(facecolor=colour, alpha=0.75, linewidth=0)
    middle = float(np.median(values))
    axes.plot([place - width / 3, place + width / 3], [middle, middle], color="black", linewidth=0.8)


@styled
def scores_by_seed(runs: pd.DataFrame, scores: Sequence[str]) -> Figure:
    """For each setting the range over seeds, their quartiles and median; settings in order of the median."""
    figure, axes = _grid(runs, scores, bottom=0.4, top=0.25)
    for i, data in enumerate(data_sets(runs)):
        for j, score in enumerate(scores):
            axis = axes[i, j]
            of_data = runs[(runs["data"] == data) & runs[score].notna()]
            if of_data.empty:
                continue
            spread = quartiles(of_data.groupby(SETTING, observed=True, sort=False)[score])
            spread = spread.sort_values("median", kind="stable")
            place = np.arange(len(spread))
            axis.vlines(place, spread["min"], spread["max"], color=OKABE_ITO[3], linewidth=1)
            low, high = spread["lower quartile"], spread["upper quartile"]
            axis.vlines(place, low, high, color=OKABE_ITO[0], linewidth=1.6)
            axis.plot(place, spread["median"], ".", color="black", markersize=1.8)
            axis.set_xticks([])
    _finish(axes, runs, scores)
    figure.supxlabel("settings, in order of their median; range over seeds, quartiles", fontsize=7, y=0.008)
    return figure


@styled
def shares_of_variance(table: pd.DataFrame) -> Figure:
    """Bars of the shares of the variance that method, setting and seed explain, a panel for each data set.

    `table` is that of `unweave.report.variance.variance_shares`. Marks are what noise alone would give: for
    the method, and for method and setting together.
    """
    from matplotlib.patches import Patch

    data = data_sets(table)
    # A data set can lack saturated scores; the one with the most of them has them in order.
    fullest = table[table["data"] == table["data"].value_counts().index[0]]
    scores = list(dict.fromkeys([*fullest["score"], *table["score"]]))
    columns = min(len(data), 4)
    rows = -(-len(data) // columns)
    figure, axes = panels(
        rows,
        columns,
        height=0.2 * len(scores),
        widest=2.2,
        margins=(0.85, 0.15, 0.5, 0.4),
        gaps=(0.15, 0.32),
    )
    shades = {"method": OKABE_ITO[0], "setting": OKABE_ITO[3], "seed": "#CFCFCF"}
    for i, axis in enumerate(axes.ravel()):
        if i >= len(data):
            axis.set_visible(False)
            continue
        shares = table[table["data"] == data[i]].set_index("score").reindex(scores)[list(shades)].fillna(0.0)
        left = np.zeros(len(scores))
        for name, colour in shades.items():
            axis.barh(range(len(scores)), shares[name], left=left, color=colour, height=0.75)
            for place, (start, share) in enumerate(zip(left, shares[name], strict=True)):
                if share >= 0.12:
                    ink = "white" if name == "method" else "black"
                    middle = start + share / 2
                    axis.text(middle, place, f"{100 * share:.0f}", ha="center", va="center", color=ink)
            left += shares[name].to_numpy()
        _mark_chance(axis, table[table["data"] == data[i]].set_index("score").reindex(scores))
        axis.set(xlim=(0, 1), title=label(data[i], DATA))
        axis.set_yticks(range(len(scores)), [score_label(name) for name in scores])
        axis.set_xticks([0, 0.5, 1], ["0", "50", "100"])
        axis.invert_yaxis()
        axis.grid(visible=False, axis="y")
        axis.tick_params(labelleft=i % columns == 0, labelbottom=i + columns >= len(data))
    words = {"method": "method", "setting": "its hyper-parameter", "seed": "seed"}
    handles = [Patch(color=colour, label=words[name]) for name, colour in shades.items()]
    figure.legend(handles=handles, loc="upper center", ncols=3)
    figure.supxlabel("share of the variance in %", fontsize=7, y=0.02, color=GREY)
    return figure


def _mark_chance(axis: Any, shares: pd.DataFrame) -> None:
    """Lines at the shares that noise alone would give, across the bar of each score."""
    together = shares["method by chance"] + shares["setting by chance"]
    place = np.arange(len(shares))
    for chance in (shares["method by chance"], together):
        axis.vlines(chance, place - 0.45, place + 0.45, color="black", linewidth=0.8, linestyle=":")
