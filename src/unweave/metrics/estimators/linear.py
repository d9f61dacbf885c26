"""The linear models behind the scores, pinned: each is the exact optimum of a convex problem written here.

The published scores came from scikit-learn 0.21 with its defaults, which later versions changed, and every
score moved with them. A formula does not move: these are the problems that liblinear solved for it, with
the intercept penalised like a weight, solved by Newton's method to the last digits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unweave.compilation import compiled
from unweave.metrics.estimators.wide_logistic import wide_logistic

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

MOST_STEPS = 200
# With more unknowns, classes are fitted together.
WIDE = 64
# Codes beyond 1e5, once scaled to 1, have next to no penalty left; this much keeps the Hessian invertible.
LEAST_PENALTY = 1e-10


def logistic_one_vs_rest(x: Floats, labels: Labels, classes: int, *, c: float = 1.0) -> Floats:
    """Weights (classes, d + 1), the intercept last, of one logistic regression per class against the rest.

    Each row minimises 0.5 |w|^2 + c sum_i log(1 + exp(-s_i (x_i, 1) w)), s_i = 1 in the class and -1 outside.
    Labels are 0 .. classes - 1; a class without points gets a row that rejects everything.

    >>> x, labels = np.array([[-1.0], [1.0]]), np.array([0, 1])
    >>> bool(np.allclose(logistic_one_vs_rest(x, labels, 2), [[-0.674832, 0], [0.674832, 0]], atol=1e-6))
    True
    """
    return logistic_of_classes(x, labels[:, None] == np.arange(classes), c=c)


def logistic_of_classes(x: Floats, inside: NDArray[np.bool_], *, c: float = 1.0) -> Floats:
    """Weights (m, d + 1) as in `logistic_one_vs_rest`, for classes of any factors: `inside` is (n, m)."""
    scale = np.maximum(np.abs(x).max(axis=0), 1.0)  # so that the squares of huge codes do not overflow
    rows = np.hstack([x / scale, np.ones((len(x), 1))])
    penalty = np.append(np.maximum(scale**-2.0, LEAST_PENALTY), 1.0)
    if len(penalty) > WIDE:
        weights = wide_logistic(rows, inside, penalty, c)
    else:
        weights = np.stack(
            [_logistic(rows, np.where(members, 1.0, -1.0), penalty, c) for members in inside.T]
        )
    weights[:, :-1] /= scale
    return weights


def decisions(x: Floats, weights: Floats) -> Floats:
    """(n, classes): how strongly each row of the weights, intercept last, claims each point."""
    return np.asarray(x @ weights[:, :-1].T + weights[:, -1])


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
