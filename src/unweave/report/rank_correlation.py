"""Spearman's rank correlation of scores, with intervals and averages of many of them: pure functions, seeded.

Runs are drawn again within their settings, so intervals say how far a correlation may be off for other seeds
of the same settings. If a setting has a single run, runs are drawn among all. The standard deviation of
Fisher's z = artanh(r) over resamples is multiplied by sqrt(n / (n - settings)), since a resample of few
values varies too little, and the interval is z +- t(n - settings) times that. In simulations it covers 94 to
97% (`benchmarks/report_statistics.py`), where percentiles of the resamples cover 73 to 93% of small studies.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.report.names import data_sets, measured, setting_labels
from unweave.report.statistics import (
    FEW,
    RESAMPLES,
    Floats,
    Interval,
    holm,
    multiplicities,
    resampled_rows,
    usable_strata,
)
from unweave.streams import Stream

FEWEST = 5  # pairs of numbers that have an interval
COLUMNS = ["data", "first", "second", "runs", "estimate", "low", "high"]


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """The correlation of ranks in [-1, 1]; equal values share the mean of their ranks.

    Pairs with a NaN are left out. If one side is constant, or if fewer than two pairs are left, there is no
    order to agree with and the answer is 0.

    >>> spearman([1, 2, 3, 4], [1, 2, 4, 3])
    0.8
    """
    return float(spearman_matrix(_pair_frame(x, y)).to_numpy()[0, 1])


def spearman_matrix(frame: pd.DataFrame) -> pd.DataFrame:
    """`spearman` of each two columns; a constant column has 0 with all, itself included."""
    return frame.corr(method="spearman", min_periods=2).fillna(0.0).clip(-1, 1)


def spearman_interval(
    x: ArrayLike,
    y: ArrayLike,
    *,
    strata: ArrayLike | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int | Stream = 0,
) -> Interval:
    """`spearman` with its interval; runs of one stratum are drawn among themselves."""
    frame = _pair_frame(x, y)
    row = rank_correlations(frame, [("x", "y")], strata=strata, resamples=resamples, seed=seed)
    return row.interval(0, confidence)


def _pair_frame(x: ArrayLike, y: ArrayLike) -> pd.DataFrame:
    x, y = np.asarray(x, float), np.asarray(y, float)
    if x.ndim != 1 or x.shape != y.shape:
        raise UnweaveError(f"both sides must be (n,) numbers of the same runs; got {x.shape} and {y.shape}.")
    return pd.DataFrame({"x": x, "y": y})


def small_spearman_interval(estimate: float, n: int, confidence: float = 0.95) -> Interval:
    """An interval of a rank correlation of n pairs by Fisher's z, for fewer pairs than a bootstrap needs.

    The standard error of z is sqrt((1 + r^2 / 2) / (n - 3)), after Bonett and Wright (2000). A perfect order
    counts as one with its last two places exchanged. Fewer than five pairs have no interval (NaN).
    """
    from scipy.stats import norm

    if n < FEWEST:
        return Interval(estimate, np.nan, np.nan)
    r = float(np.clip(estimate, -_largest(n), _largest(n)))
    reach = float(norm.ppf((1 + confidence) / 2)) * np.sqrt((1 + r * r / 2) / (n - 3))
    return _from_z(estimate, float(np.arctanh(r)), float(reach))


def _largest(n: int) -> float:
    """The rank correlation of n pairs of which the last two are exchanged."""
    return 1 - 12 / (n * (n * n - 1))


def _from_z(estimate: float, z: float, reach: float) -> Interval:
    low, high = float(np.tanh(z - reach)), float(np.tanh(z + reach))
    return Interval(estimate, min(low, estimate), max(high, estimate))


class RankCorrelations(NamedTuple):
    """Rank correlations of pairs of columns, and how they vary over resamples of the runs.

    `runs` and `freedom` are (pairs,): runs with both numbers, and runs less settings. `draws` are (resamples,
    pairs) correlations.
    """

    estimates: Floats
    draws: Floats
    runs: NDArray[np.int64]
    freedom: NDArray[np.int64]

    def interval(self, pair: int, confidence: float = 0.95) -> Interval:
        """The correlation of one pair with its interval."""
        from scipy.stats import t

        estimate, n, freedom = float(self.estimates[pair]), int(self.runs[pair]), int(self.freedom[pair])
        if n < FEW:
            return small_spearman_interval(estimate, n, confidence)
        z = np.arctanh(np.clip([estimate, *self.draws[:, pair]], -_largest(n), _largest(n)))
        error = float(z[1:].std() * np.sqrt(n / freedom))
        return _from_z(estimate, float(z[0]), float(t.ppf((1 + confidence) / 2, freedom)) * error)


def rank_correlations(
    frame: pd.DataFrame,
    pairs: Sequence[tuple[str, str]],
    *,
    strata: ArrayLike | None = None,
    resamples: int = RESAMPLES,
    seed: int | Stream = 0,
) -> RankCorrelations:
    """Rank correlations of pairs of columns of a frame; rows with a NaN in one of them are left out."""
    labels = np.zeros(len(frame)) if strata is None else np.asarray(strata)
    if labels.shape != (len(frame),):
        raise UnweaveError(f"strata must be one label for each of {len(frame)} rows; got {labels.shape}.")
    matrix, columns = spearman_matrix(frame).to_numpy(), list(frame)
    estimates = np.array([matrix[columns.index(first), columns.index(second)] for first, second in pairs])
    draws = np.zeros((resamples, len(pairs)))
    runs, freedom = np.zeros(len(pairs), np.int64), np.zeros(len(pairs), np.int64)
    known = {name: frame[name].notna().to_numpy() for name in frame}
    # Pairs of columns that have numbers in the same rows share their resamples.
    pairs_of_rows: dict[bytes, list[int]] = {}
    for i, (first, second) in enumerate(pairs):
        pairs_of_rows.setdefault((known[first] & known[second]).tobytes(), []).append(i)
    for mask, places in pairs_of_rows.items():
        rows = np.frombuffer(mask, bool)
        n = int(rows.sum())
        runs[places] = n
        if n < 2:
            continue
        names = [name for name in frame if any(name in pairs[i] for i in places)]
        within = usable_strata(n, labels[rows])
        freedom[places] = n - len(np.unique(within))
        drawn = _drawn(frame.loc[rows, names].to_numpy(float), within, resamples, seed)
        for i in places:
            draws[:, i] = drawn[:, names.index(pairs[i][0]), names.index(pairs[i][1])]
    return RankCorrelations(estimates, draws, runs, freedom)


def _drawn(values: Floats, strata: NDArray[Any], resamples: int, seed: int | Stream) -> Floats:
    """(resamples, c, c) rank correlations of (n, c) values."""
    n = len(values)
    parts = []
    for rows in resampled_rows(n, strata, resamples, seed):
        weights = multiplicities(rows, n)
        ranks = np.stack([_unit_ranks(column, weights) for column in values.T], axis=1)
        parts.append(ranks @ ranks.transpose(0, 2, 1))
    return np.clip(np.concatenate(parts), -1, 1)


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


class Correlations(NamedTuple):
    """Rank correlations of scores on each data set: a table with a row for each pair, and their resamples.

    `deviations` are (resamples, rows) differences from the mean of the resamples, as large as the error of
    the row; resamples of one data set are of the same runs. `freedom` is (rows,).
    """

    table: pd.DataFrame
    deviations: Floats
    freedom: NDArray[np.int64]


def correlations(
    runs: pd.DataFrame,
    first: Sequence[str],
    second: Sequence[str] | None = None,
    *,
    resamples: int = 1000,
    seed: int | Stream = 0,
) -> Correlations:
    """Correlations of each two scores, or of each first with each second, on each data set.

    The columns of the table are data, first, second, runs, estimate, low, high.
    """
    rows, deviations, freedom = [], [], []
    for data in data_sets(runs):
        of_data = runs[runs["data"] == data]
        names = measured(of_data, dict.fromkeys([*first, *(second or ())]))
        wanted = list(combinations(first, 2)) if second is None else list(product(first, second))
        pairs = [pair for pair in wanted if set(pair) <= set(names)]
        if not pairs:
            continue
        stream = Stream.of(seed).child("correlation", data)
        result = rank_correlations(
            of_data[names], pairs, strata=setting_labels(of_data), resamples=resamples, seed=stream
        )
        rows += [(data, *pair, result.runs[i], *result.interval(i)) for i, pair in enumerate(pairs)]
        inflation = np.sqrt(result.runs / np.maximum(result.freedom, 1))
        deviations.append((result.draws - result.draws.mean(0)) * inflation)
        freedom.append(result.freedom)
    table = pd.DataFrame(rows, columns=COLUMNS)
    if not rows:
        return Correlations(table, np.zeros((resamples, 0)), np.zeros(0, np.int64))
    return Correlations(table, np.concatenate(deviations, axis=1), np.concatenate(freedom))


def mean_correlations(result: Correlations, by: Sequence[str]) -> pd.DataFrame:
    """Means of correlations over data sets and whatever is not in `by` ("first", "second"), with intervals.

    Columns: those of `by`, estimate, low, high, p (of no correlation, after Holm over all rows), lowest and
    highest (the smallest and the largest of the correlations). Bounds and p are NaN if a data set has fewer
    than ten runs.
    """
    from scipy.stats import t

    rows = []
    for key, places in result.table.groupby(list(by), sort=False).indices.items():
        part = result.table.iloc[places]
        estimate, freedom = float(part["estimate"].mean()), int(result.freedom[places].min())
        error = float(result.deviations[:, places].mean(1).std())
        if part["runs"].min() < FEW:
            low = high = p = np.nan
        else:
            reach = float(t.ppf(0.975, freedom)) * error
            low, high = max(estimate - reach, -1.0), min(estimate + reach, 1.0)
            p = float(2 * t.sf(abs(estimate) / error, freedom)) if error > 0 else float(estimate == 0)
        names = key if isinstance(key, tuple) else (key,)
        rows.append((*names, estimate, low, high, p, part["estimate"].min(), part["estimate"].max()))
    columns = [*by, "estimate", "low", "high", "p", "lowest", "highest"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(p=holm(table["p"]))
