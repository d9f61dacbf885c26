"""DCI-ES: how simple a model is enough to read the factors off the codes, and how few codes there are.

Eastwood, Nicolicioiu, von Kügelgen, Kekić, Träuble, Dittadi, Schölkopf, "DCI-ES: An extended disentanglement
framework with connections to identifiability", ICLR 2023 [1], with the settings of the authors' program [2].
Its D, C and I are those of `dci`; here are the two scores that it adds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.metrics.checks import scaled
from unweave.metrics.real_factors import split_real
from unweave.streams import Stream

Floats = NDArray[np.float64]

# Fourier features of each probe; the first has none and is linear.
FEATURES = (0, 16, 32, 64, 128, 256, 512, 1024)
# Doublings. The linear probe stands one doubling before the first that has features.
CAPACITIES = np.log2(np.maximum(FEATURES, FEATURES[1] / 2))
# Standard deviation of the frequencies, for codes of standard deviation 1 [2]: a kernel of width 2.
FREQUENCY = 2 * np.pi * 0.08
RIDGE = 1e-3
# Rows whose features are held at once, so that memory does not grow with the number of points.
BLOCK = 4096
# A test code can be this many deviations out, and its square is still a number.
FARTHEST = 1e100


class DCIES(NamedTuple):
    """Explicitness and size, the explicitness of each factor, and the curves that it comes from."""

    explicitness: float
    size: float
    factor_explicitness: Floats  # (k,)
    losses: Floats  # (capacities, k): of each probe on the test data, 1 is that of the mean


def dci_es(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    seed: int | Stream = 0,
) -> DCIES:
    """Explicitness E in [-1, 1] and size S > 0; higher is better.

    Probes t = 1 .. T of growing capacity kappa_t predict factor j; l_tj is their loss on the test data.

        E_j = 1 - A_j / Z_j,   E = mean over j of E_j,   S = k / d
        A_j = area between the curve (kappa_t, l_tj) and its best loss, min_t l_tj
        Z_j = (kappa_T - kappa_1) b_j / 2: the area below a straight fall to 0 from b_j, the loss of the mean

    The curve is that of the best loss so far, so it ends where the best probe is; between probes it is
    straight. E is 1 if the smallest probe is already the best, 0 if the loss falls evenly from that of the
    mean to 0, and below 0 if only large probes learn anything. S counts all codes, dead ones too; it is above
    1 if there are more factors than codes.

    The probes are ridge regressions on an intercept, the codes and the first 0, 16, 32, 64, ..., 1024 of one
    list of random Fourier features, sqrt(2) cos(w z) and sqrt(2) sin(w z) with w from N(0, (2 pi 0.08)^2) as
    in [2]; kappa is log2 of their number, and 3 for none. They minimise the mean squared error + 0.001 times
    the sum of the squared weights, without that of the intercept. Of the probes of [1] (MLPs, forests, these)
    they are the ones with a formula for the optimum, so no solver or library decides a score. The linear
    probe comes first because E = 1 is to mean that a linear model is enough. More than 1,024 features would
    be too many for the usual 10,000 points. Codes are standardised by the training data. The loss is 1 - R^2:
    the squared error on the test data divided by that of the mean of the training data, so b_j = 1; a probe
    that is worse than the mean counts as the mean.

    Without `test` the last third of the rows is held out. The seed draws the frequencies.

    Differs from [1], as [2] computes it: there categories have a classifier with loss 1 - accuracy; here all
    factors are numbers. There these probes are trained by AdamW without a penalty, have 16 to 131,072
    features and no linear part, and a loss above b_j counts as it is. As there, Z_j has 0 for the least loss.

    >>> factors = Stream.of(0).integers(600, [3, 4])
    >>> score = dci_es(factors * 0.1, factors)
    >>> round(score.explicitness, 3), score.size, score.losses.shape
    (1.0, 1.0, (8, 2))
    """
    data = split_real(codes, factors, test)
    train, held_out = _standardised(data.codes, data.test_codes)
    centre, deviation = data.factors.mean(axis=0), data.factors.std(axis=0)
    frequencies = FREQUENCY * Stream.of(seed).child("dci_es").normal(FEATURES[-1] // 2, train.shape[1])
    weights = _fit_probes(train, (data.factors - centre) / deviation, frequencies)
    losses = _losses(held_out, (data.test_factors - centre) / deviation, frequencies, weights)
    each = explicitness_of_curves(losses, CAPACITIES)
    return DCIES(float(each.mean()), data.factors.shape[1] / data.codes.shape[1], each, losses)


def explicitness_of_curves(losses: Floats, capacities: Floats) -> Floats:
    """E (k,) of curves (capacities, k) of losses from 0 to 1, where 1 is the loss of the mean.

    >>> explicitness_of_curves(np.array([[1.0, 0.5], [0.5, 0.5], [0.0, 0.5]]), np.arange(3.0))
    array([0., 1.])
    """
    return np.asarray(1 - 2 * area(losses, capacities) / (capacities[-1] - capacities[0]))


def area(losses: Floats, capacities: Floats) -> Floats:
    """Area (k,) between the best loss so far and the best of all, straight between the capacities.

    >>> area(np.array([[1.0], [0.4], [0.6]]), np.array([0.0, 2.0, 3.0]))  # a triangle, 2 wide and 0.6 high
    array([0.6])
    """
    best = np.minimum.accumulate(losses, axis=0)
    above = best - best[-1]
    return np.asarray(np.diff(capacities) @ (above[1:] + above[:-1]) / 2)


def _standardised(codes: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Both by the mean and deviation of the first, without its dead codes."""
    alive = (codes != codes[0]).any(axis=0)
    fit, exponents = scaled(codes[:, alive], axis=0)
    centre, deviation = fit.mean(axis=0), fit.std(axis=0)
    with np.errstate(over="ignore"):
        held_out = (np.ldexp(others[:, alive], -exponents) - centre) / deviation
    return (fit - centre) / deviation, np.clip(held_out, -FARTHEST, FARTHEST)


def _features(codes: Floats, frequencies: Floats) -> Floats:
    """(n, 1 + d + 1024): 1, the codes, and cosine and sine of each frequency side by side."""
    angles = codes @ frequencies.T
    waves = np.stack([np.cos(angles), np.sin(angles)], axis=2).reshape(len(codes), -1)
    return np.hstack([np.ones((len(codes), 1)), codes, np.sqrt(2) * waves])


def _fit_probes(codes: Floats, targets: Floats, frequencies: Floats) -> Floats:
    """Weights (capacities, 1 + d + 1024, k) of the probes, 0 for the features that a probe does not have.

    A probe's features are the first of the next one's, and so is its Cholesky factor: one is enough.
    """
    from scipy.linalg import cholesky, solve_triangular

    first = 1 + codes.shape[1]
    columns = first + FEATURES[-1]
    squares, products = np.zeros((columns, columns)), np.zeros((columns, targets.shape[1]))
    for begin in range(0, len(codes), BLOCK):
        rows = _features(codes[begin : begin + BLOCK], frequencies)
        squares += rows.T @ rows
        products += rows.T @ targets[begin : begin + BLOCK]
    penalty = np.append(0.0, np.full(columns - 1, RIDGE))
    factor = cholesky(squares / len(codes) + np.diag(penalty), lower=True)
    halfway = solve_triangular(factor, products / len(codes), lower=True)
    weights = np.zeros((len(FEATURES), columns, targets.shape[1]))
    for probe, features in zip(weights, FEATURES, strict=True):
        last = first + features
        probe[:last] = solve_triangular(factor[:last, :last], halfway[:last], lower=True, trans="T")
    return weights


def _losses(codes: Floats, targets: Floats, frequencies: Floats, weights: Floats) -> Floats:
    """Squared error (capacities, k) of the probes, divided by that of always predicting 0; at most 1."""
    errors = np.zeros((len(weights), targets.shape[1]))
    for begin in range(0, len(codes), BLOCK):
        rows = _features(codes[begin : begin + BLOCK], frequencies)
        errors += ((rows @ weights - targets[begin : begin + BLOCK]) ** 2).sum(axis=1)
    of_mean = (targets**2).sum(axis=0)
    # Where the mean is always right there is nothing to learn, and no probe is better.
    losses = np.divide(errors, of_mean, out=np.ones_like(errors), where=of_mean > 0)
    return np.asarray(np.minimum(losses, 1.0))
