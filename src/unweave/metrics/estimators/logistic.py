"""Logistic regression with a cross-validated penalty, as the downstream task of the study has it.

The published accuracies came from LogisticRegressionCV(Cs=10, cv=KFold(5)) of scikit-learn 0.21, whose
defaults have changed since. Written out, it is: one problem per class against the rest (a single one for
two classes), each minimising over weights w and a free intercept b

    0.5 |w|^2 + C sum_i log(1 + exp(-s_i (x_i w + b))),   s_i = 1 in the class and -1 outside,

C from ten values between 1e-4 and 1e4, evenly spaced in their logarithm; for each class the C with the
largest mean accuracy of its own yes or no over five folds of consecutive rows, the smallest of equals;
then a fit to all rows. A row belongs to the class whose decision is largest.

The problems are small (d + 1 unknowns) and many (classes x folds x 10), so all classes take Newton steps
together, and each C starts from the solution of the one before. The optimum is reached to rounding, which
the 100 steps of L-BFGS in the original did not always do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PENALTIES = np.logspace(-4, 4, 10)
FOLDS = 5
MOST_STEPS = 100
# Huge codes, once scaled to 1, have next to no penalty left; this much keeps the Hessian invertible.
LEAST_PENALTY = 1e-10
# Added to the diagonal of the Hessian, as a share of its largest entry.
DAMPING = 1e-13
# Up to so many unknowns the products of codes are shared by all problems.
FEW_UNKNOWNS = 32
# Rows that are summed at once: few enough to stay in the cache of a core.
BLOCK = 512
# The intercept that stands for "always" when all rows are in the class, and with a minus for "never".
ALWAYS = 1e3


@dataclass(frozen=True)
class LogisticModel:
    """A fitted classifier; with one class there are no problems, and it is always predicted."""

    classes: NDArray[np.int64]
    weights: Floats  # (problems, d + 1), the intercept last
    penalties: Floats  # (problems,): the chosen C

    def predict(self, codes: Floats) -> NDArray[np.int64]:
        """The class of each row."""
        if len(self.classes) == 1:
            return np.full(len(codes), self.classes[0])
        scores = codes @ self.weights[:, :-1].T + self.weights[:, -1]
        chosen = scores[:, 0] > 0 if len(self.classes) == 2 else scores.argmax(axis=1)
        return np.asarray(self.classes[chosen.astype(np.int64)])


def fit_logistic_cv(codes: Floats, labels: NDArray[np.int64]) -> LogisticModel:
    """Fit to codes (n, d) and labels (n,), choosing C for each class.

    With fewer than five rows there are as many folds as rows. A class that a fold's training rows do not
    hold is never predicted there.
    """
    classes = np.unique(labels)
    if len(classes) == 1:
        return LogisticModel(classes, np.empty((0, codes.shape[1] + 1)), np.empty(0))
    inside = labels[:, None] == (classes if len(classes) > 2 else classes[1:])
    # The intercept is free, so centring changes no optimum; an offset would make the Hessian singular.
    # Codes above 1 are divided by their size, so that the squares of huge ones are finite.
    exponents = np.maximum(np.frexp(np.abs(codes).max(axis=0))[1], 0)
    small = np.ldexp(codes, -exponents)
    centre = small.mean(axis=0)
    scale = np.maximum(np.abs(small - centre).max(axis=0), np.ldexp(1.0, -exponents))
    rows = np.hstack([(small - centre) / scale, np.ones((len(codes), 1))])
    shrink = np.append(np.maximum(np.ldexp(1 / scale, -exponents) ** 2, LEAST_PENALTY), 0.0)
    accuracy, path = _cross_validate(rows, inside, shrink)
    chosen = accuracy.argmax(axis=0)
    start = path[chosen, np.arange(len(chosen))]
    weights = _fit(rows, inside, shrink, PENALTIES[chosen], start)
    weights[:, -1] -= weights[:, :-1] @ (centre / scale)
    weights[:, :-1] = np.ldexp(weights[:, :-1] / scale, -exponents)
    return LogisticModel(classes, weights, PENALTIES[chosen])


def _cross_validate(rows: Floats, inside: NDArray[np.bool_], shrink: Floats) -> tuple[Floats, Floats]:
    """For each C and problem, the sum over folds of the accuracy, and the mean over folds of the weights."""
    (n, problems), unknowns = inside.shape, rows.shape[1]
    accuracy = np.zeros((len(PENALTIES), problems))
    path = np.zeros((len(PENALTIES), problems, unknowns))
    folds = np.array_split(np.arange(n), min(FOLDS, n))
    for fold in folds:
        rest = np.setdiff1d(np.arange(n), fold)
        weights = np.zeros((problems, unknowns))
        for number, c in enumerate(PENALTIES):
            weights = _fit(rows[rest], inside[rest], shrink, np.full(problems, c), weights)
            accuracy[number] += ((rows[fold] @ weights.T > 0) == inside[fold]).mean(axis=0)
            path[number] += weights / len(folds)
    return accuracy, path


def _fit(rows: Floats, inside: NDArray[np.bool_], shrink: Floats, c: Floats, start: Floats) -> Floats:
    """The optimum (problems, unknowns), by Newton steps from the start; a step that goes too far is halved.

    Along a step the slope of the loss rises from below 0; past the minimum it is above 0. If it is more
    than a quarter of what it was at the beginning, the step is halved.
    """
    weights = start.copy()
    members = inside.sum(axis=0)
    one_sided = (members == 0) | (members == len(rows))
    weights[one_sided] = 0
    weights[one_sided, -1] = np.where(members[one_sided] > 0, ALWAYS, -ALWAYS)
    active = np.flatnonzero(~one_sided)
    weights[active, -1] = np.clip(weights[active, -1], -ALWAYS / 2, ALWAYS / 2)
    step, slope = np.zeros_like(weights), np.zeros(len(weights))
    for _ in range(MOST_STEPS):
        gradient, hessian = _derivatives(rows, inside[:, active], shrink, c[active], weights[active])
        too_far = (gradient * step[active]).sum(axis=1) > -slope[active] / 4
        step[active[too_far]] /= 2
        slope[active[too_far]] /= 2
        weights[active[too_far]] -= step[active[too_far]]
        fine = active[~too_far]
        step[fine] = -np.linalg.solve(hessian[~too_far], gradient[~too_far][:, :, None])[:, :, 0]
        slope[fine] = (gradient[~too_far] * step[fine]).sum(axis=1)
        weights[fine] += step[fine]
        close = np.zeros(len(weights), np.bool_)
        close[fine] = -slope[fine] <= 1e-8 * c[fine] * len(rows)
        active = active[~close[active]]
        if len(active) == 0:
            break
    return weights


def _weighted_squares(rows: Floats, weights: Floats) -> Floats:
    """sum_i weights[i, k] rows[i] rows[i]^T for each problem k, (problems, unknowns, unknowns)."""
    unknowns = rows.shape[1]
    if unknowns > FEW_UNKNOWNS:
        return np.stack([(rows.T * column) @ rows for column in weights.T])
    first, second = np.triu_indices(unknowns)
    products = np.zeros((weights.shape[1], len(first)))
    for begin in range(0, len(rows), BLOCK):
        block = rows[begin : begin + BLOCK]
        products += weights[begin : begin + BLOCK].T @ (block[:, first] * block[:, second])
    squares = np.empty((weights.shape[1], unknowns, unknowns))
    squares[:, first, second] = squares[:, second, first] = products
    return squares


def _derivatives(
    rows: Floats, inside: NDArray[np.bool_], shrink: Floats, c: Floats, weights: Floats
) -> tuple[Floats, Floats]:
    """Gradient (problems, unknowns) and Hessian (problems, unknowns, unknowns) of the loss."""
    unknowns = rows.shape[1]
    probability = 1 / (1 + np.exp(np.minimum(-(rows @ weights.T), 700.0)))
    gradient = (probability - inside).T @ rows
    hessian = c[:, None, None] * _weighted_squares(rows, probability * (1 - probability))
    # A certain intercept and copied huge codes have no curvature. Damping keeps the step finite, and does not
    # move the optimum, where the gradient is 0.
    largest = np.diagonal(hessian, axis1=1, axis2=2).max(axis=1)
    damping = np.maximum(np.maximum(shrink, LEAST_PENALTY), DAMPING * largest[:, None])
    hessian[:, np.arange(unknowns), np.arange(unknowns)] += damping
    return c[:, None] * gradient + shrink * weights, hessian
