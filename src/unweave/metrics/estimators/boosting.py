"""Gradient boosted trees as scikit-learn defines them, many times faster.

DCI and the downstream tasks of the study are read from scikit-learn's GradientBoostingClassifier with
its defaults: 100 rounds, learning rate 0.1, trees of depth 3, one tree a class and round. The faster
kinds of boosted trees (histograms, second-order splits) give other importances, so this is the same
algorithm: every midpoint between neighbouring values of a code is tried, and the best split is the best
of all of them.

It is fast because a split is searched in two steps. The rows of a node are summed into at most 128 bins
a code, which gives the gain at the edges of the bins. How far the sum can rise or fall inside a bin is
known from the sum of its positive residuals and from the range of the residuals of the node, so the gain
inside has a bound; only bins whose bound beats the best gain so far are walked row by row. Few are, and no
split is missed.

Ties: scikit-learn visits the codes in random order, so equally good codes share their importance by
chance. Here one of them is drawn with equal probability, from a stream: the same seed, the same trees. Of
equally good splits of one code the first is taken, as there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unweave.compilation import compiled
from unweave.streams import Stream

BINS = 128
# scikit-learn takes values that are closer than this for equal.
SAME = np.float32(1e-7)
# A node whose variance is no more than this is not split.
PURE = np.finfo(np.float64).eps
# Gains that differ by less than this share count as equal: they differ by rounding only.
TIE = 1e-10


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
        raw = _raw(values, self.start, self.codes, self.thresholds, self.leaves)
        return np.asarray(self.classes[_choose(raw)])


def sort_codes(codes: NDArray[np.float64]) -> SortedCodes:
    """Sort every code (n, d) and cut it into bins of about equally many rows, never between equal values."""
    # Codes are read as float32, like scikit-learn does; only those that do not fit are scaled.
    exponents = np.maximum(np.frexp(np.abs(codes).max(axis=0))[1] - 126, 0).astype(np.int64)
    values = np.ascontiguousarray(_as_float32(codes, exponents).T)
    order = np.argsort(values, axis=1, kind="stable").astype(np.uint32)
    cells, starts = _cut(np.take_along_axis(values, order, axis=1), order)
    return SortedCodes(values, order, cells, starts, exponents)


def fit_boosted_trees(
    codes: SortedCodes,
    labels: NDArray[np.int64],
    *,
    rounds: int = 100,
    learning_rate: float = 0.1,
    seed: int | Stream = 0,
) -> BoostedTrees:
    """Fit trees that predict labels (n,) from codes.

    Labels of one class only give a model without trees: it predicts that class, and all importances
    are 0.
    """
    classes, numbers = np.unique(labels, return_inverse=True)
    prior = np.bincount(numbers) / len(numbers)
    start = np.log(prior)
    if len(classes) <= 2:
        start = start[1:] - start[:-1]
    rounds = rounds if len(start) else 0
    draws = Stream.of(seed).bits(rounds * len(start), 7 * len(codes.values))
    raw, splits, thresholds, leaves, importances = _boost(
        codes.values,
        codes.order,
        codes.cells,
        codes.starts,
        numbers,
        start,
        learning_rate,
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
        classes[_choose(raw)],
    )


def _as_float32(codes: NDArray[np.float64], exponents: NDArray[np.int64]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # a new row may be too large: infinity is on the right side too
        return np.ldexp(codes, -exponents).astype(np.float32)


def _choose(raw: NDArray[np.float64]) -> NDArray[np.int64]:
    """The class of each row, from raw predictions (trees a round, n): no, one or several trees a round."""
    if len(raw) == 1:
        return np.asarray(raw[0] >= 0, np.int64)
    return np.asarray(raw.argmax(axis=0), np.int64) if len(raw) else np.zeros(raw.shape[1], np.int64)


@compiled(nogil=True)
def _cut(values, order):  # type: ignore[no-untyped-def]
    """Bins of the sorted values (d, n): the bin of each row, and where each bin starts."""
    d, n = values.shape
    cells, starts = np.empty((n, d), np.uint32), np.full((d, BINS + 1), n, np.int32)
    for f in range(d):
        b, starts[f, 0] = 0, 0
        for p in range(n):
            if p * BINS >= (b + 1) * n and values[f, p] > values[f, p - 1] + SAME:
                b += 1
                starts[f, b] = p
            cells[order[f, p], f] = BINS * f + b
    return cells, starts


@compiled(nogil=True)
def _boost(values, order, cells, starts, labels, start, learning_rate, draws):  # type: ignore[no-untyped-def]
    """All trees of all rounds, and the total gain of each code."""
    rounds, trees, nodes, d = draws.shape
    n = len(labels)
    raw, residuals = np.empty((trees, n)), np.empty((trees, n))
    for k in range(trees):
        raw[k] = start[k]
    codes = np.zeros((rounds * trees, nodes), np.int64)
    thresholds, leaves = np.full((rounds * trees, nodes), np.inf), np.zeros((rounds * trees, nodes + 1))
    gains, counts = np.zeros(d), np.empty((nodes, d * BINS), np.int32)
    sums, positive = np.empty((nodes, d * BINS)), np.empty((nodes, d * BINS))
    _count(cells, np.arange(n), counts[0])
    rate = learning_rate * (1 - 1 / trees if trees > 1 else 1.0)
    for turn in range(rounds):
        _residuals(raw, labels, residuals)
        for k in range(trees):
            t = turn * trees + k
            rows, begins = _grow(
                values, order, cells, starts, residuals[k], draws[turn, k], counts, sums, positive, codes[t],
                thresholds[t], gains,
            )  # fmt: skip
            _step(rows, begins, residuals[k], rate, raw[k], leaves[t])
    return raw, codes, thresholds, leaves, gains


@compiled(nogil=True)
def _residuals(raw, labels, residuals):  # type: ignore[no-untyped-def]
    """Truth (0 or 1) minus the predicted probability, for each class: the negative gradient of the loss."""
    trees, n = raw.shape
    if trees == 1:
        residuals[0] = labels - 1 / (1 + np.exp(-raw[0]))
        return
    largest, total = raw[0].copy(), np.zeros(n)
    for k in range(1, trees):
        largest = np.maximum(largest, raw[k])
    for k in range(trees):
        residuals[k] = np.exp(raw[k] - largest)
        total += residuals[k]
    for k in range(trees):
        residuals[k] /= -total
    for i in range(n):
        residuals[labels[i], i] += 1


@compiled(nogil=True)
def _step(rows, begins, residuals, rate, raw, leaves):  # type: ignore[no-untyped-def]
    """One Newton step for each leaf: add rate x sum(residual) / sum(hessian) to the raw prediction."""
    for leaf in range(len(leaves)):
        inside = rows[begins[leaf] : begins[leaf + 1]]
        gradient, hessian = 0.0, 0.0
        for i in inside:
            size = abs(residuals[i])
            gradient += residuals[i]
            hessian += size * (1 - size)
        if hessian >= len(inside) * 1e-150 and len(inside) > 0:
            leaves[leaf] = rate * gradient / hessian
            for i in inside:
                raw[i] += leaves[leaf]


@compiled(nogil=True)
def _grow(  # type: ignore[no-untyped-def]
    values, order, cells, starts, residuals, draws, counts, sums, positive, codes, thresholds, gains
):
    """Grow one tree; return the rows sorted by leaf, and where the rows of each leaf begin."""
    n, nodes = len(residuals), len(codes)
    rows, node_of = np.arange(n).astype(np.uint32), np.zeros(n, np.uint8)
    begins = np.zeros(2 * nodes + 2, np.int64)
    ends = np.zeros(2 * nodes + 1, np.int64)
    ends[0] = n
    _sum(cells, rows, residuals, sums[0], positive[0])
    for node in range(nodes):
        begin, end, left, right = begins[node], ends[node], 2 * node + 1, 2 * node + 2
        middle = end
        stopped = node > 0 and thresholds[(node - 1) // 2] == np.inf
        low, high, variance = _spread(rows[begin:end], residuals)
        if variance > PURE and not stopped:
            gain, code, threshold = _best_split(
                values, order, starts, residuals, node_of, node, counts[node], sums[node], positive[node],
                low, high, draws[node],
            )  # fmt: skip
            if gain >= 0:
                codes[node], thresholds[node] = code, threshold
                gains[code] += gain
                middle = begin + _part(rows[begin:end], values[code], threshold, node_of, left)
        begins[left], ends[left], begins[right], ends[right] = begin, middle, middle, end
        if right < nodes and middle < end:
            small, large = (left, right) if middle - begin < end - middle else (right, left)
            inside = rows[begins[small] : ends[small]]
            _count(cells, inside, counts[small])
            _sum(cells, inside, residuals, sums[small], positive[small])
            counts[large] = counts[node] - counts[small]
            sums[large] = sums[node] - sums[small]
            positive[large] = positive[node] - positive[small]
    begins[2 * nodes + 1] = n
    return rows, begins[nodes:]


@compiled(nogil=True)
def _spread(rows, residuals):  # type: ignore[no-untyped-def]
    """Smallest and largest residual of some rows, and their variance."""
    low, high, total, squares = np.inf, -np.inf, 0.0, 0.0
    for i in rows:
        residual = residuals[i]
        low, high = min(low, residual), max(high, residual)
        total += residual
        squares += residual * residual
    n = max(len(rows), 1)
    return low, high, squares / n - (total / n) ** 2


@compiled(nogil=True)
def _count(cells, rows, counts):  # type: ignore[no-untyped-def]
    """Number of rows in each bin of each code."""
    counts[:] = 0
    for i in rows:
        for f in range(cells.shape[1]):
            counts[cells[i, f]] += 1


@compiled(nogil=True)
def _sum(cells, rows, residuals, sums, positive):  # type: ignore[no-untyped-def]
    """Sum of the residuals, and of the positive ones, in each bin of each code."""
    sums[:] = 0
    positive[:] = 0
    for i in rows:
        residual = residuals[i]
        for f in range(cells.shape[1]):
            sums[cells[i, f]] += residual
        if residual > 0:
            for f in range(cells.shape[1]):
                positive[cells[i, f]] += residual


@compiled(nogil=True)
def _part(rows, values, threshold, node_of, left):  # type: ignore[no-untyped-def]
    """Put the rows of a node that go left before those that go right; return how many go left."""
    right_rows = np.empty(len(rows), np.uint32)
    lefts, rights = 0, 0
    for i in rows:
        goes_right = values[i] > threshold
        node_of[i] = left + goes_right
        right_rows[rights] = i
        rows[lefts] = i
        rights += goes_right
        lefts += not goes_right
    rows[lefts:] = right_rows[:rights]
    return lefts


@compiled(nogil=True)
def _best_split(  # type: ignore[no-untyped-def]
    values, order, starts, residuals, node_of, node, counts, sums, positive, low, high, draws
):
    """The largest fall of the squared error by any split of a node, with its code and threshold.

    With c rows and residual sum s on the left, of n rows and sum S, it is (s - c S / n)^2 n / (c (n - c)).
    """
    d = len(values)
    counts, sums, positive = counts.reshape(d, BINS), sums.reshape(d, BINS), positive.reshape(d, BINS)
    n = counts[0].sum()
    mean = sums[0].sum() / n
    edge = -1.0
    for f in range(d):
        c, s = 0, 0.0
        for b in range(BINS - 1):
            c += counts[f, b]
            s += sums[f, b] - mean * counts[f, b]
            if 0 < c < n and s * s > edge * (c * (n - c)):
                edge = s * s / (c * (n - c))
    best, best_code, best_place, ties = -1.0, 0, 0, 0
    for f in range(d):
        gain, place = _best_of_code(
            values[f], order[f], starts[f], residuals, node_of, node, counts[f], sums[f], positive[f],
            n, mean, low, high, max(edge, best) * (1 - TIE),
        )  # fmt: skip
        if gain < 0 or gain < best * (1 - TIE):
            continue
        ties = ties + 1 if gain <= best * (1 + TIE) else 1
        if draws[f] % np.uint32(ties) == 0:
            best, best_code, best_place = gain, f, place
    if best < 0:
        return best, 0, np.inf
    return best * n, best_code, _threshold(values[best_code], order[best_code], node_of, node, best_place)


@compiled(nogil=True)
def _best_of_code(  # type: ignore[no-untyped-def]
    values, order, starts, residuals, node_of, node, counts, sums, positive, n, mean, low, high, floor
):
    """The best gain / n of one code if it is above the floor, and the place in the order where it splits."""
    best, place, c, s = -1.0, 0, 0, 0.0
    for b in range(BINS):
        count = counts[b]
        if count == 0:
            continue
        begin, end, here = starts[b], starts[b + 1], sums[b] - mean * count
        if count > 1 and values[order[end - 1]] > values[order[begin]] + SAME:
            # Inside the bin the sum rises by no more than `rise` above s, and falls as far below its end.
            rise = min(
                positive[b] + max(-mean, 0) * count, count * (high - mean), count * (mean - low) + here
            )
            top, bottom = s + rise, s + here - rise
            least = min((c + 1) * (n - c - 1), (c + count - 1) * (n - c - count + 1))
            if max(top * top, bottom * bottom) >= floor * least:
                inside, where = _walk(values, order, begin, end, residuals, node_of, node, c, s, n, mean)
                if inside > best * (1 + TIE):
                    best, place = inside, where
        c += count
        s += here
        if c < n and s * s > best * (1 + TIE) * (c * (n - c)):
            best, place = s * s / (c * (n - c)), end
    return best, place


@compiled(nogil=True)
def _walk(  # type: ignore[no-untyped-def]
    values, order, begin, end, residuals, node_of, node, c, s, n, mean
):
    """The best gain / n of the splits inside a bin, and the place in the order of the best split."""
    best, place, seen, value = -1.0, 0, False, values[order[begin]]
    for p in range(begin, end):
        i = order[p]
        if node_of[i] != node:
            continue
        if seen and values[i] > value + SAME and s * s > best * (1 + TIE) * (c * (n - c)):
            best, place = s * s / (c * (n - c)), p
        seen, value = True, values[i]
        c += 1
        s += residuals[i] - mean
    return best, place


@compiled(nogil=True)
def _threshold(values, order, node_of, node, place):  # type: ignore[no-untyped-def]
    """The middle between the values of the node's rows before and after a place in the order."""
    before, after = place - 1, place
    while node_of[order[before]] != node:
        before -= 1
    while node_of[order[after]] != node:
        after += 1
    return np.float64(values[order[before]]) / 2 + np.float64(values[order[after]]) / 2


@compiled(nogil=True)
def _raw(values, start, codes, thresholds, leaves):  # type: ignore[no-untyped-def]
    """Raw predictions (trees a round, n) of rows with values (d, n)."""
    n, trees, nodes = values.shape[1], len(start), codes.shape[1]
    raw = np.empty((trees, n))
    for k in range(trees):
        raw[k] = start[k]
    for t in range(len(codes)):
        for i in range(n):
            node = 0
            while node < nodes:
                node = 2 * node + 1 + (values[codes[t, node], i] > thresholds[t, node])
            raw[t % trees, i] += leaves[t, node - nodes]
    return raw
