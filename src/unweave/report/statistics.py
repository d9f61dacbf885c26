"""Statistics of the scores of several runs, with intervals: pure functions of arrays, seeded.

The same numbers and the same seed give the same answer. Intervals are percentile bootstraps: the runs of each
stratum (such as a data set or a setting) are drawn again with replacement, as many as there were, so that
every resample has the design of the study [1].

[1] Agarwal et al.: Deep reinforcement learning at the edge of the statistical precipice, NeurIPS 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
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
    """A statistic of the data, and the bounds of its bootstrap interval."""

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
    drawn = [statistic(values[rows]) for rows in _resamples(len(values), strata, resamples, seed)]
    return _interval(float(statistic(values)), np.concatenate(drawn), confidence)


def _resamples(n: int, strata: ArrayLike | None, resamples: int, seed: int | Stream) -> Iterator[Numbers]:
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


def small_sample_interval(
    values: ArrayLike,
    statistic: Callable[[Floats], Any] = mean,
    *,
    strata: ArrayLike | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int | Stream = 0,
) -> Interval:
    """A mean or interquartile mean of (n,) values, with an interval that is as wide as few values need.

    Fewer than ten values get a t-interval, the statistic +- t(n - 1) std / sqrt(n), since a percentile
    bootstrap of two values covers the mean half of the time. A single value has no interval (NaN). Ten values
    or more get `bootstrap`, within strata only if every stratum has ten values.

    >>> small_sample_interval([0.0, 1.0]).high > 6
    True
    """
    from scipy.stats import t

    values = finite("values", values)
    n = len(values)
    if n >= FEW:
        within = strata if strata is not None and large_strata(strata) else None
        return bootstrap(
            values, statistic, strata=within, confidence=confidence, resamples=resamples, seed=seed
        )
    estimate = float(statistic(values))
    if n < 2:
        return Interval(estimate, np.nan, np.nan)
    reach = float(t.ppf((1 + confidence) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return Interval(estimate, estimate - reach, estimate + reach)


def large_strata(strata: ArrayLike) -> bool:
    """Whether every stratum has ten values or more, so that they can be drawn among themselves."""
    return bool(_codes_and_sizes(np.asarray(strata))[1].min() >= FEW)


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


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """The correlation of ranks in [-1, 1]; equal values share the mean of their ranks.

    Pairs with a NaN are left out. If one side is constant, or if fewer than two pairs are left, there is no
    order to agree with and the answer is 0.

    >>> spearman([1, 2, 3, 4], [1, 2, 4, 3])
    0.8
    """
    return float(spearman_matrix(_pair_frame(x, y)).to_numpy()[0, 1])


def spearman_interval(
    x: ArrayLike,
    y: ArrayLike,
    *,
    strata: ArrayLike | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int | Stream = 0,
) -> Interval:
    """`spearman` with its interval; pairs are drawn again, those of each stratum among themselves."""
    intervals = spearman_intervals(
        _pair_frame(x, y), strata=strata, confidence=confidence, resamples=resamples, seed=seed
    )
    return Interval(*(float(intervals[name].iloc[0]) for name in Interval._fields))


def small_spearman_interval(estimate: float, n: int, confidence: float = 0.95) -> Interval:
    """An interval of a rank correlation of n pairs by Fisher's z, for fewer pairs than a bootstrap needs.

    The standard error of z is sqrt((1 + r^2 / 2) / (n - 3)), after Bonett and Wright (2000). A perfect order
    counts as one with its last two places exchanged. Fewer than five pairs have no interval (NaN).
    """
    from scipy.stats import norm

    if n < 5:
        return Interval(estimate, np.nan, np.nan)
    largest = 1 - 12 / (n * (n * n - 1))
    r = float(np.clip(estimate, -largest, largest))
    reach = float(norm.ppf((1 + confidence) / 2)) * np.sqrt((1 + r * r / 2) / (n - 3))
    low, high = np.tanh(np.arctanh(r) - reach), np.tanh(np.arctanh(r) + reach)
    return Interval(estimate, float(min(low, estimate)), float(max(high, estimate)))


def _pair_frame(x: ArrayLike, y: ArrayLike) -> pd.DataFrame:
    x, y = np.asarray(x, float), np.asarray(y, float)
    if x.ndim != 1 or x.shape != y.shape:
        raise UnweaveError(f"both sides must be (n,) numbers of the same runs; got {x.shape} and {y.shape}.")
    return pd.DataFrame({"x": x, "y": y})


def spearman_matrix(frame: pd.DataFrame) -> pd.DataFrame:
    """`spearman` of each two columns; a constant column has 0 with all, itself included."""
    return frame.corr(method="spearman", min_periods=2).fillna(0.0).clip(-1, 1)


def spearman_intervals(
    frame: pd.DataFrame,
    *,
    strata: ArrayLike | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int | Stream = 0,
) -> pd.DataFrame:
    """A row for each two columns of a frame: first, second, estimate, low, high."""
    labels = np.zeros(len(frame)) if strata is None else np.asarray(strata)
    if labels.shape != (len(frame),):
        raise UnweaveError(f"strata must be one label for each of {len(frame)} rows; got {labels.shape}.")
    estimates = spearman_matrix(frame).to_numpy()
    columns = list(frame)
    # Pairs of columns that have numbers in the same rows share their resamples.
    known = {name: frame[name].notna().to_numpy() for name in frame}
    pairs_of_rows: dict[bytes, list[tuple[Any, Any]]] = {}
    for pair in combinations(columns, 2):
        pairs_of_rows.setdefault((known[pair[0]] & known[pair[1]]).tobytes(), []).append(pair)
    intervals: dict[tuple[Any, Any], Interval] = {}
    for mask, pairs in pairs_of_rows.items():
        rows = np.frombuffer(mask, bool)
        names = [name for name in frame if any(name in pair for pair in pairs)]
        drawn = _rank_correlations(frame.loc[rows, names].to_numpy(float), labels[rows], resamples, seed)
        for pair in pairs:
            of_pair = drawn[:, names.index(pair[0]), names.index(pair[1])]
            estimate = estimates[columns.index(pair[0]), columns.index(pair[1])]
            intervals[pair] = _interval(float(estimate), of_pair, confidence)
    table = [(*pair, *intervals[pair]) for pair in combinations(columns, 2)]
    return pd.DataFrame(table, columns=["first", "second", *Interval._fields])


def _rank_correlations(values: Floats, strata: NDArray[Any], resamples: int, seed: int | Stream) -> Floats:
    """(resamples, c, c) of (n, c) values."""
    n, c = values.shape
    if n < 2:
        return np.zeros((resamples, c, c))
    parts = []
    for rows in _resamples(n, strata, resamples, seed):
        weights = _multiplicities(rows, n)
        ranks = np.stack([_unit_ranks(column, weights) for column in values.T], axis=1)
        parts.append(ranks @ ranks.transpose(0, 2, 1))
    return np.clip(np.concatenate(parts), -1, 1)


def _multiplicities(rows: Numbers, n: int) -> Floats:
    """(resamples, n): how often each of n rows is in each resample."""
    resamples = len(rows)
    cells = rows + np.arange(resamples)[:, None] * n
    counts = np.bincount(cells.ravel(), minlength=resamples * n).astype(np.float64)
    return counts.reshape(resamples, n)


def _unit_ranks(values: Floats, weights: Floats) -> Floats:
    """(resamples, n) ranks whose products sum to correlations; (n,) values count as often as weights say.

    Ranks come from sums over the values in order, so that no resample has to be sorted.
    """
    n = weights.shape[1]
    order = np.argsort(values, kind="stable")
    _, starts, group = np.unique(values[order], return_index=True, return_inverse=True)
    in_group = np.add.reduceat(weights[:, order], starts, axis=1)
    rank = np.cumsum(in_group, axis=1) - in_group / 2 - n / 2
    ranks = np.empty_like(weights)
    ranks[:, order] = rank[:, group]
    ranks *= np.sqrt(weights)
    length = np.sqrt(np.einsum("rn,rn->r", ranks, ranks))[:, None]
    return ranks / np.where(length > 0, length, 1.0)


def check_columns(frame: pd.DataFrame, names: Sequence[str]) -> None:
    """Raise an error that names the first column that the runs lack."""
    for name in names:
        if name not in frame:
            raise UnweaveError(f'the runs have no column "{name}". {did_you_mean(name, map(str, frame))}')


def probability_of_improvement(x: ArrayLike, y: ArrayLike) -> float:
    """P(X > Y) + P(X = Y) / 2 for a random one of x and a random one of y: 0.5 if neither is better.

    >>> probability_of_improvement([1, 2], [0, 2])
    0.625
    """
    return float(_wins(finite("x", x), finite("y", y)).mean())


def improvement_interval(
    x: ArrayLike,
    y: ArrayLike,
    *,
    strata: tuple[ArrayLike, ArrayLike] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int | Stream = 0,
) -> Interval:
    """The probability of improvement with its interval.

    `strata` are the labels of x and those of y, such as data sets: only values of the same stratum are
    compared, and the answer is the mean over strata [1].
    """
    x, y = finite("x", x), finite("y", y)
    of_x, of_y = (np.zeros(len(x)), np.zeros(len(y))) if strata is None else map(np.asarray, strata)
    shared = np.intersect1d(of_x, of_y)
    if not len(shared):
        raise UnweaveError("x and y have no stratum in common, so nothing can be compared; check the labels.")
    stream, estimate, drawn = Stream.of(seed), 0.0, np.zeros(resamples)
    for i, stratum in enumerate(shared):
        a, b = x[of_x == stratum], y[of_y == stratum]
        wins = _wins(a, b)
        rows_a = np.concatenate(list(_resamples(len(a), None, resamples, stream.child("x", i))))
        rows_b = np.concatenate(list(_resamples(len(b), None, resamples, stream.child("y", i))))
        often_a, often_b = _multiplicities(rows_a, len(a)), _multiplicities(rows_b, len(b))
        estimate += wins.mean() / len(shared)
        drawn += (often_a @ wins * often_b).sum(1) / wins.size / len(shared)
    return _interval(float(estimate), drawn, confidence)


def _wins(x: Floats, y: Floats) -> Floats:
    """(len(x), len(y)): 1 where x is larger, 1/2 where they are equal."""
    return np.where(x[:, None] == y, 0.5, x[:, None] > y)
