"""Statistics of the scores of several runs, with intervals: pure functions of arrays, seeded.

The same numbers and the same seed give the same answer. In a bootstrap the runs of each stratum (such as a
data set or a setting) are drawn again with replacement, as many as there were, so that every resample has the
design of the study [1]. Percentiles of few resampled values are too narrow: `mean_interval` has t-intervals.

[1] Agarwal et al.: Deep reinforcement learning at the edge of the statistical precipice, NeurIPS 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError, did_you_mean
from unweave.streams import Stream

RESAMPLES = 2000
FEW = 10  # fewer values are too few for a bootstrap or a box plot
_NUMBERS_AT_ONCE = 2**18  # resamples are drawn in parts, to bound the memory

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Interval(NamedTuple):
    """A statistic of the data, and the bounds of its interval."""

    estimate: float
    low: float
    high: float


def interquartile_mean(values: ArrayLike) -> Any:
    """The mean of the middle half along the last axis: n // 4 numbers are cut off at each end.

    >>> float(interquartile_mean([1, 2, 3, 100]))
    2.5
    """
    ordered = np.sort(np.asarray(values, float), axis=-1)
    n = ordered.shape[-1]
    return ordered[..., n // 4 : n - n // 4].mean(-1)


def mean(values: ArrayLike) -> Any:
    """The mean along the last axis."""
    return np.asarray(values, float).mean(-1)


def bootstrap(
    values: ArrayLike,
    statistic: Callable[[Floats], Any] = mean,
    *,
    strata: ArrayLike | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int | Stream = 0,
) -> Interval:
    """A statistic of (n,) values with its interval; the statistic reduces the last axis of (resamples, n).

    `strata` are (n,) labels: the values of each are drawn among themselves.

    >>> bootstrap([0.5, 0.5, 0.5])
    Interval(estimate=0.5, low=0.5, high=0.5)
    """
    values = finite("values", values)
    drawn = [statistic(values[rows]) for rows in resampled_rows(len(values), strata, resamples, seed)]
    return _interval(float(statistic(values)), np.concatenate(drawn), confidence)


def resampled_rows(n: int, strata: ArrayLike | None, resamples: int, seed: int | Stream) -> Iterator[Numbers]:
    """Parts of (resamples, n) numbers of rows: place i of each holds a row of the stratum of row i."""
    labels = np.zeros(n) if strata is None else np.asarray(strata)
    if labels.shape != (n,):
        raise UnweaveError(f"strata must be one label for each of the {n} values; got shape {labels.shape}.")
    if resamples < 1:
        raise UnweaveError(f"resamples must be 1 or more; got {resamples}.")
    stratum, sizes = _codes_and_sizes(labels)
    by_stratum = np.argsort(stratum, kind="stable")
    first = (np.cumsum(sizes) - sizes)[stratum]
    stream = Stream.of(seed).child("bootstrap")
    at_once = max(1, _NUMBERS_AT_ONCE // n)
    for start in range(0, resamples, at_once):
        count = min(at_once, resamples - start)
        yield by_stratum[first + stream.skip(start).integers(count, sizes[stratum].tolist())]


def _codes_and_sizes(labels: NDArray[Any]) -> tuple[Numbers, Numbers]:
    _, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    return codes.astype(np.int64), sizes.astype(np.int64)


def _interval(estimate: float, drawn: Floats, confidence: float) -> Interval:
    if not 0 < confidence < 1:
        raise UnweaveError(f"confidence must be between 0 and 1, such as 0.95; got {confidence}.")
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(estimate, float(low), float(high))


def finite(name: str, values: ArrayLike) -> Floats:
    """(n,) values as floats; an error that begins with the name if they are not finite numbers."""
    array = np.asarray(values, float)
    if array.ndim != 1 or not len(array):
        raise UnweaveError(f"{name} must be (n,) numbers, one or more; got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise UnweaveError(f"{name} must be finite; {(~np.isfinite(array)).sum()} of {len(array)} are not.")
    return array


def mean_interval(
    values: ArrayLike,
    statistic: Callable[[Floats], Any] = mean,
    *,
    strata: ArrayLike | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int | Stream = 0,
) -> Interval:
    """A mean or interquartile mean of (n,) values with a t-interval: statistic +- t(n - strata) error.

    The error of a mean is sqrt(sum_h (n_h / n)^2 s_h^2 / n_h) over strata h, such as the settings of a
    method. That of another statistic is its standard deviation over bootstrap resamples within strata, times
    sqrt(n / (n - strata)), since a resample of few values varies too little; for fewer than ten values it is
    s / sqrt(n). Strata with a single value are ignored, and a single value has no interval (NaN).

    >>> mean_interval([0.0, 1.0]).high > 6
    True
    """
    from scipy.stats import t

    values = finite("values", values)
    n, estimate = len(values), float(statistic(values))
    if n < 2:
        return Interval(estimate, np.nan, np.nan)
    labels = usable_strata(n, strata)
    if statistic is not mean and n < FEW:
        labels = np.zeros(n)
    codes, sizes = _codes_and_sizes(labels)
    freedom = n - len(sizes)
    if statistic is mean or n < FEW:
        deviations = values - (np.bincount(codes, values) / sizes)[codes]
        variances = np.bincount(codes, deviations**2) / (sizes - 1)
        error = float(np.sqrt((sizes * variances).sum())) / n
    else:
        drawn = np.concatenate(
            [statistic(values[rows]) for rows in resampled_rows(n, labels, resamples, seed)]
        )
        error = float(drawn.std(ddof=1) * np.sqrt(n / freedom))
    reach = float(t.ppf((1 + confidence) / 2, freedom)) * error
    return Interval(estimate, estimate - reach, estimate + reach)


def usable_strata(n: int, strata: ArrayLike | None) -> NDArray[Any]:
    """(n,) labels of strata, all the same if there are none or if one of them has a single value."""
    labels = np.zeros(n) if strata is None else np.asarray(strata)
    return labels if _codes_and_sizes(labels)[1].min() > 1 else np.zeros(n)


def holm(p: ArrayLike) -> Floats:
    """p-values of Holm: those below alpha hold a false one with probability alpha at most. NaN stays NaN.

    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, float)
    order = np.argsort(values, kind="stable")  # NaN last
    count = int((~np.isnan(values)).sum())
    adjusted = values.copy()
    first = order[:count]
    adjusted[first] = np.maximum.accumulate(np.minimum(values[first] * np.arange(count, 0, -1), 1.0))
    return adjusted


def check_columns(frame: pd.DataFrame, names: Sequence[str]) -> None:
    """Raise an error that names the first column that the runs lack."""
    for name in names:
        if name not in frame:
            raise UnweaveError(f'the runs have no column "{name}". {did_you_mean(name, map(str, frame))}')


def multiplicities(rows: Numbers, n: int) -> Floats:
    """(resamples, n): how often each of n rows is in each resample."""
    resamples = len(rows)
    cells = rows + np.arange(resamples)[:, None] * n
    counts = np.bincount(cells.ravel(), minlength=resamples * n).astype(np.float64)
    return counts.reshape(resamples, n)


def probability_of_improvement(x: ArrayLike, y: ArrayLike) -> float:
    """P(X > Y) + P(X = Y) / 2 for a random one of x and a random one of y: 0.5 if neither is better.

    >>> probability_of_improvement([1, 2], [0, 2])
    0.625
    """
    return float(_wins(finite("x", x), finite("y", y)).mean())


def _wins(x: Floats, y: Floats) -> Floats:
    """(len(x), len(y)): 1 where x is larger, 1/2 where they are equal."""
    return np.where(x[:, None] == y, 0.5, x[:, None] > y)
