"""Compiled functions that grow boosted trees and predict with them, as scikit-learn defines them.

A split is searched in two steps. The rows of a node are summed into at most 128 bins a code, which gives
the gain at the edges of the bins. The sum of the positive residuals of a bin and the range of the residuals
of the node bound how far the sum can rise or fall inside the bin, and so bound the gain inside. Only bins
whose bound beats the best gain so far are walked row by row. Few are, and no split is missed.

Histogram trees (`grow_from_histograms`) only split at the edges of 64 bins a code. One pass over the codes
sums the bins at the roots of all trees; a tree then looks at a few codes only.

These functions call each other and stay in one file: Numba's cache notices a change of the file of a
function, but not of the files of the functions that it calls.
"""

import numpy as np

from unweave.compilation import compiled

BINS = 128
HISTOGRAM_BINS = 64
# scikit-learn takes values that are closer than this for equal.
SAME = np.float32(1e-7)
# Gains that differ by less than this share count as equal: they differ by rounding only.
TIE = 1e-10
HISTOGRAM_TIE = 1e-5  # of sums in float32


@compiled(nogil=True)
def cut(values, order):  # type: ignore[no-untyped-def]
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
def boost(values, order, cells, starts, labels, start, learning_rate, purity, draws):  # type: ignore[no-untyped-def]
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
        residuals_of(raw, labels, residuals)
        for k in range(trees):
            t = turn * trees + k
            rows, begins = _grow(
                values, order, cells, starts, residuals[k], draws[turn, k], counts, sums, positive, codes[t],
                thresholds[t], gains, purity,
            )  # fmt: skip
            step(rows, begins, residuals[k], rate, raw[k], leaves[t])
    return raw, codes, thresholds, leaves, gains


@compiled(nogil=True)
def residuals_of(raw, labels, residuals):  # type: ignore[no-untyped-def]
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
def step(rows, begins, residuals, rate, raw, leaves):  # type: ignore[no-untyped-def]
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
    values, order, cells, starts, residuals, draws, counts, sums, positive, codes, thresholds, gains, purity
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
        if variance > purity and not stopped:
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
        if count > 1:
            # Inside the bin the sum rises by no more than `rise` above s, and falls as far below its end.
            rise = min(
                positive[b] + max(-mean, 0) * count, count * (high - mean), count * (mean - low) + here
            )
            top, bottom = s + rise, s + here - rise
            least = min((c + 1) * (n - c - 1), (c + count - 1) * (n - c - count + 1))
            # The bound is compared first: to look at the values takes longer.
            promising = max(top * top, bottom * bottom) >= floor * least
            if promising and values[order[end - 1]] > values[order[begin]] + SAME:
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
def raw_predictions(values, start, codes, thresholds, leaves):  # type: ignore[no-untyped-def]
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


@compiled(nogil=True)
def sum_histograms(cells, residuals, sums):  # type: ignore[no-untyped-def]
    """Sum residuals (n, trees) into the bins (d, n) of each code: sums (d, bins, trees)."""
    sums[:] = 0
    for f in range(len(cells)):
        for i in range(cells.shape[1]):
            # Views of one row, so that the compiler adds many classes at once.
            total, row = sums[f, cells[f, i]], residuals[i]
            for k in range(len(row)):
                total[k] += row[k]


@compiled(nogil=True)
def root_gains(counts, sums):  # type: ignore[no-untyped-def]
    """The largest gain / n of each code for each tree (d, trees), before any split; -1 if there is none."""
    d, bins, trees = sums.shape
    n, best, s = counts[0].sum(), np.full((d, trees), -1.0), np.empty(trees)
    mean = np.zeros(trees)
    for b in range(bins):
        mean += sums[0, b] / n
    for f in range(d):
        s[:] = 0
        c = 0
        for b in range(bins):
            c += counts[f, b]
            for k in range(trees):
                s[k] += sums[f, b, k] - mean[k] * counts[f, b]
            if 0 < c < n:
                for k in range(trees):
                    best[f, k] = max(best[f, k], s[k] * s[k] / (c * (n - c)))
    return best


@compiled(nogil=True)
def grow_from_histograms(cells, choice, counts, sums, residuals, draws, purity, codes, places, gains):  # type: ignore[no-untyped-def]
    """Grow one tree from some codes; return the rows sorted by leaf, and where the rows of each leaf begin.

    `choice` has the numbers of these codes; counts and sums (nodes, codes, bins) are filled in for the root.
    """
    n, nodes = len(residuals), len(codes)
    rows, unused = np.arange(n).astype(np.uint32), np.empty(n, np.uint8)
    begins, ends = np.zeros(2 * nodes + 2, np.int64), np.zeros(2 * nodes + 1, np.int64)
    ends[0] = n
    for node in range(nodes):
        begin, end, left, right = begins[node], ends[node], 2 * node + 1, 2 * node + 2
        middle = end
        stopped = node > 0 and places[(node - 1) // 2] == np.inf
        if not stopped and _spread(rows[begin:end], residuals)[2] > purity:
            gain, code, place = _best_edge(counts[node], sums[node], end - begin, draws[node])
            if gain >= 0:
                codes[node], places[node] = choice[code], place
                gains[choice[code]] += gain
                middle = begin + _part(rows[begin:end], cells[choice[code]], place, unused, left)
        begins[left], ends[left], begins[right], ends[right] = begin, middle, middle, end
        if right < nodes and middle < end:
            small, large = (left, right) if middle - begin < end - middle else (right, left)
            _fill(cells, choice, rows[begins[small] : ends[small]], residuals, counts[small], sums[small])
            counts[large] = counts[node] - counts[small]
            sums[large] = sums[node] - sums[small]
    begins[2 * nodes + 1] = n
    return rows, begins[nodes:]


@compiled(nogil=True)
def _fill(cells, choice, rows, residuals, counts, sums):  # type: ignore[no-untyped-def]
    """Number of rows and sum of their residuals in each bin of the chosen codes."""
    counts[:] = 0
    sums[:] = 0
    for j in range(len(choice)):
        bins, count, total = cells[choice[j]], counts[j], sums[j]
        for i in rows:
            b = bins[i]
            count[b] += 1
            total[b] += residuals[i]


@compiled(nogil=True)
def _best_edge(counts, sums, n, draws):  # type: ignore[no-untyped-def]
    """The largest fall of the squared error by a split between bins, with the code and the last bin left."""
    mean = sums[0].sum() / n
    best, best_code, best_place, ties = -1.0, 0, 0, 0
    for j in range(len(counts)):
        gain, place, c, s = -1.0, 0, 0, 0.0
        for b in range(counts.shape[1]):
            c += counts[j, b]
            s += sums[j, b] - mean * counts[j, b]
            if 0 < c < n and s * s > gain * (1 + HISTOGRAM_TIE) * (c * (n - c)):
                gain, place = s * s / (c * (n - c)), b
        if gain < 0 or gain < best * (1 - HISTOGRAM_TIE):
            continue
        ties = ties + 1 if gain <= best * (1 + HISTOGRAM_TIE) else 1
        if draws[j] % np.uint32(ties) == 0:
            best, best_code, best_place = gain, j, place
    return best * n, best_code, best_place
