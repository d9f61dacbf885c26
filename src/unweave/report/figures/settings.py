"""Scores against the settings of methods: a panel for each method, with an axis of its own setting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from unweave.report.names import METHODS, data_sets, label, methods
from unweave.report.style import few_ticks, legend, look_of, panels, same_limits, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALLEST = 1e-4  # what is smaller is drawn here, because 0 has no place on a logarithmic axis
A_ROW = 6  # methods in a figure


def method_groups(table: pd.DataFrame) -> list[list[str]]:
    """Methods with several settings, a few for each figure; all methods if none has several."""
    several = table.groupby("method")["step"].nunique() > 1
    names = [name for name in methods(table) if several[name]] or methods(table)
    return [names[i : i + A_ROW] for i in range(0, len(names), A_ROW)]


@styled
def scores_against_settings(
    table: pd.DataFrame, names: Sequence[str], rows: Sequence[str], *, logarithmic: bool = False
) -> Figure:
    """Medians and quartiles of scores against the setting of each method, a line for each data set.

    `table` is that of `unweave.report.tables.setting_curves`: `names` are methods (columns of the figure),
    and `rows` are values of its column "row", which name the vertical axes.
    """
    data = data_sets(table)
    looks = look_of(data)
    figure, axes = panels(
        len(rows), len(names), height=1.0, widest=2.4, margins=(0.6, 0.1, 0.5, 0.5), gaps=(0.12, 0.14)
    )
    for i, row in enumerate(rows):
        for j, method in enumerate(names):
            part = table[(table["row"] == row) & (table["method"] == method)]
            for name in data:
                _curve(axes[i, j], part[part["data"] == name].sort_values("step"), looks[name], logarithmic)
            if logarithmic:
                axes[i, j].set_yscale("log")
            few_ticks(axes[i, j].yaxis, log=logarithmic)
            _setting_axis(axes[i, j], table[table["method"] == method], last=i == len(rows) - 1)
        same_limits(axes[i])
        axes[i, 0].set_ylabel(row)
        for axis in axes[i, 1:]:
            axis.tick_params(which="both", labelleft=False)
    for axis, method in zip(axes[0], names, strict=True):
        axis.set_title(label(method, METHODS))
    legend(figure, data)
    return figure


def _curve(axis: Any, rows: pd.DataFrame, look: dict[str, Any], logarithmic: bool) -> None:
    low, middle, high = (
        rows[name].clip(lower=SMALLEST) if logarithmic else rows[name]
        for name in ("lower quartile", "median", "upper quartile")
    )
    axis.plot(rows["step"], middle, **look)
    axis.fill_between(rows["step"], low, high, color=look["color"], alpha=0.15, lw=0)


def _setting_axis(axis: Any, of_method: pd.DataFrame, *, last: bool) -> None:
    """The values of the setting of a method as ticks; its name below the last row."""
    steps = of_method.drop_duplicates("step").sort_values("step")
    axis.set_xticks(steps["step"], [f"{value:g}" for value in steps["strength"].fillna(0)])
    axis.set_xlim(-0.4, float(steps["step"].max()) + 0.4)
    axis.tick_params(labelbottom=last)
    if last:
        axis.set_xlabel(str(of_method["strength name"].iloc[0]))
