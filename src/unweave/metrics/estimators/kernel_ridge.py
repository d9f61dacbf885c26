"""Ridge regression with a Gaussian kernel, its width and penalty chosen by cross-validation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# The grid of von Kügelgen et al. (2021).
PENALTIES = (1.0, 0.1, 0.01, 0.001)
WIDTHS = tuple(float(width) for width in np.logspace(-2, 2, 4))
FOLDS = 3


class KernelRidge(NamedTuple):
    """A fitted model: f(x) = sum_n weights_n exp(-width |x - codes_n|^2)."""

    codes: Floats  # (n, d)
    weights: Floats  # (n, k)
    width: float
    penalty: float

    def predict(self, codes: Floats) -> Floats:
        """Return the predicted targets (m, k) of codes (m, d)."""
        return np.asarray(_kernel(_distances(codes, self.codes), self.width) @ self.weights)


def fit_kernel_ridge(codes: Floats, targets: Floats) -> KernelRidge:
    """Fit standardised codes (n, d) to centred targets (n, k) with the best width and penalty of the grid.

    The best pair has the largest mean R^2 over 3 folds of consecutive rows and all targets. Rows with equal
    codes are in the same fold. Otherwise the narrowest kernel, which only repeats such rows, would win.
    """
    distances, folds = _distances(codes, codes), _folds(codes)
    scores = {
        (penalty, width): score
        for width in WIDTHS
        for penalty, score in _validated(_kernel(distances, width), targets, folds).items()
    }
    penalty, width = max(scores, key=lambda pair: scores[pair])
    weights = _solve(_kernel(distances, width), targets, penalty)
    return KernelRidge(codes, weights, width, penalty)


def _distances(first: Floats, second: Floats) -> Floats:
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(first, second, "sqeuclidean"))


def _kernel(distances: Floats, width: float) -> Floats:
    return np.asarray(np.exp(-width * distances))


def _solve(kernel: Floats, targets: Floats, penalty: float) -> Floats:
    from scipy.linalg import cho_factor, cho_solve

    penalised = kernel + penalty * np.eye(len(kernel))
    return np.asarray(cho_solve(cho_factor(penalised, lower=True, overwrite_a=True), targets))


def _folds(codes: Floats) -> list[NDArray[np.int64]]:
    """The rows of each fold, in the order in which their codes appear first."""
    _, first, group = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    if len(first) == 1:  # dead codes, which predict the mean
        return np.array_split(np.arange(len(codes)), min(FOLDS, len(codes)))
    place = first[group.ravel()]  # of the first row with the same codes
    parts = np.array_split(np.sort(first), min(FOLDS, len(first)))
    return [np.flatnonzero((place >= part[0]) & (place <= part[-1])) for part in parts]


def _validated(kernel: Floats, targets: Floats, folds: list[NDArray[np.int64]]) -> dict[float, float]:
    """Mean R^2 on the folds left out, for each penalty."""
    scores: dict[float, list[float]] = {penalty: [] for penalty in PENALTIES}
    for held_out in folds:
        rest = np.setdiff1d(np.arange(len(targets)), held_out)
        own, across, truth = kernel[np.ix_(rest, rest)], kernel[np.ix_(held_out, rest)], targets[held_out]
        total = ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
        for penalty, results in scores.items():
            error = ((across @ _solve(own, targets[rest], penalty) - truth) ** 2).sum(axis=0)
            results.append(float(np.mean(1 - error / np.where(total > 0, total, 1.0))))
    return {penalty: float(np.mean(results)) for penalty, results in scores.items()}
