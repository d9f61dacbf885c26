"""Explicitness: whether a linear classifier can read every value of every factor off the codes.

Ridgeway and Mozer, "Learning deep disentangled embeddings with the F-statistic loss", NeurIPS 2018.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.metrics.checks import FactorError, scaled, split
from unweave.metrics.estimators.linear import decisions, logistic_of_classes


class Explicitness(NamedTuple):
    """Mean area under the ROC curve on the data of the classifier and on test data."""

    train: float
    test: float


def explicitness(
    codes: ArrayLike, factors: ArrayLike, *, test: tuple[ArrayLike, ArrayLike] | None = None
) -> Explicitness:
    """Mean over factors, and over their values, of the ROC-AUC of telling a value from the others [1].

    Codes are standardised by the mean and standard deviation of the training data. For each factor one
    logistic regression per value against the rest (penalised intercept, C = 1: the default of the
    scikit-learn 0.21 of the published study [2], at its exact optimum); a point's score for a value is that
    probability divided by the sum over all values, as scikit-learn has it.

    Range 0 to 1, 0.5 is chance; higher is better. A value that the test data lack, or that only they have,
    is left out of the mean on the test data. A dead code says nothing and does no harm.

    Differs from [1]: not rescaled from [0.5, 1] to [0, 1], as in [2]. Differs from [2]: there a dead code, or
    a value missing in the test data, stopped the metric with an error.

    References: [1] Ridgeway and Mozer, NeurIPS 2018. [2] Locatello et al., "Challenging common assumptions in
    the unsupervised learning of disentangled representations", ICML 2019.

    >>> factors = np.tile([[0], [1]], (30, 1))
    >>> explicitness(factors * 0.1, factors)
    Explicitness(train=1.0, test=1.0)
    """
    data = split(codes, factors, test)
    fit, held_out = _standardised(data.codes, data.test_codes)
    train_areas, test_areas = [], []
    classes = [np.unique(column) for column in data.factors.T]
    inside = [column[:, None] == values for column, values in zip(data.factors.T, classes, strict=True)]
    # All factors at once: what is computed from the codes alone is shared.
    all_weights = logistic_of_classes(fit, np.hstack(inside))
    ends = np.cumsum([len(values) for values in classes])[:-1]
    for j, (values, weights) in enumerate(zip(classes, np.split(all_weights, ends), strict=True)):
        train_areas.append(_mean_area(_probabilities(fit, weights), data.factors[:, j], values))
        test_areas.append(_mean_area(_probabilities(held_out, weights), data.test_factors[:, j], values))
    if np.isnan(test_areas).any():
        raise FactorError(
            "explicitness needs test data in which each factor takes two values; {factor} has one. Give more "
            "test data, or shuffle the rows. On held-out combinations, leave explicitness out or use "
            "--on all.",
            int(np.isnan(test_areas).argmax()),
        )
    return Explicitness(float(np.mean(train_areas)), float(np.mean(test_areas)))


def _standardised(
    codes: NDArray[np.float64], others: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both by the mean and deviation of the first; dead codes become 0."""
    fit, exponents = scaled(codes, axis=0)
    test = np.ldexp(others, -exponents)
    alive = (fit != fit[0]).any(axis=0)
    centre, deviation = fit.mean(axis=0), np.where(alive, fit.std(axis=0), 1.0)
    return (fit - centre) / deviation * alive, (test - centre) / deviation * alive


def _probabilities(codes: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    probabilities = 1 / (1 + np.exp(-np.clip(decisions(codes, weights), -700.0, 700.0)))
    return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))


def _mean_area(scores: NDArray[np.float64], truth: NDArray[np.int64], values: NDArray[np.int64]) -> float:
    """Mean ROC-AUC over the values that some points have and some lack; NaN if there is none.

    The area is the chance that a point with the value has a higher score than one without, ties counting
    half: from the sum of the ranks of the points with the value.
    """
    from scipy.stats import rankdata

    areas = []
    for score, value in zip(scores.T, values, strict=True):
        inside = truth == value
        n = int(inside.sum())
        if 0 < n < len(truth):
            ranks = rankdata(score)
            areas.append((ranks[inside].sum() - n * (n + 1) / 2) / (n * (len(truth) - n)))
    return float(np.mean(areas)) if areas else float("nan")
