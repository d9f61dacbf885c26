"""Plug-in information between discretised codes and factors: the numbers under a whole family of metrics.

The published study cuts each code into 20 bins of equal width and counts. Everything here is in nats and
without a bias correction, so unrelated columns have an information of about (bins - 1)(values - 1) / 2n,
not 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.metrics.checks import (
    MISSING,
    check_bins,
    check_factors_of,
    column_blocks,
    in_own_precision,
    scaled,
)

Labels = NDArray[np.int64]


def mutual_information(codes: ArrayLike, factors: ArrayLike, bins: int = 20) -> NDArray[np.float64]:
    """Return I(z_i; v_j) in nats, (d, k), for codes (n, d) cut into bins and discrete factors (n, k).

    I = sum p(b, v) log(p(b, v) / (p(b) p(v))) over the counts; 0 <= I <= log(min(bins, values)). A dead
    code and a factor with one value have exactly 0.

    >>> codes = [[0.0, 5.0], [0.1, 5.0], [0.9, 5.0], [1.0, 5.0]]
    >>> mutual_information(codes, [[0], [0], [1], [1]]).round(4).tolist()
    [[0.6931], [0.0]]
    """
    labels = numbered(check_factors_of(codes, factors, varied=False))
    blocks = [information_of_labels(discretise(block, bins), labels) for block in column_blocks(codes)]
    return np.concatenate(blocks)


def discretise(codes: ArrayLike, bins: int = 20) -> Labels:
    """Return the bin 0 .. bins - 1 of each value, (n, d): equal widths from the least to the largest value.

    A value on an edge belongs to the bin above it. Edges have the precision of the codes, as in the
    published study: a float32 code that lies on an edge in float32 arithmetic is counted as lying on it.
    """
    table, bins = in_own_precision(codes), check_bins(bins)
    labels = np.zeros(table.shape, np.int64)
    for column, values in enumerate(scaled(table, axis=0)[0].T):
        low, high = float(values.min()), float(values.max())
        if low < high:
            edges = low + np.arange(bins) * ((high - low) / bins)
            labels[:, column] = np.digitize(values, edges.astype(values.dtype)) - 1
    return labels


def numbered(factors: Labels) -> Labels:
    """Return the values of each column as 0, 1, 2, ... in their order, and -1 for MISSING."""
    labels = np.stack([np.unique(column, return_inverse=True)[1] for column in factors.T], axis=1)
    # MISSING is below all values, so that it has number 0 where it occurs.
    return np.asarray(labels - (factors == MISSING).any(axis=0))


def information_of_labels(first: Labels, second: Labels) -> NDArray[np.float64]:
    """Return the information between each column of the first and of the second table of labels >= 0.

    Rows with a label of -1 are left out of the pairs of columns that have it.
    """
    pairs = [[_information(counts(a, b)) for b in second.T] for a in first.T]
    return np.array(pairs, np.float64)


def entropies(labels: Labels) -> NDArray[np.float64]:
    """Return the entropy of each column of labels >= 0, in nats; labels of -1 are left out."""
    return np.array([_entropy(np.bincount(column[column >= 0])) for column in labels.T])


def joint_entropies(first: Labels, second: Labels) -> NDArray[np.float64]:
    """Return H(a, b) for each column a of the first and b of the second table of labels >= 0."""
    return np.array([[_entropy(counts(a, b)) for b in second.T] for a in first.T])


def counts(a: Labels, b: Labels) -> NDArray[np.int64]:
    """Return how often each pair of labels >= 0 occurs: a contingency table."""
    if a.min() < 0 or b.min() < 0:
        known = (a >= 0) & (b >= 0)
        a, b = a[known], b[known]
    rows, columns = int(a.max()) + 1, int(b.max()) + 1
    return np.bincount(a * columns + b, minlength=rows * columns).reshape(rows, columns)


def _information(table: NDArray[np.int64]) -> float:
    total = int(table.sum())
    # As one quotient of whole numbers it is exactly 1, and its logarithm 0, where nothing is shared.
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)
    seen = table > 0
    logs = np.log(table[seen] * float(total) / expected[seen])
    return max(0.0, float(table[seen] @ logs) / total)


def _entropy(table: NDArray[np.int64]) -> float:
    seen = table[table > 0]
    p = seen / seen.sum()
    return abs(float(p @ np.log(p)))
