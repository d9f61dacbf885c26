"""The section on the question: do circular factors act on codes as rotations."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

import pandas as pd

from unweave.report import findings, tables
from unweave.report.figures import correlations as heat_maps
from unweave.report.figures import methods
from unweave.report.names import DATA, METHODS, label, measured
from unweave.report.rank_correlation import correlations, mean_correlations
from unweave.report.sections.section import (
    ALL_SATURATED,
    INTERVALS,
    MEANS,
    RANK_INTERVALS,
    Drawing,
    Material,
    Section,
    Sheet,
)

QUESTION = "Do circular factors turn codes, and do metrics notice?"
DISTANCE, SHARED, SHUFFLED = "d_lsbd", "d_lsbd.shared", "d_lsbd.chance"
GAIN, ROTATION = "equivariance", "equivariance.rotation"


def symmetry(material: Material) -> Section | str:
    """D_LSBD and equivariance of each method, and D_LSBD against the disentanglement scores."""
    runs = material.runs
    shown = measured(runs, [DISTANCE, SHARED, SHUFFLED, GAIN, ROTATION])
    scores = [name for name in material.scores if name.split(".")[0] not in (DISTANCE, GAIN)]
    if DISTANCE not in shown or not scores or len(runs) < 3:
        return "it needs d_lsbd on data with a circular factor, a metric, and three runs"
    if not measured(material.informative, scores):
        return ALL_SATURATED
    distances = [name for name in (DISTANCE, SHARED) if name in shown]
    table = correlations(material.informative, distances, scores).table
    means = mean_correlations(correlations(material.informative, [DISTANCE], scores), ["second"])
    by_method = tables.method_table(runs, shown)
    finding = findings.on_correlation(means, "metric", "D_LSBD", material.seeds)
    known = [name for name in shown if name != SHUFFLED]
    caption = (
        "D_LSBD (0: rotations) with planes of each object and with shared planes; gain of linear maps and of "
        "rotations that predict codes after a shift (1: all of the change). Lines are medians."
    )
    return Section(
        "symmetry",
        QUESTION,
        f"{finding} D_LSBD is a distance, so metrics that agree with it have negative correlations. "
        f"{_extremes(by_method)}",
        (
            Drawing(
                "symmetry_by_method",
                f"{caption} {material.gaps(*known)}".rstrip(),
                partial(methods.scores_by_method, runs, known),
            ),
            Drawing(
                "symmetry_correlations",
                material.flagged("Spearman's correlation of D_LSBD with metrics, in hundredths.", DISTANCE),
                partial(heat_maps.correlations, table, distances, scores),
            ),
        ),
        (
            Sheet("symmetry_by_method", f"Interquartile means of all runs. {INTERVALS}", by_method),
            Sheet("symmetry_correlations", f"Spearman's correlation. {RANK_INTERVALS}", table),
            Sheet("mean_symmetry_correlations", MEANS, means),
        ),
        () if GAIN in shown else ("no run has the metric equivariance",),
    )


def _extremes(by_method: pd.DataFrame) -> str:
    """The methods with the lowest and the highest D_LSBD on each data set, with intervals and chance."""
    sentences = []
    for data, of_data in by_method.groupby("data", sort=False):
        rows = of_data[of_data["score"] == DISTANCE].sort_values("interquartile mean", kind="stable")
        ends = [_described(row) for row in rows.iloc[[0, -1]].drop_duplicates().to_dict("records")]
        shuffled = of_data.loc[of_data["score"] == SHUFFLED, "interquartile mean"].mean()
        chance = "" if pd.isna(shuffled) else f"; shuffled orbits have {shuffled:.2f}"
        span = " to ".join(ends) if len(ends) > 1 else ends[0]
        sentences.append(f"Interquartile means of D_LSBD on {label(str(data), DATA)}: {span}{chance}.")
    return " ".join(sentences)


def _described(row: dict[Hashable, Any]) -> str:
    interval = findings.bounds(row["low"], row["high"])
    return f"{row['interquartile mean']:.2f}{interval} ({label(str(row['method']), METHODS)})"
