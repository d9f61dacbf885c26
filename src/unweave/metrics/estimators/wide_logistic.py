"""Logistic regression of many codes: all classes together, without a Hessian for each.

A Newton step solves (I + Z^T D Z) s = -g. With few codes the matrix is built (`linear`). With hundreds of
codes and dozens of classes that takes most of the time, so conjugate gradients are used: they need products
with Z only, shared by all classes. In the basis of the eigenvectors of Z^T Z, the matrix is close to diagonal
if the weights in D vary little, and a diagonal preconditioner leaves few iterations. Steps need not be exact:
their products are in single precision, the gradient in double.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_STEPS = 100
MOST_ITERATIONS = 50
# Part of the residual of the Newton step that conjugate gradients may leave.
RESIDUAL = 0.05


def wide_logistic(rows: Floats, inside: NDArray[np.bool_], penalty: Floats, c: float) -> Floats:
    """Weights (classes, u), of which each row minimises the loss of `logistic_of_classes`.

    The loss is 0.5 sum_j penalty_j w_j^2 + c sum_i log(1 + exp(-s_i rows_i w)).
    """
    root = np.sqrt(penalty)
    unit = rows / root
    basis, values = _principal_basis(unit)
    weights = _minimise(unit @ basis, inside, values, c)
    return np.asarray((basis @ weights / root[:, None]).T)


def _principal_basis(rows: Floats) -> tuple[Floats, Floats]:
    """Eigenvectors (u, r) of rows^T rows and their values; no matrix is larger than the rows (n, u).

    Directions in which no row extends are left out, since the optimum is 0 there.
    """
    is_wide = rows.shape[1] > len(rows)
    values, vectors = np.linalg.eigh(rows @ rows.T if is_wide else rows.T @ rows)
    kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
    values, vectors = values[kept], vectors[:, kept]
    return (rows.T @ (vectors / np.sqrt(values)) if is_wide else vectors), values


def _minimise(rows: Floats, inside: NDArray[np.bool_], values: Floats, c: float) -> Floats:
    """The optimum (u, classes) by Newton steps; rows^T rows has the values on its diagonal and else 0."""
    short, signs = rows.astype(np.float32), np.where(inside, 1.0, -1.0)
    weights = np.zeros((rows.shape[1], inside.shape[1]))
    margins = np.zeros(inside.shape)  # how far each row is on its side
    loss = np.full(inside.shape[1], c * len(rows) * np.log(2.0))
    active = np.arange(inside.shape[1])
    for _ in range(MOST_STEPS):
        wrong = 1 / (1 + np.exp(np.minimum(margins[:, active], 700.0)))
        gradient = weights[:, active] - c * (rows.T @ (signs[:, active] * wrong))
        step = _newton_step(short, c * wrong * (1 - wrong), gradient, values)
        slope = (gradient * step).sum(axis=0)
        change = signs[:, active] * (rows @ step)
        start = weights[:, active], margins[:, active], loss[active]
        size, new_loss = _step_size(*start, step, change, slope, c)
        weights[:, active] += size * step
        margins[:, active] += size * change
        loss[active] = new_loss
        active = active[(size > 0) & (-slope > 1e-11 * new_loss)]
        if not len(active):
            break
    return weights


def _newton_step(rows: NDArray[np.float32], curvature: Floats, gradient: Floats, values: Floats) -> Floats:
    """Solve (I + rows^T diag(curvature_k) rows) step_k = -gradient_k for each class k."""
    curvature = curvature.astype(np.float32)
    scale = 1 / (1 + curvature.mean(axis=0) * values[:, None])
    step, residual = np.zeros_like(gradient), -gradient
    direction = scale * residual
    size = (residual * direction).sum(axis=0)
    enough = np.maximum(RESIDUAL**2 * size, np.finfo(np.float64).tiny)
    for _ in range(MOST_ITERATIONS):
        product = direction + rows.T @ (curvature * (rows @ direction.astype(np.float32)))
        bend = (direction * product).sum(axis=0)
        length = np.where((size > enough) & (bend > 0), size / np.where(bend > 0, bend, 1.0), 0.0)
        step += length * direction
        residual -= length * product
        scaled = scale * residual
        new_size = (residual * scaled).sum(axis=0)
        if (new_size <= enough).all() or not length.any():
            break
        direction = scaled + new_size / np.maximum(size, np.finfo(np.float64).tiny) * direction
        size = new_size
    return step


def _step_size(
    weights: Floats, margins: Floats, loss: Floats, step: Floats, change: Floats, slope: Floats, c: float
) -> tuple[Floats, Floats]:
    """For each class the first of 1, 1/2, 1/4, ... that lowers the loss, or 0; and the loss after it."""
    size, new_loss = np.zeros(len(loss)), loss.copy()
    open_classes, trial = np.arange(len(loss)), 1.0
    while len(open_classes) and trial > 1e-9:
        moved = weights[:, open_classes] + trial * step[:, open_classes]
        losses = 0.5 * (moved**2).sum(axis=0) + c * np.logaddexp(
            0.0, -(margins[:, open_classes] + trial * change[:, open_classes])
        ).sum(axis=0)
        lower = losses <= loss[open_classes] + 1e-4 * trial * slope[open_classes]
        size[open_classes[lower]] = trial
        new_loss[open_classes[lower]] = losses[lower]
        open_classes, trial = open_classes[~lower], trial / 2
    return size, new_loss
