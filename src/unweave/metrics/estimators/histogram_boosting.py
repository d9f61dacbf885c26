"""Gradient boosted trees for wide codes: histograms of 64 bins, and few codes a tree.

The algorithm is that of `unweave.metrics.estimators.boosting` (100 rounds, learning rate 0.1, depth 3, one
tree a class and round) with two approximations:

- A code is cut into at most 64 bins of about equally many rows, never between equal values. Only the edges of
  the bins are tried as splits. A code with up to 64 different values loses nothing.
- The root of a tree looks at all codes. Its other nodes look at 64 codes: the eight that split the root best,
  and 56 others that are drawn for each tree. Without the drawn codes, disentanglement would be too high:
  trees that overfit would not use codes of noise.

One pass over the codes computes the histograms of the roots of all trees of a round. That costs less than a
millisecond a tree for 10,000 points and 768 codes, and the other nodes cost about as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from unweave.metrics.estimators.boosting import STUDY_PURITY, first_predictions, most_probable
from unweave.metrics.estimators.tree_kernels import (
    HISTOGRAM_BINS,
    grow_from_histograms,
    raw_predictions,
    residuals_of,
    root_gains,
    step,
    sum_histograms,
)
from unweave.streams import Stream

Number = TypeVar("Number", np.int64, np.float64)

BEST, DRAWN = 8, 56  # codes that the nodes below the root look at: the best at the root, and others
NODES = 7  # of a tree of depth 3, without its leaves
TREES = 64  # whose histograms are held at once, so that memory grows with the codes only


class BinnedCodes(NamedTuple):
    """Codes cut into bins. Codes with one value are left out."""

    cells: NDArray[np.uint8]  # (alive, n): the bin of each value
    edges: NDArray[np.float64]  # (alive, bins - 1): between each bin and the next; infinity after the last
    alive: NDArray[np.bool_]  # (d,)

    def bin_like(self, codes: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Bins (alive, n) of other codes (n, d) by the same edges."""
        return _cells(codes, self.alive, self.edges)


class _Factor(NamedTuple):
    """One factor while its trees are grown."""

    classes: NDArray[np.int64]
    labels: NDArray[np.int64]  # (n,): the place of each row's value in `classes`
    start: NDArray[np.float64]  # (trees a round,)
    trees: slice  # of all trees of a round
    raw: NDArray[np.float64]  # (trees a round, n)


@dataclass(frozen=True)
class HistogramTrees:
    """Fitted trees of one factor. A row goes left at a node if its bin is not larger than the place."""

    classes: NDArray[np.int64]
    start: NDArray[np.float64]  # (trees a round,)
    codes: NDArray[np.int64]  # (trees, 7)
    places: NDArray[np.float64]  # (trees, 7)
    leaves: NDArray[np.float64]  # (trees, 8)
    importances: NDArray[np.float64]  # (d,): share of the squared error removed by each code
    fitted: NDArray[np.int64]  # (n,): what is predicted for the rows that it was fitted to

    def predict(self, cells: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The most probable class of each row, from `BinnedCodes.bin_like`."""
        raw = raw_predictions(cells, self.start, self.codes, self.places, self.leaves)
        return np.asarray(self.classes[most_probable(raw)])


def bin_codes(codes: NDArray[np.float64]) -> BinnedCodes:
    """Cut codes (n, d) into at most 64 bins each, of about equally many rows."""
    alive = (codes != codes[0]).any(axis=0)
    edges = np.full((int(alive.sum()), HISTOGRAM_BINS - 1), np.inf)
    for row, column in zip(edges, np.flatnonzero(alive), strict=True):
        code_edges = _edges(np.sort(codes[:, column]))
        row[: len(code_edges)] = code_edges
    return BinnedCodes(_cells(codes, alive, edges), edges, alive)


def fit_histogram_trees(
    codes: BinnedCodes,
    factors: NDArray[np.int64],
    *,
    rounds: int = 100,
    learning_rate: float = 0.1,
    drawn: int = DRAWN,
    seed: int | Stream = 0,
) -> list[HistogramTrees]:
    """Fit trees that predict each column of factors (n, k) from codes; one model a column.

    A column of one class only gives a model without trees: it predicts that class, and all importances are 0.
    """
    models = _factors(factors)
    trees = models[-1].trees.stop if len(codes.cells) else 0
    forest = _Forest(codes, rounds, trees, min(BEST + drawn, len(codes.cells)), Stream.of(seed))
    residuals = np.empty((models[-1].trees.stop, len(factors)))
    raw = np.concatenate([model.raw for model in models])
    models = [model._replace(raw=raw[model.trees]) for model in models]
    for turn in range(rounds if trees else 0):
        for model in models:
            if len(model.start):
                residuals_of(model.raw, model.labels, residuals[model.trees])
        forest.grow(turn, residuals)
        for model in models:
            count = len(model.start)
            rate = learning_rate * (1 - 1 / count if count > 1 else 1.0)
            for tree in range(model.trees.start, model.trees.stop):
                step(*forest.parts[tree], residuals[tree], rate, raw[tree], forest.leaves[turn, tree])
    return [forest.trees_of(model) for model in models]


class _Forest:
    """All trees of all rounds and factors."""

    def __init__(self, codes: BinnedCodes, rounds: int, trees: int, seen: int, stream: Stream) -> None:
        self._cells, self._alive, self._seen = codes.cells, codes.alive, seen
        self._stream = stream
        self._draws = (
            stream.child("ties").bits(rounds * trees, NODES * seen).reshape(rounds, trees, NODES, seen)
        )
        self._counts = np.array(
            [np.bincount(row, minlength=HISTOGRAM_BINS) for row in codes.cells], np.int32
        ).reshape(-1, HISTOGRAM_BINS)
        self._codes = np.zeros((rounds, trees, NODES), np.int64)
        self._places = np.full((rounds, trees, NODES), np.inf)
        self._gains = np.zeros((trees, len(codes.cells)))
        self.leaves = np.zeros((rounds, trees, NODES + 1))
        # Rows sorted by leaf and where each leaf begins, for each tree of the round.
        self.parts: dict[int, tuple[NDArray[np.uint32], NDArray[np.int64]]] = {}

    def grow(self, turn: int, residuals: NDArray[np.float64]) -> None:
        """Grow the trees of one round."""
        for first in range(0, len(residuals), TREES):
            table = np.ascontiguousarray(residuals[first : first + TREES].T, np.float32)
            sums = np.empty((*self._counts.shape, table.shape[1]), np.float32)
            sum_histograms(self._cells, table, sums)
            choices = self._choose(root_gains(self._counts, sums).T, self._stream.child("codes", turn, first))
            for k, choice in enumerate(choices):
                self._grow_one(turn, first + k, choice, sums[choice, :, k], residuals[first + k])

    def _choose(self, gains: NDArray[np.float64], stream: Stream) -> NDArray[np.int64]:
        """The codes (trees, seen) that the nodes below the root look at, from gains (trees, d)."""
        trees, d = gains.shape
        if self._seen == d:
            return np.tile(np.arange(d), (trees, 1))
        keys = stream.bits(trees, d).astype(np.int64)
        np.put_along_axis(keys, np.argpartition(gains, -BEST)[:, -BEST:], np.iinfo(np.int64).max, axis=1)
        return np.sort(np.argpartition(keys, -self._seen)[:, -self._seen :])

    def _grow_one(
        self,
        turn: int,
        tree: int,
        choice: NDArray[np.int64],
        root: NDArray[np.float32],
        residuals: NDArray[np.float64],
    ) -> None:
        sums, counts = np.empty((NODES, *root.shape)), np.empty((NODES, *root.shape), np.int32)
        sums[0], counts[0] = root, self._counts[choice]
        self.parts[tree] = grow_from_histograms(
            self._cells, choice, counts, sums, residuals, self._draws[turn, tree], STUDY_PURITY,
            self._codes[turn, tree], self._places[turn, tree], self._gains[tree],
        )  # fmt: skip

    def trees_of(self, model: _Factor) -> HistogramTrees:
        """The trees of one factor, with the importance of each code."""
        gains = self._gains[model.trees].sum(axis=0)
        importances = np.zeros(len(self._alive))
        importances[self._alive] = gains / gains.sum() if gains.sum() > 0 else gains
        return HistogramTrees(
            model.classes,
            model.start,
            _joined(self._codes[:, model.trees]),
            _joined(self._places[:, model.trees]),
            _joined(self.leaves[:, model.trees]),
            importances,
            model.classes[most_probable(model.raw)],
        )


def _joined(table: NDArray[Number]) -> NDArray[Number]:
    """(rounds, trees a round, m) as (trees, m)."""
    return np.ascontiguousarray(table).reshape(-1, table.shape[2])


def _factors(factors: NDArray[np.int64]) -> list[_Factor]:
    models, first = [], 0
    for column in factors.T:
        classes, labels, start = first_predictions(column)
        raw = np.repeat(start[:, None], len(labels), axis=1)
        models.append(_Factor(classes, labels, start, slice(first, first + len(start)), raw))
        first += len(start)
    return models


def _edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The middle between the largest value of a bin and the least of the next, of sorted values."""
    starts = np.flatnonzero(values[1:] > values[:-1]) + 1
    if len(starts) >= HISTOGRAM_BINS:
        starts = _spread_evenly(starts, len(values))
    low, high = values[starts - 1], values[starts]
    middle = low / 2 + high / 2
    return np.where(middle < high, middle, low)


def _spread_evenly(starts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Choose where bins start: each takes an equal share of the rows that are left, or one frequent value."""
    chosen = [0]
    for bins_left in range(HISTOGRAM_BINS, 1, -1):
        share = -(-(n - chosen[-1]) // bins_left)  # rounded up
        place = np.searchsorted(starts, chosen[-1] + share)
        if place == len(starts):
            break
        chosen.append(int(starts[place]))
    return np.array(chosen[1:])


def _cells(
    codes: NDArray[np.float64], alive: NDArray[np.bool_], edges: NDArray[np.float64]
) -> NDArray[np.uint8]:
    cells = np.empty((len(edges), len(codes)), np.uint8)
    for row, column, cuts in zip(cells, np.flatnonzero(alive), edges, strict=True):
        row[:] = np.searchsorted(cuts, codes[:, column])
    return cells
