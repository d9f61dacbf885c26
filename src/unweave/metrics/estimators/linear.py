"""The linear models behind the scores, pinned: each is the exact optimum of a convex problem written here.

The published scores came from scikit-learn 0.21 with its defaults, which later versions changed, and every
score moved with them. A formula does not move: these are the problems that liblinear solved for it, with
the intercept penalised like a weight, solved by Newton's method to the last digits.
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


def logistic_one_vs_rest(x: Floats, labels: Labels, classes: int, *, c: float = 1.0) -> Floats:
    """Weights (classes, d + 1), the intercept last, of one logistic regression per class against the rest.

    Each row minimises 0.5 |w|^2 + c sum_i log(1 + exp(-s_i (x_i, 1) w)), s_i = 1 in the class and -1 outside.
    Labels are 0 .. classes - 1; a class without points gets a row that rejects everything.

    >>> x, labels = np.array([[-1.0], [1.0]]), np.array([0, 1])
    >>> bool(np.allclose(logistic_one_vs_rest(x, labels, 2), [[-0.674832, 0], [0.674832, 0]], atol=1e-6))
    True
    """
    scale = np.maximum(np.abs(x).max(axis=0), 1.0)  # so that the squares of huge codes do not overflow
    rows = np.hstack([x / scale, np.ones((len(x), 1))])
    penalty = np.append(np.maximum(scale**-2.0, LEAST_PENALTY), 1.0)
    weights = np.stack(
        [_logistic(rows, np.where(labels == i, 1.0, -1.0), penalty, c) for i in range(classes)]
    )
    weights[:, :-1] /= scale
    return weights


def decisions(x: Floats, weights: Floats) -> Floats:
    """(n, classes): how strongly each row of the weights, intercept last, claims each point."""
    return np.asarray(x @ weights[:, :-1].T + weights[:, -1])


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
    weights: Floats = _squared_hinge(x / scale, labels, gains, rests, penalty)
    weights[:, 0] /= scale
    return weights


def predict_of_one_code(x: Floats, weights: Floats) -> Labels:
    """(n,) classes that the rows of svm_of_one_code choose; the first where they agree."""
    scores = decisions(x[:, None], weights)
    best = scores.max(axis=1, keepdims=True)
    return np.asarray((scores >= best - ROUNDING).argmax(axis=1), np.int64)


def lasso(x: Floats, y: Floats, *, alpha: float = 0.1) -> Floats:
    """(d, e) coefficients that minimise |y - x w|^2 / (2 n) + alpha |w|_1 for each of the e columns of y.

    Both sides are taken as they are: centre them first for a model with an intercept. A column of zeros
    gets coefficient 0. By coordinate descent on the Gram matrix.
    """
    out: Floats = _lasso(x.T @ x / len(x), x.T @ y / len(x), alpha)
    return out


def _logistic(rows: Floats, signs: Floats, penalty: Floats, c: float) -> Floats:
    weights = np.zeros(rows.shape[1])
    margins = np.zeros(len(rows))
    loss = c * len(rows) * np.log(2.0)
    for _ in range(MOST_STEPS):
        wrong = 1 / (1 + np.exp(np.minimum(margins, 700.0)))  # the probability given to the other side
        gradient = penalty * weights - c * ((signs * wrong) @ rows)
        hessian = c * (rows.T * (wrong * (1 - wrong))) @ rows + np.diag(penalty)
        step = np.linalg.solve(hessian, -gradient)
        slope = float(gradient @ step)
        change = signs * (rows @ step)
        size = 1.0
        while size > 1e-9:
            moved = weights + size * step
            new_loss = 0.5 * float(penalty @ moved**2) + c * float(
                np.logaddexp(0.0, -(margins + size * change)).sum()
            )
            if new_loss <= loss + 1e-4 * size * slope:
                break
            size /= 2
        else:
            return weights  # no step lowers the loss any more: rounding is all that is left
        weights, margins, loss = moved, margins + size * change, new_loss
        if -slope <= 1e-11 * loss:
            break
    return weights


@compiled(nogil=True)
def _squared_hinge(x, labels, gains, rests, penalty):  # type: ignore[no-untyped-def]
    """Damped Newton steps for each class; two unknowns, so the Hessian is solved by hand."""
    out = np.zeros((len(gains), 2))
    for k in range(len(gains)):
        w = b = 0.0
        loss, gw, gb, hww, hwb, hbb = _hinge_sums(x, labels, k, gains[k], rests[k], penalty, w, b)
        for _ in range(MOST_STEPS):
            factor = hwb / hbb
            step_w = -(gw - factor * gb) / max(hww - factor * hwb, penalty)
            step_b = -(gb + hwb * step_w) / hbb
            slope = gw * step_w + gb * step_b
            if -slope <= 1e-14 * loss:
                break
            size = 1.0
            while size > 1e-9:
                sums = _hinge_sums(
                    x, labels, k, gains[k], rests[k], penalty, w + size * step_w, b + size * step_b
                )
                if sums[0] <= loss + 1e-4 * size * slope:
                    break
                size /= 2
            if size <= 1e-9:
                break
            w += size * step_w
            b += size * step_b
            loss, gw, gb, hww, hwb, hbb = sums
        out[k, 0] = w
        out[k, 1] = b
    return out


@compiled(nogil=True)
def _hinge_sums(x, labels, k, gain, rest, penalty, w, b):  # type: ignore[no-untyped-def]
    """Loss, gradient and Hessian in (w, b); each side is summed before it is weighted."""
    # Rows: the rest, the class. Columns: sums of m^2, m x, m, x^2, x, 1 over points of slack m > 0.
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
def _lasso(gram, target, alpha):  # type: ignore[no-untyped-def]
    d, e = target.shape
    out = np.zeros((d, e))
    for j in range(e):
        for _ in range(10_000):
            largest = 0.0
            for i in range(d):
                if gram[i, i] == 0:
                    continue
                old = out[i, j]
                rest = target[i, j] + gram[i, i] * old
                for m in range(d):
                    rest -= gram[i, m] * out[m, j]
                new = np.sign(rest) * max(abs(rest) - alpha, 0.0) / gram[i, i]
                out[i, j] = new
                largest = max(largest, abs(new - old))
            if largest <= 1e-10:
                break
    return out
