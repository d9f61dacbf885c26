"""Five comparisons by box plots, after J. Hartmann (2021): methods, data sets, settings, transfer, seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from unweave.report.names import DATA, METHODS, data_sets, label, methods, score_label, setting_label
from unweave.report.statistics import FEW
from unweave.report.style import (
    MANY,
    few_ticks,
    heat_map,
    look_of,
    panels,
    room_for_names,
    same_limits,
    styled,
)
from unweave.report.tables import SETTING, setting_means

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def boxes(axes: Any, groups: Sequence[Any], colours: Sequence[str]) -> None:
    """A box for each group of values: quartiles, median, whiskers of 1.5 quartile distances, no outliers.

    Groups of fewer than ten values are drawn as points.
    """
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.grid(visible=False, axis="x")
    for i, values in enumerate(groups):
        if len(values) < FEW:
            axes.plot([i] * len(values), values, "o", color=colours[i], markersize=2, alpha=0.75)
    filled = [(i, values) for i, values in enumerate(groups) if len(values) >= FEW]
    if not filled:
        return
    drawn = axes.boxplot(
        [values for _, values in filled],
        positions=[i for i, _ in filled],
        widths=0.7,
        patch_artist=True,
        showfliers=False,
        medianprops={"color": "black", "linewidth": 0.8},
        boxprops={"linewidth": 0.4},
        whiskerprops={"linewidth": 0.6},
        capprops={"linewidth": 0.6},
        manage_ticks=False,
    )
    for (i, _), box in zip(filled, drawn["boxes"], strict=True):
        box.set_facecolor(colours[i])
        box.set_alpha(0.75)


def _values(runs: pd.DataFrame, score: str, column: str, names: Sequence[str]) -> list[Any]:
    known = runs[runs[score].notna()]
    return [known.loc[known[column] == name, score].to_numpy() for name in names]


@styled
def methods_over_everything(runs: pd.DataFrame, scores: Sequence[str]) -> Figure:
    """Each score of each method over all data sets, settings and seeds."""
    names = methods(runs)
    colours = [look_of(names)[name]["color"] for name in names]
    columns = 1 if len(names) > MANY else min(len(scores), 3)
    rows = -(-len(scores) // columns)
    figure, axes = panels(rows, columns, height=1.4, gaps=(0.35, 0.3), **room_for_names(names, 0.4))
    for i, axis in enumerate(axes.ravel()):
        if i >= len(scores):
            axis.set_visible(False)
            continue
        boxes(axis, _values(runs, scores[i], "method", names), colours)
        axis.set_title(score_label(scores[i]))
        axis.set_xticks(range(len(names)), [label(name, METHODS) for name in names], rotation=90)
        axis.tick_params(labelbottom=i + columns >= len(scores))
    return figure


@styled
def methods_over_data(runs: pd.DataFrame, scores: Sequence[str]) -> Figure:
    """The methods on each data set: a row for each score, a column for each data set, if methods are few."""
    names, data = methods(runs), data_sets(runs)
    colours = [look_of(names)[name]["color"] for name in names]
    wide = len(names) > MANY
    rows, columns = (len(scores) * len(data), 1) if wide else (len(scores), len(data))
    figure, axes = panels(rows, columns, height=1.0, gaps=(0.1, 0.12), **room_for_names(names, 0.55))
    for i, score in enumerate(scores):
        for j, name in enumerate(data):
            axis, last = axes.ravel()[i * len(data) + j], i == len(scores) - 1
            boxes(axis, _values(runs[runs["data"] == name], score, "method", names), colours)
            axis.set_xticks(range(len(names)), [label(method, METHODS) for method in names], rotation=90)
            axis.tick_params(labelleft=wide or j == 0, labelbottom=last and (not wide or j == len(data) - 1))
            axis.set_ylabel(score_label(score) if wide or j == 0 else "")
            axis.set_title(label(name, DATA) if i == 0 or (wide and len(data) > 1) else "")
            few_ticks(axis.yaxis)
        same_limits(axes.reshape(len(scores), len(data))[i])
    return figure


@styled
def settings_on_one_data_set(runs: pd.DataFrame, scores: Sequence[str]) -> Figure:
    """The seeds of every setting; meant for the runs of one data set. A row for each score."""
    kinds = runs[[*SETTING, "strength"]].drop_duplicates()
    settings = list(kinds.itertuples(index=False, name=None))
    looks = look_of(methods(runs))
    colours = [looks[method]["color"] for method, _, _ in settings]
    figure, axes = panels(
        len(scores), 1, height=0.9, widest=6.6, margins=(0.5, 0.1, 0.15, 1.05), gaps=(0.1, 0.1)
    )
    for i, score in enumerate(scores):
        axis = axes[i, 0]
        known = runs[runs[score].notna()]
        groups = {key: part.to_numpy() for key, part in known.groupby(SETTING, sort=False)[score]}
        boxes(axis, [groups.get((method, setting), []) for method, setting, _ in settings], colours)
        axis.set_ylabel(score_label(score))
        few_ticks(axis.yaxis)
        names = [setting_label(method, strength, setting) for method, setting, strength in settings]
        axis.set_xticks(range(len(settings)), names, rotation=90)
        axis.tick_params(labelbottom=i == len(scores) - 1)
    return figure


@styled
def settings_across_data(runs: pd.DataFrame, scores: Sequence[str]) -> Figure:
    """The place of each setting on each data set by its mean score: 100 is the best, 0 the last one."""
    tables = []
    for score in scores:
        means = setting_means(runs, score)
        place = (means.rank() - 1) / (means.notna().sum() - 1).clip(lower=1)
        names = [
            setting_label(str(method), strength, str(setting)) for method, setting, strength in means.index
        ]
        short = [label(str(name), DATA).replace("-dSprites", "") for name in means.columns]
        tables.append(pd.DataFrame(place.to_numpy(), index=names, columns=short))
    rows = len(tables[0])
    figure, axes = panels(
        1,
        len(scores),
        height=0.135 * rows + 0.1,
        widest=1.2,
        margins=(1.05, 0.1, 0.25, 0.6),
        gaps=(0.1, 0.1),
    )
    for j, (score, table) in enumerate(zip(scores, tables, strict=True)):
        axis = axes[0, j]
        heat_map(axis, table, low=0, high=1, colours="cividis")
        axis.set_title(score_label(score))
        axis.tick_params(labelleft=j == 0)
    return figure


@styled
def spread_over_seeds(runs: pd.DataFrame, scores: Sequence[str]) -> Figure:
    """Standard deviations over seeds, a box over settings a data set; diamonds: of the means of settings."""
    data = data_sets(runs)
    columns = min(len(scores), 3)
    rows = -(-len(scores) // columns)
    figure, axes = panels(rows, columns, height=1.3, margins=(0.45, 0.1, 0.25, 0.95), gaps=(0.35, 0.3))
    looks = look_of(data)
    colours = [looks[name]["color"] for name in data]
    for i, axis in enumerate(axes.ravel()):
        if i >= len(scores):
            axis.set_visible(False)
            continue
        groups = []
        for place, name in enumerate(data):
            settings = runs[runs["data"] == name].groupby(SETTING, sort=False)[scores[i]]
            groups.append(settings.std(ddof=0)[settings.count() > 1].to_numpy())
            between = settings.mean().std(ddof=0) if settings.ngroups > 1 else float("nan")
            axis.plot(place, between, "D", color="black", markersize=3.5, zorder=3)
        boxes(axis, groups, colours)
        axis.set_ylim(bottom=0)
        axis.set_title(score_label(scores[i]))
        axis.set_xticks(range(len(data)), [label(name, DATA) for name in data], rotation=90)
        axis.tick_params(labelbottom=i + columns >= len(scores))
    return figure
