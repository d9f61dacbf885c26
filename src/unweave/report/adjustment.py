"""Scores at equal accuracy: the difference of a run from other runs with a similar accuracy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unweave.report.statistics import Floats, check_columns

NEIGHBOURS = 5
# Of fewer runs the neighbours are not near. Simulated studies without any relation at equal accuracy had an
# adjusted correlation of -0.3 or less with p < 0.05 in up to 15% of studies of 40 to 72 runs, and in at most
# 3% of those of 100 to 180 runs.
ENOUGH = 100


def adjusted_for(
    runs: pd.DataFrame, scores: Sequence[str], by: str, neighbours: int = NEIGHBOURS
) -> pd.DataFrame:
    """Return the runs with each score less its mean over the runs that are nearest in `by` [1].

    This is the residual of a nearest-neighbour regression of the score on `by`, such as an accuracy. A
    correlation of two adjusted scores is not explained by what both share with `by`. Neighbours are other
    runs of the same data set. Scores are NaN if a data set has no more than `neighbours` runs with both
    numbers.

    [1] Locatello et al., On the fairness of disentangled representations, NeurIPS 2019.

    >>> runs = pd.DataFrame({"data": "a", "mig": [1.0, 3.0, 8.0], "accuracy": [0.1, 0.2, 0.9]})
    >>> adjusted_for(runs, ["mig"], "accuracy", neighbours=1)["mig"].tolist()
    [-2.0, 2.0, 5.0]
    """
    check_columns(runs, [*scores, by])
    places = [np.asarray(rows) for rows in runs.groupby("data", sort=False).indices.values()]
    accuracies = runs[by].to_numpy(float)
    adjusted = {}
    for score in scores:
        values = runs[score].to_numpy(float)
        adjusted[score] = np.full(len(runs), np.nan)
        for rows in places:
            known = rows[np.isfinite(values[rows]) & np.isfinite(accuracies[rows])]
            if len(known) > neighbours:
                means = values[known][nearest(accuracies[known], neighbours)].mean(axis=1)
                adjusted[score][known] = values[known] - means
    return runs.assign(**adjusted)


def nearest(numbers: Floats, count: int) -> NDArray[np.int64]:
    """Return (n, count): the places of the numbers nearest to each of (n,) numbers, itself left out.

    Of equally near ones the smaller comes first.
    """
    n = len(numbers)
    order = np.argsort(numbers, kind="stable")
    # Nothing further away in the order can be among the nearest.
    steps = np.array([step for step in range(-count, count + 1) if step])
    candidates = np.arange(n)[:, None] + steps
    inside = (candidates >= 0) & (candidates < n)
    candidates = np.clip(candidates, 0, n - 1)
    ordered = numbers[order]
    distances = np.where(inside, np.abs(ordered[candidates] - ordered[:, None]), np.inf)
    chosen = np.take_along_axis(candidates, np.argsort(distances, axis=1, kind="stable")[:, :count], axis=1)
    places = np.empty((n, count), np.int64)
    places[order] = order[chosen]
    return places
