"""How good a choice without labels is: what supervised scores say of the runs that it chose.

A chooser is a score that needs no label; it chooses the run in which it is highest. By a supervised score the
chosen run beats a share of the other runs, equals counted half: 0.5 is what a random choice reaches, 1 is the
best run. Choices are made among all runs of a data set, among the settings of each seed (its runs of all
settings), and among the seeds of each setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from unweave.report.names import setting_labels
from unweave.report.statistics import Interval, mean_interval
from unweave.report.tables import by_data

ALL, SETTINGS, SEEDS = "all runs", "settings of a seed", "seeds of a setting"
UNLIKELY = 0.05  # what is less likely is outside of an interval of 95%
EQUAL = 1e-9  # shares that differ by less are equal


def share_beaten(chooser: ArrayLike, values: ArrayLike) -> Any:
    """The share of the other runs that the chosen one beats, along the last axis of (..., n) numbers.

    Of runs between which the chooser does not decide, each is as likely to be chosen.

    >>> float(share_beaten([0.1, 0.9, 0.3], [0.2, 0.5, 0.7]))
    0.5
    """
    from scipy.stats import rankdata

    # Of equals, each beats half of the others.
    beaten = rankdata(np.asarray(values, float), axis=-1) - 1
    return _of_chosen(chooser, beaten / (beaten.shape[-1] - 1))


def percentile(chooser: ArrayLike, values: ArrayLike) -> float:
    """The percentage of runs, the chosen one among them, that score no higher than the chosen one.

    >>> percentile([0.1, 0.9, 0.3, 0.2], [0.2, 0.5, 0.7, 0.3])
    75.0
    """
    from scipy.stats import rankdata

    ranks = rankdata(np.asarray(values, float), method="max")
    return float(_of_chosen(chooser, 100 * ranks / len(ranks)))


def _of_chosen(chooser: ArrayLike, numbers: NDArray[np.float64]) -> Any:
    """The mean of numbers over the runs in which the chooser is highest."""
    values = np.asarray(chooser, float)
    chosen = values == values.max(axis=-1, keepdims=True)
    return (numbers * chosen).sum(axis=-1) / chosen.sum(axis=-1)


def choice_table(runs: pd.DataFrame, choosers: Sequence[str], scores: Sequence[str]) -> pd.DataFrame:
    """How often a choice beats a random one: a row for each data set, chooser, score and kind of pool.

    Columns: data, chooser, score, among; choices, runs; percentile of the chosen run in its pool; beats, the
    share of the others in its pool that it beats, with low and high. These are means over choices, one a
    pool, with the intervals of `mean_share`. A single choice has none: had it been made at random, any share
    would be as likely.
    """
    rows = []
    for data, of_data in by_data(runs):
        for chooser, score in product(choosers, scores):
            known = of_data.dropna(subset=[chooser, score])
            for among, pool_of_run in _pools(known).items():
                pools = [pool for _, pool in known.groupby(pool_of_run, sort=False) if len(pool) > 1]
                if pools:
                    rows.append((data, chooser, score, among, *_choices(pools, chooser, score)))
    columns = ["data", "chooser", "score", "among", "choices", "runs", "percentile", "beats", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def _pools(runs: pd.DataFrame) -> dict[str, pd.Series[Any]]:
    """For each kind of pool the label of each run's pool."""
    return {ALL: runs["data"], SETTINGS: runs["seed"], SEEDS: setting_labels(runs)}


def _choices(
    pools: Sequence[pd.DataFrame], chooser: str, score: str
) -> tuple[int, int, float, float, float, float]:
    places = [percentile(pool[chooser], pool[score]) for pool in pools]
    beats = [float(share_beaten(pool[chooser], pool[score])) for pool in pools]
    return len(pools), sum(map(len, pools)), float(np.mean(places)), *mean_share(beats)


def mean_share(shares: Sequence[float]) -> Interval:
    """The mean of shares of choices with its 95% interval: a t-interval within [0, 1], none of one choice.

    Equal shares have no spread, but random choices in a few pools can be equal, too. The interval of n equal
    shares has every mean that is possible if a further choice has the same share with probability 0.05^(1/n)
    or more. With a smaller probability, n choices would be equal in less than 5% of cases.

    >>> [round(bound, 2) for bound in mean_share([1.0] * 5)], mean_share([1.0])
    ([1.0, 0.55, 1.0], Interval(estimate=1.0, low=nan, high=nan))
    """
    interval = mean_interval(shares)
    if len(shares) > 1 and np.ptp(shares) < EQUAL:
        agree = UNLIKELY ** (1 / len(shares))
        low = agree * interval.estimate
        return interval._replace(low=low, high=low + 1 - agree)
    low, high = np.clip([interval.low, interval.high], 0, 1).tolist()
    return interval._replace(low=low, high=high)


def mean_choices(runs: pd.DataFrame, choosers: Sequence[str], scores: Sequence[str]) -> pd.DataFrame:
    """The share of other runs that a choice beats, on the mean over scores and choices, with its interval.

    A row for each chooser and kind of pool: chooser, among, choices, beats, low, high.
    """
    rows = []
    for chooser, among in product(choosers, (ALL, SETTINGS, SEEDS)):
        shares = []
        for _, of_data in by_data(runs):
            usable = [score for score in scores if of_data[score].notna().any()]
            known = of_data.dropna(subset=[chooser, *usable])
            for _, pool in known.groupby(_pools(known)[among], sort=False):
                if len(pool) > 1 and usable:
                    values = [float(share_beaten(pool[chooser], pool[score])) for score in usable]
                    shares.append(float(np.mean(values)))
        if shares:
            rows.append((chooser, among, len(shares), *mean_share(shares)))
    return pd.DataFrame(rows, columns=["chooser", "among", "choices", "beats", "low", "high"])
