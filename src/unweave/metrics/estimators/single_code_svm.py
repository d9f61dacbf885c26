"""Linear support vector machines that see one code, at the exact optimum: the classifiers of SAP.

The points with a positive slack are a range of the sorted codes, so Newton's method finds their sums in
tables of cumulative sums. Steps over all points then remove the rounding error of the tables.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unweave.compilation import compiled

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

MOST_STEPS = 200
# Codes beyond 1e5, once scaled to 1, have next to no penalty left; this much keeps the Hessian invertible.
LEAST_PENALTY = 1e-10
# A dead code of two balanced classes has decision 0, up to rounding that must not choose the class.
ROUNDING = 1e-12


def svm_of_one_code(x: Floats, labels: Labels, classes: int, *, c: float = 0.01) -> Floats:
    """Weights (classes, 2) of linear classifiers of the single number x (n,), one per class against the rest.

    Each row minimises 0.5 (w^2 + b^2) + c sum_i g_i max(0, 1 - s_i (w x_i + b))^2. Balanced as liblinear does
    it: g = n / (classes n_class) for the points of the class, 1 for the rest. Two classes are one problem
    with g of its own class for every point, and the rows are its solution and the opposite.
    """
    scale = max(float(np.abs(x).max()), 1.0)
    penalty = max(scale**-2.0, LEAST_PENALTY)
    gains = c * len(x) / (classes * np.maximum(np.bincount(labels, minlength=classes), 1))
    rests = np.full(classes, c)
    if classes == 2:
        rests = gains[::-1].copy()
    order = np.argsort(x, kind="stable")
    weights: Floats = _squared_hinge(x[order] / scale, labels[order], gains, rests, penalty)
    weights[:, 0] /= scale
    return weights


def accuracy_of_one_code(x: Floats, weights: Floats, truth: Labels) -> float:
    """Share of points whose class the rows of svm_of_one_code name; a class of -1 is never named.

    Where m classes are tied each gets 1/m of the point, so that the order of the classes does not matter.
    """
    return float(_hits(x, weights, truth)) / len(x)


@compiled(nogil=True)
def _hits(x, weights, truth):  # type: ignore[no-untyped-def]
    total, scores = 0.0, np.empty(len(weights))
    for i in range(len(x)):
        best = -np.inf
        for k in range(len(weights)):
            scores[k] = weights[k, 0] * x[i] + weights[k, 1]
            best = max(best, scores[k])
        if truth[i] >= 0 and scores[truth[i]] >= best - ROUNDING:
            tied = 0
            for k in range(len(weights)):
                tied += scores[k] >= best - ROUNDING
            total += 1.0 / tied
    return total


@compiled(nogil=True)
def _squared_hinge(x, labels, gains, rests, penalty):  # type: ignore[no-untyped-def]
    """The optimum of each class; x is ascending."""
    classes = len(gains)
    begins = np.zeros(classes + 1, np.int64)
    for label in labels:
        begins[label + 1] += 1
    begins = np.cumsum(begins)
    grouped, filled = np.empty(len(x)), begins.copy()
    for i in range(len(x)):
        grouped[filled[labels[i]]] = x[i]
        filled[labels[i]] += 1
    everyone = np.zeros((len(x) + 1, 2))
    members = np.zeros((len(x) + 1, 2))
    for i in range(len(x)):
        for power in range(2):
            everyone[i + 1, power] = everyone[i, power] + x[i] ** (power + 1)
            members[i + 1, power] = members[i, power] + grouped[i] ** (power + 1)
    out = np.zeros((classes, 2))
    for k in range(classes):
        own = grouped[begins[k] : begins[k + 1]]
        tables = everyone, members[begins[k] : begins[k + 1] + 1]
        w = b = 0.0
        for exact in (False, True):
            w, b = _minimise(exact, x, labels, k, own, tables, gains[k], rests[k], penalty, w, b)
        out[k, 0] = w
        out[k, 1] = b
    return out


@compiled(nogil=True)
def _minimise(exact, x, labels, k, own, tables, gain, rest, penalty, w, b):  # type: ignore[no-untyped-def]
    """Damped Newton steps from (w, b); two unknowns, so the Hessian is solved by hand."""
    loss, gw, gb, hww, hwb, hbb = _derivatives(exact, x, labels, k, own, tables, gain, rest, penalty, w, b)
    for _ in range(MOST_STEPS):
        factor = hwb / hbb
        step_w = -(gw - factor * gb) / max(hww - factor * hwb, penalty)
        step_b = -(gb + hwb * step_w) / hbb
        slope = gw * step_w + gb * step_b
        if -slope <= 1e-14 * loss:
            break
        size = 1.0
        while size > 1e-9:
            sums = _derivatives(
                exact, x, labels, k, own, tables, gain, rest, penalty, w + size * step_w, b + size * step_b
            )
            if sums[0] <= loss + 1e-4 * size * slope:
                break
            size /= 2
        if size <= 1e-9:
            break
        w += size * step_w
        b += size * step_b
        loss, gw, gb, hww, hwb, hbb = sums
    return w, b


@compiled(nogil=True)
def _derivatives(exact, x, labels, k, own, tables, gain, rest, penalty, w, b):  # type: ignore[no-untyped-def]
    """Loss, gradient and Hessian in (w, b); each side is summed before it is weighted."""
    sums = _sums_over_points(x, labels, k, w, b) if exact else _sums_from_tables(x, own, tables, w, b)
    losses = rest * sums[0] + gain * sums[1]
    pull = rest * sums[0] - gain * sums[1]
    return (
        0.5 * (penalty * w * w + b * b) + losses[0],
        penalty * w + 2 * pull[1],
        b + 2 * pull[2],
        penalty + 2 * losses[3],
        2 * losses[4],
        1 + 2 * losses[5],
    )


@compiled(nogil=True)
def _sums_over_points(x, labels, k, w, b):  # type: ignore[no-untyped-def]
    """Rows: the rest, the class. Columns: sums of m^2, m x, m, x^2, x, 1 over points of slack m > 0."""
    sums = np.zeros((2, 6))
    for i in range(len(x)):
        inside = 1 if labels[i] == k else 0
        line = w * x[i] + b
        slack = 1 - line if inside else 1 + line
        if slack > 0:
            side = sums[inside]
            side[0] += slack * slack
            side[1] += slack * x[i]
            side[2] += slack
            side[3] += x[i] * x[i]
            side[4] += x[i]
            side[5] += 1
    return sums


@compiled(nogil=True)
def _sums_from_tables(x, own, tables, w, b):  # type: ignore[no-untyped-def]
    """The same sums from cumulative sums of x and x^2 over everyone and over the class."""
    everyone, members = tables
    sums = np.zeros((2, 6))
    for inside in range(2):
        slope, height = (-w, 1 - b) if inside else (w, 1 + b)  # slack = slope x + height
        first, last = _positive(own, slope, height)
        count, total, squares = _range(members, first, last)
        if not inside:
            first, last = _positive(x, slope, height)
            counts, totals, all_squares = _range(everyone, first, last)
            count, total, squares = counts - count, totals - total, all_squares - squares
        side = sums[inside]
        side[0] = height * height * count + 2 * height * slope * total + slope * slope * squares
        side[1] = height * total + slope * squares
        side[2] = height * count + slope * total
        side[3], side[4], side[5] = squares, total, count
    return sums


@compiled(nogil=True)
def _positive(x, slope, height):  # type: ignore[no-untyped-def]
    """First and last + 1 of the ascending x with slope x + height > 0."""
    low, high = 0, len(x)
    if slope == 0:
        return (0, high) if height > 0 else (0, 0)
    while low < high:
        middle = (low + high) // 2
        if (slope * x[middle] + height > 0) == (slope > 0):
            high = middle
        else:
            low = middle + 1
    return (low, len(x)) if slope > 0 else (0, low)


@compiled(nogil=True)
def _range(table, first, last):  # type: ignore[no-untyped-def]
    return float(last - first), table[last, 0] - table[first, 0], table[last, 1] - table[first, 1]
