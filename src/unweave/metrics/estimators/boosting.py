"""Gradient boosted trees as scikit-learn defines them, many times faster.

DCI and the downstream tasks of the study are read from scikit-learn's GradientBoostingClassifier with
its defaults: 100 rounds, learning rate 0.1, trees of depth 3, one tree a class and round. The faster
kinds of boosted trees (histograms, second-order splits) give other importances, so this is the same
algorithm: every midpoint between neighbouring values of a code is tried, and the best split is the best
of all of them. A node is not split if the variance of its residuals is 1e-7 or less, as in the scikit-learn
0.21 of the study. `tree_kernels` has the compiled functions and says why they are fast.

Ties: scikit-learn visits the codes in random order, so equally good codes share their importance by
chance. Here one of them is drawn with equal probability, from a stream: the same seed, the same trees. Of
equally good splits of one code the first is taken, as there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unweave.metrics.estimators.tree_kernels import boost, cut, raw_predictions
from unweave.streams import Stream

# The variance up to which a node is not split: in scikit-learn 0.21, which the published study used
# (`min_impurity_split`), and since version 0.23.
STUDY_PURITY = 1e-7
LATER_PURITY = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class SortedCodes:
    """Codes made ready for growing trees: do this once for all factors."""

    values: NDArray[np.float32]  # (d, n)
    order: NDArray[np.uint32]  # (d, n): rows in ascending order of the value
    cells: NDArray[np.uint32]  # (n, d): the bin of each value, plus BINS x the number of the code
    starts: NDArray[np.int32]  # (d, BINS + 1): where in the order each bin starts
    exponents: NDArray[np.int64]  # (d,): values are the codes divided by 2^exponent


@dataclass(frozen=True)
class BoostedTrees:
    """Fitted trees. A tree is complete: nodes 0..6 split, and the eight leaves are below them."""

    classes: NDArray[np.int64]
    exponents: NDArray[np.int64]  # (d,): of the codes, see SortedCodes
    start: NDArray[np.float64]  # (trees a round,): the raw prediction before the first tree
    codes: NDArray[np.int64]  # (trees, 7): the code that a node looks at
    thresholds: NDArray[np.float64]  # (trees, 7): a row goes left if its value is not larger
    leaves: NDArray[np.float64]  # (trees, 8): added to the raw prediction
    importances: NDArray[np.float64]  # (d,): share of the squared error removed by each code
    fitted: NDArray[np.int64]  # (n,): what is predicted for the rows that it was fitted to

    def predict(self, codes: NDArray[np.float64]) -> NDArray[np.int64]:
        """The most probable class of each row."""
        values = np.ascontiguousarray(_as_float32(codes, self.exponents).T)
        raw = raw_predictions(values, self.start, self.codes, self.thresholds, self.leaves)
        return np.asarray(self.classes[most_probable(raw)])


def sort_codes(codes: NDArray[np.float64]) -> SortedCodes:
    """Sort every code (n, d) and cut it into bins of about equally many rows, never between equal values."""
    # Codes are read as float32, like scikit-learn does; only those that do not fit are scaled.
    exponents = np.maximum(np.frexp(np.abs(codes).max(axis=0))[1] - 126, 0).astype(np.int64)
    values = np.ascontiguousarray(_as_float32(codes, exponents).T)
    order = np.argsort(values, axis=1, kind="stable").astype(np.uint32)
    cells, starts = cut(np.take_along_axis(values, order, axis=1), order)
    return SortedCodes(values, order, cells, starts, exponents)


def fit_boosted_trees(
    codes: SortedCodes,
    labels: NDArray[np.int64],
    *,
    rounds: int = 100,
    learning_rate: float = 0.1,
    purity: float = STUDY_PURITY,
    seed: int | Stream = 0,
) -> BoostedTrees:
    """Fit trees that predict labels (n,) from codes; nodes of a variance up to `purity` are not split.

    Labels of one class only give a model without trees: it predicts that class, and all importances
    are 0.
    """
    classes, numbers, start = first_predictions(labels)
    rounds = rounds if len(start) else 0
    draws = Stream.of(seed).bits(rounds * len(start), 7 * len(codes.values))
    raw, splits, thresholds, leaves, importances = boost(
        codes.values,
        codes.order,
        codes.cells,
        codes.starts,
        numbers,
        start,
        learning_rate,
        purity,
        draws.reshape(rounds, len(start), 7, len(codes.values)),
    )
    total = importances.sum()
    return BoostedTrees(
        classes,
        codes.exponents,
        start,
        splits,
        thresholds,
        leaves,
        importances / total if total > 0 else importances,
        classes[most_probable(raw)],
    )


def first_predictions(
    labels: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The classes, the number of the class of each row, and raw predictions before the first round.

    These are logarithms of the shares of classes; for two classes, their difference.
    """
    classes, numbers = np.unique(labels, return_inverse=True)
    start = np.log(np.bincount(numbers) / len(numbers))
    return classes, numbers, start[1:] - start[:-1] if len(classes) <= 2 else start


def _as_float32(codes: NDArray[np.float64], exponents: NDArray[np.int64]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # a new row may be too large: infinity is on the right side too
        return np.ldexp(codes, -exponents).astype(np.float32)


def most_probable(raw: NDArray[np.float64]) -> NDArray[np.int64]:
    """The number of the class of each row, from raw predictions (trees a round, n).

    A round has no tree for one class, one tree for two classes, and one tree a class for more.
    """
    if len(raw) == 1:
        return np.asarray(raw[0] >= 0, np.int64)
    return np.asarray(raw.argmax(axis=0), np.int64) if len(raw) else np.zeros(raw.shape[1], np.int64)
