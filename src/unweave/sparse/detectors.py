"""Features and concepts as sparse tables of counts, from which all scores are computed.

A concept is a factor with a value, such as "shape = heart", or with an interval of values. A detector is a
feature with a threshold; it is on where the feature exceeds the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.metrics.checks import check_codes, check_codes_factors

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    Sparse: TypeAlias = csc_array[np.float64]

Floats: TypeAlias = NDArray[np.float64]

LEVELS = (0.0, 0.25, 0.5, 0.75)  # thresholds of a feature, as quantiles of its positive activations


@dataclass(frozen=True)
class Concept:
    """A factor with a value, or with all values from `first` to `last`."""

    factor: str
    first: int
    last: int

    def __str__(self) -> str:
        values = f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"
        return f"{self.factor} = {values}"


@dataclass(frozen=True, eq=False)
class Concepts:
    """All concepts of a set of factors, and which rows they hold for."""

    listed: tuple[Concept, ...]
    factor: NDArray[np.int64]  # (c,): the factor of each concept
    labels: Floats  # (n, c): 1 where it holds
    scored: NDArray[np.int64]  # which concepts are scored; of a factor with values 0 and 1, only 1


def concepts_of(factors: NDArray[np.int64], names: Sequence[str], intervals: int | None) -> Concepts:
    """Return one concept for each value of each factor (n, k).

    The values of a factor with more than `intervals` values are joined to that many intervals.
    """
    listed: list[Concept] = []
    columns: list[Floats] = []
    of_factor: list[int] = []
    absent: list[int] = []
    for j, name in enumerate(names):
        values, place = np.unique(factors[:, j], return_inverse=True)
        if values.tolist() == [0, 1]:
            absent.append(len(listed))
        parts = len(values) if intervals is None else min(len(values), intervals)
        part_of_value = np.arange(len(values)) * parts // len(values)
        for part in range(parts):
            members = values[part_of_value == part]
            listed.append(Concept(name, int(members[0]), int(members[-1])))
            columns.append((part_of_value[place] == part).astype(np.float64))
            of_factor.append(j)
    scored = np.setdiff1d(np.arange(len(listed)), absent)
    return Concepts(tuple(listed), np.array(of_factor), np.stack(columns, axis=1), scored)


def read_features(features: Any, factors: ArrayLike) -> tuple[Sparse, NDArray[np.int64]]:
    """Check features (n, m) >= 0, dense or sparse, and factors (n, k); return features in CSC format."""
    from scipy.sparse import csc_array

    if hasattr(features, "tocsc"):
        table = csc_array(features, dtype=np.float64, copy=True)
        if table.shape[1] == 0 or not np.isfinite(table.data).all():
            raise UnweaveError("features must be finite numbers (n, m) with at least one column.")
        # The shape and the factors are checked together with one column, so that nothing is made dense.
        factors = check_codes_factors(table[:, [0]].toarray(), factors)[1]
    else:
        dense, factors = check_codes_factors(check_codes(features, "features"), factors)
        table = csc_array(dense)
    table.eliminate_zeros()
    if (table.data < 0).any():
        raise UnweaveError(
            f"features must be >= 0, as those of a sparse autoencoder; the smallest is {table.data.min():g}. "
            "To score codes, split them by sign: np.maximum(np.concatenate([z, -z], axis=1), 0)."
        )
    return table, factors


def thresholds(features: Sparse) -> Floats:
    """The thresholds of each feature, (levels, m): quantiles of its positive activations, 0 first."""
    found = np.zeros((len(LEVELS), features.shape[1]))
    for i, (start, end) in enumerate(zip(features.indptr[:-1], features.indptr[1:], strict=True)):
        if end > start:
            # "lower" takes activations that occur, so that more than 1 - q of them are above it.
            found[1:, i] = np.quantile(features.data[start:end], LEVELS[1:], method="lower")
    return found


def detectors(features: Sparse, limits: Floats) -> Sparse:
    """Where each feature is above each of its thresholds, (n, levels m), as 0 and 1."""
    from scipy.sparse import csc_array, hstack

    feature = np.repeat(np.arange(features.shape[1]), np.diff(features.indptr))
    parts = []
    for limit in limits:
        on = (features.data > limit[feature]).astype(np.float64)
        part = csc_array((on, features.indices, features.indptr), shape=features.shape, copy=True)
        part.eliminate_zeros()
        parts.append(part)
    return csc_array(hstack(parts, format="csc"))


def f1_scores(together: Floats, on: Floats, positive: Floats) -> Floats:
    """F1 = 2 together / (on + positive), for counts of rows; 0 where there are none."""
    return np.asarray(2 * together / np.maximum(on + positive, 1e-300))


def areas(features: Sparse, labels: Floats) -> Floats:
    """The area under the ROC curve of each feature for each concept, (c, m); equal activations count half."""
    from scipy.sparse import csc_array
    from scipy.stats import rankdata

    n = features.shape[0]
    zeros = n - np.diff(features.indptr)
    above = np.empty_like(features.data)  # ranks less the mean rank of the zeros
    for i, (start, end) in enumerate(zip(features.indptr[:-1], features.indptr[1:], strict=True)):
        above[start:end] = rankdata(features.data[start:end]) + zeros[i] - (zeros[i] + 1) / 2
    ranks = csc_array((above, features.indices, features.indptr), shape=features.shape)
    positive = labels.sum(axis=0)[:, None]
    total = np.asarray(ranks.T @ labels).T + positive * (zeros + 1) / 2
    pairs = positive * (n - positive)
    return np.where(pairs > 0, (total - positive * (positive + 1) / 2) / np.maximum(pairs, 1), 0.5)


def correlations(features: Sparse, labels: Floats) -> Floats:
    """Pearson's correlation of each concept with each feature, (c, m); 0 for constant ones."""
    n = features.shape[0]
    mean, rate = np.asarray(features.sum(axis=0)) / n, labels.mean(axis=0)
    squares = np.asarray(features.multiply(features).sum(axis=0)) / n
    covariance = np.asarray(features.T @ labels).T / n - rate[:, None] * mean
    spread = np.sqrt(np.maximum(squares - mean**2, 0)) * np.sqrt(rate * (1 - rate))[:, None]
    return np.where(spread > 1e-12, covariance / np.maximum(spread, 1e-12), 0.0)
