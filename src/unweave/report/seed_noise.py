"""By how much a jackknife over seeds overstates the variance of shares of variance.

A share is a quadratic function of the scores. What seeds add to it has a part that is linear in the noise of
runs, such as the product of an effect and of noise, and a part of products of two runs. The jackknife is
right on average about the first part, but counts the second about twice [1]. Of pure noise there is only the
second, so that uncorrected intervals would hold the truth in 99% of studies instead of 95%.

Here both parts are computed as if noise were normal, with the covariance of scores within settings. Only
their ratio is used, to correct the variance of the jackknife.

[1] Efron and Stein: The jackknife estimate of variance, Annals of Statistics 1981.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unweave.report.statistics import Floats

Codes = NDArray[np.int64]


class Split(NamedTuple):
    """A score of the n runs of a data set, minus its mean, as a sum of parts; 0 where a run has no score."""

    parts: Floats  # (3, n): of methods, settings and seeds
    freedom: Floats  # (3,): degrees of freedom


def split(values: Floats, method: Codes, setting: Codes, rows: Codes, n: int) -> Split:
    """The parts of (k,) values of runs whose methods and settings are numbered, at their rows among n."""
    levels = [np.full(len(values), values.mean()), _group_means(values, method)]
    levels += [_group_means(values, setting), values]
    parts = np.zeros((3, n))
    parts[:, rows] = np.diff(levels, axis=0)
    groups = [1, len(np.unique(method)), len(np.unique(setting)), len(values)]
    return Split(parts, np.diff(groups).astype(float))


def _group_means(values: Floats, code: Codes) -> Floats:
    counts = np.bincount(code)
    return (np.bincount(code, values) / np.maximum(counts, 1))[code]


def counted_pairs(seeds: int) -> float:
    """How often a jackknife over n seeds counts the variance of products of two: 2 n^2 (n - 2) / (n - 1)^3.

    >>> counted_pairs(3)
    2.25
    """
    return 2 * seeds**2 * (seeds - 2) / (seeds - 1) ** 3


def variance_factor(data_sets: Sequence[Sequence[Split]], seeds: int) -> Floats:
    """(3,) factors that correct the jackknife's variances of the mean shares of method, setting and seed.

    `data_sets` has the scores of each data set. Factors are between 1 / `counted_pairs` and 1.
    """
    variances = np.zeros((3, 2))
    for scores in data_sets:
        varying = [score for score in scores if np.ptp(score.parts[2]) > 0]
        if varying:
            variances += _variances(varying)
    linear, pairs = variances.T
    counted = linear + counted_pairs(seeds) * pairs
    return np.divide(linear + pairs, counted, out=np.ones(3), where=counted > 0)


def _variances(scores: Sequence[Split]) -> Floats:
    """(3, 2) variances of the sum of shares over scores: of the linear part, and of products of two runs.

    With x'x = 1, a share is x'Px for the projection P on its part. Noise e around effects m changes it by
    2 m'Ae + e'Ae, where A = P - share. The diagonal of A belongs to the linear part.
    """
    totals = np.array([(score.parts**2).sum() for score in scores])
    parts = np.stack([score.parts for score in scores], 1) / np.sqrt(totals)[:, None]  # (3, scores, n)
    freedom = np.stack([score.freedom for score in scores], 1)
    shares = (parts**2).sum(-1)
    covariance = parts[2] @ parts[2].T / _between(freedom[2])
    by_noise = freedom * np.diag(covariance)
    kept = np.maximum(0.0, shares - by_noise) / np.maximum(shares, np.finfo(float).tiny)
    effects = parts * np.sqrt(kept)[..., None]
    everything = freedom.sum(0)
    result = np.zeros((3, 2))
    for part in range(3):
        moved = effects[part] - shares[part][:, None] * effects.sum(0)
        squares = _between(freedom[part]) * (1 - np.add.outer(shares[part], shares[part]))
        squares += np.outer(shares[part], shares[part]) * _between(everything)
        diagonal = (freedom[part] - shares[part] * everything) / np.sqrt(everything + 1)
        on_diagonal = np.outer(diagonal, diagonal)
        result[part, 0] = (4 * (moved @ moved.T) * covariance + 2 * on_diagonal * covariance**2).sum()
        result[part, 1] = max(0.0, 2 * ((squares - on_diagonal) * covariance**2).sum())
    return result


def _between(counts: Floats) -> Floats:
    """Geometric means of all pairs of counts: scores may have different numbers of runs."""
    return np.sqrt(np.outer(counts, counts))
