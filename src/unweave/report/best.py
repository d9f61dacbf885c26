"""Which method is best, by how much, and whether the runs can tell.

A method is compared by the means of its settings, so that the answer holds for settings like those that
were tried and not only for the seeds. A method with a single setting is compared by its runs. Two methods
differ by the difference of the means of these units, with the interval and the p-value of Welch's t-test,
which keep their level for two settings of two seeds, where a bootstrap does not.

The method with the highest mean is called the best only if its difference from every other method is
significant at 5%, two-sided; choosing the highest first does not raise the error of this rule [1]. Where
several data sets or scores are compared, p-values are those of Holm, so that the probability of naming any
wrong best method is at most 5% for the whole study.

[1] Hung and Fithian: Rank verification for exponential families, Annals of Statistics 2019.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from unweave.report.names import data_sets, methods
from unweave.report.statistics import Interval, holm, probability_of_improvement

LEVEL = 0.05
ALL_DATA = "all data sets"
COLUMNS = ["data", "score", "highest mean", "closest rival", "margin", "low", "high", "improvement"]
COLUMNS += ["p", "not distinguishable", "best"]


class Difference(NamedTuple):
    """A difference of means with its interval, and the p-value of no difference."""

    interval: Interval
    p: float


def mean_difference(x: ArrayLike, y: ArrayLike, confidence: float = 1 - LEVEL) -> Difference:
    """The mean of x minus that of y by Welch's t-test; bounds and p are NaN if a side has one value only.

    >>> mean_difference([3, 5], [1, 1, 1]).interval.estimate
    3.0
    """
    from scipy.stats import t

    sides = [np.asarray(side, float) for side in (x, y)]
    estimate = float(sides[0].mean() - sides[1].mean())
    if min(map(len, sides)) < 2:
        return Difference(Interval(estimate, np.nan, np.nan), np.nan)
    parts = np.array([side.var(ddof=1) / len(side) for side in sides])
    error = float(np.sqrt(parts.sum()))
    if error <= 1e-12 * max(float(np.abs(side).max()) for side in sides):
        # Equal values on both sides: the difference is certain up to rounding.
        certain = abs(estimate) > error
        return Difference(Interval(estimate, estimate, estimate), 0.0 if certain else 1.0)
    freedom = parts.sum() ** 2 / sum(
        part**2 / (len(side) - 1) for part, side in zip(parts, sides, strict=True)
    )
    reach = float(t.ppf((1 + confidence) / 2, freedom)) * error
    p = float(2 * t.sf(abs(estimate) / error, freedom))
    return Difference(Interval(estimate, estimate - reach, estimate + reach), p)


def best_methods(runs: pd.DataFrame, scores: Sequence[str]) -> pd.DataFrame:
    """For each data set and score, and for each score over all data sets: the best method, if one is.

    Columns: data ("all data sets" for several); score; highest mean, the method that has it (methods, if they
    have the same); closest rival, the method that is hardest to distinguish from it; margin between the two
    with low and high; improvement, the probability that a random run of the first scores higher than a random
    one of the second on the same data set, ties counted half; p, after Holm; not distinguishable, the number
    of rivals for which the interval of the difference includes 0; best, whether p is below 0.05.
    """
    rows = []
    for data, of_data in _parts(runs):
        for score in scores:
            row = _comparison(of_data[of_data[score].notna()], score)
            if row is not None:
                rows.append((data, score, *row))
    table = pd.DataFrame(rows, columns=COLUMNS[:-1])
    table["p"] = holm(table["p"])
    table["best"] = table["p"] < LEVEL
    return table


def _parts(runs: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    names = data_sets(runs)
    if len(names) > 1:
        yield ALL_DATA, runs
    for data in names:
        yield data, runs[runs["data"] == data]


def _comparison(known: pd.DataFrame, score: str) -> tuple[Any, ...] | None:
    """A row of `best_methods` without data and score; None if fewer than two methods have the score."""
    names = methods(known)
    if len(names) < 2:
        return None
    lead = leading_method({name: _units(known, name, score) for name in names})
    better = _improvement(known, score, lead.tied[0], lead.rival)
    interval, p = lead.difference
    return ", ".join(lead.tied), lead.rival, *interval, better, p, lead.unclear


class Lead(NamedTuple):
    """Methods with the highest mean, the hardest rival, the difference, and how many rivals are unclear."""

    tied: list[str]
    rival: str
    difference: Difference
    unclear: int


def leading_method(units: Mapping[str, NDArray[np.float64]]) -> Lead:
    """Which of two methods or more has the highest mean, and the rival that is hardest to tell from it.

    `units` are the values of each method, such as means of its settings. `unclear` counts the rivals for
    which the interval of the difference includes 0; if there is none, every difference is significant.
    """
    means = {name: float(values.mean()) for name, values in units.items()}
    highest = max(means.values())
    tied = [name for name in units if np.isclose(means[name], highest, rtol=1e-12, atol=1e-12)]
    rivals = {name: mean_difference(units[tied[0]], units[name]) for name in units if name != tied[0]}
    closest = max(rivals, key=lambda name: (np.nan_to_num(rivals[name].p, nan=2.0), means[name]))
    unclear = sum(not difference.interval.low > 0 for difference in rivals.values())
    return Lead(tied, closest, rivals[closest], unclear)


def _units(known: pd.DataFrame, method: str, score: str) -> Any:
    """The means of the settings of a method over data sets and seeds; of its seeds if it has one setting.

    Scores count from the mean of their data set, so that a setting that some data set lacks is not favoured.
    """
    several = known["data"].nunique() > 1
    level = known.groupby("data", observed=True)[score].transform("mean") if several else 0.0
    of_method = (known[score] - level)[known["method"] == method]
    labels = known.loc[of_method.index, ["setting", "seed"]]
    by = "setting" if labels["setting"].nunique() > 1 else "seed"
    return of_method.groupby(labels[by]).mean().to_numpy()


def _improvement(known: pd.DataFrame, score: str, first: str, second: str) -> float:
    """The mean over the data sets that both methods have."""
    values = [
        [part.loc[part["method"] == name, score] for name in (first, second)]
        for _, part in known.groupby("data", observed=True)
    ]
    shared = [probability_of_improvement(x, y) for x, y in values if len(x) and len(y)]
    return float(np.mean(shared)) if shared else float("nan")
