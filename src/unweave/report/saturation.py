"""Saturated scores: those that put half of the runs of a data set, or more, at the very same end.

Such a score cannot order these runs, so what it shares with other scores, methods and seeds is an accident of
the few others. A saturated score is drawn, but left out of correlations, shares of variance, comparisons and
averages on this data set.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from unweave.report.names import DATA, data_sets, label, listed, score_label

SATURATED = 0.5  # share of the runs
FEWEST_RUNS = 4  # of fewer, two equal ones are no sign of saturation


def saturated_scores(runs: pd.DataFrame, scores: Sequence[str]) -> pd.DataFrame:
    """The saturated pairs of a data set and a score: data, score, runs, value, share of runs at this value.

    A score is saturated if half of the runs of a data set or more have its highest, or its lowest, value
    there; data sets with fewer than four runs are left alone.
    """
    rows = []
    for data in data_sets(runs):
        for score in scores:
            values = runs.loc[runs["data"] == data, score].dropna()
            if len(values) < FEWEST_RUNS:
                continue
            shares = {value: float((values == value).mean()) for value in (values.max(), values.min())}
            value = max(shares, key=lambda name: shares[name])
            if shares[value] >= SATURATED:
                rows.append((data, score, len(values), float(value), shares[value]))
    return pd.DataFrame(rows, columns=["data", "score", "runs", "value", "share"])


def without_saturated(runs: pd.DataFrame, scores: Sequence[str]) -> pd.DataFrame:
    """The runs with NaN instead of saturated scores."""
    masked = runs.copy()
    for row in saturated_scores(runs, scores).itertuples():
        masked.loc[masked["data"] == row.data, row.score] = float("nan")
    return masked


def saturation_sentence(table: pd.DataFrame) -> str:
    """Which scores are saturated, and what follows; empty if none is."""
    if table.empty:
        return ""
    parts = [
        f"{score_label(str(row.score))} on {label(str(row.data), DATA)} "
        f"({row.share:.0%} of runs at {row.value:g})"
        for row in table.itertuples()
    ]
    return f"Saturated, so left out of correlations, comparisons and averages: {listed(parts)}."
