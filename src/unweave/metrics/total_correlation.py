"""How far the codes are from independence, seen without labels: three measures of the published study.

Locatello et al., "Challenging Common Assumptions in the Unsupervised Learning of Disentangled
Representations", ICML 2019 [1], fit a Gaussian to the codes; Watanabe, "Information Theoretical Analysis
of Multivariate Correlation", 1960, defines the total correlation.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.metrics.checks import check_codes, scaled
from unweave.metrics.information import discretise, information_of_labels

# Sums of squares below this may have lost digits.
LEAST_SAFE = 1e-200
# Rows that are centred at once: few enough to stay in the cache of a core.
BLOCK = 2048
# A standard deviation below this share of the mean may be rounding.
DOUBTFUL = 1e-6


def total_correlation(codes: ArrayLike, jitter: float = 1e-5) -> float:
    """Return the total correlation of a Gaussian fit to the codes, in nats.

    TC = (sum_i log S_ii - log det S) / 2 with S = covariance (n - 1) + jitter on the diagonal. From 0
    (uncorrelated) upwards; lower is more independent. Only the correlation is seen: two codes may depend
    on each other and score 0.

    The jitter makes S regular, so the result is always finite. With jitter=0 a dead code adds nothing,
    and copied or otherwise linearly dependent codes have a total correlation of infinity.

    Differs from [1]: there is no jitter in the published study: jitter=0 gives its numbers. The default
    lowers the score: by 3e-6 for two codes of variance 1 and correlation 0.5, and by more for codes of small
    variance or strong correlation. In [1] a dead code gave NaN.

    >>> total_correlation([[0, 0], [0, 1], [1, 0], [1, 1]])
    0.0
    >>> copied = [[0, 0], [1, 1], [2, 2]]
    >>> round(total_correlation(copied), 3), total_correlation(copied, jitter=0)
    (5.41, inf)
    """
    if not (isinstance(jitter, int | float | np.number) and 0 <= float(jitter) < math.inf):
        raise UnweaveError(f"jitter must be a number >= 0; got {jitter!r}. The usual one is 1e-5.")
    table = check_codes(codes, copy=False)
    products, exponents = _products(table, axis=0)
    sums = np.diag(products)
    alive = sums > 0
    if alive.sum() < 2:
        return 0.0
    products, sums, exponents = products[np.ix_(alive, alive)], sums[alive], exponents[alive]
    variance = sums / (len(table) - 1)
    with np.errstate(over="ignore"):  # next to tiny codes the jitter is infinite, and nothing is left of them
        damped = np.sqrt(variance / (variance + np.ldexp(float(jitter), -2 * exponents)))
    unit = damped / np.sqrt(sums)
    matrix = unit[:, None] * products * unit  # of correlations, damped by the jitter: no scale is left
    np.fill_diagonal(matrix, 1.0)
    eigenvalues = np.linalg.eigvalsh(matrix)
    least = len(matrix) * np.finfo(np.float64).eps * eigenvalues[-1]  # less is rounding
    if jitter == 0 and eigenvalues[0] < least:
        return math.inf
    return max(0.0, -0.5 * float(np.log(np.maximum(eigenvalues, least)).sum()))


def wasserstein_correlation(codes: ArrayLike, normalised: bool = False) -> float:
    """Return the squared 2-Wasserstein distance from a Gaussian fit to its independent version.

    W = 2 tr S - 2 tr (D^1/2 S D^1/2)^1/2, S the covariance (n - 1) and D its diagonal; divided by tr S if
    `normalised`. From 0 (uncorrelated) upwards, normalised below 2; lower is more independent. It depends
    on the scale of the codes; dead codes add nothing, and if all are dead it is 0.

    Differs from [1]: by eigenvalues of a symmetric matrix, where copied codes gave complex numbers.

    >>> wasserstein_correlation([[0, 0], [0, 1], [1, 0], [1, 1]])
    0.0
    >>> round(wasserstein_correlation([[0, 0], [1, 1], [2, 2]], normalised=True), 4)  # 2 - sqrt(2)
    0.5858
    """
    table = check_codes(codes, copy=False)
    products, exponents = _products(table, axis=None)
    covariance = products / (len(table) - 1)
    trace, exponent = float(np.trace(covariance)), int(exponents)
    if trace == 0:
        return 0.0
    root = np.sqrt(np.diag(covariance))
    eigenvalues = np.linalg.eigvalsh(root[:, None] * covariance * root)
    distance = max(0.0, 2 * trace - 2 * float(np.sqrt(np.maximum(eigenvalues, 0)).sum()))
    if normalised:
        return distance / trace
    try:
        return math.ldexp(distance, 2 * exponent)
    except OverflowError:
        raise UnweaveError(
            f"codes of up to 2^{exponent} are too large for a squared distance. "
            "Rescale them, or ask for normalised=True."
        ) from None


def mean_pairwise_information(codes: ArrayLike, *, bins: int = 20) -> float:
    """Return the mean plug-in information between two different binned codes, in nats.

    From 0 to log(bins); lower is more independent. One code alone has 0.

    >>> round(mean_pairwise_information([[0, 0, 0], [1, 1, 0]]), 4)  # log(2) for one pair of three
    0.231
    """
    labels = discretise(codes, bins)
    pairs = _off_diagonal(information_of_labels(labels, labels))
    return float(pairs.mean()) if pairs.size else 0.0


def _products(
    table: NDArray[np.float64], axis: Literal[0] | None
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return sums of products of centred codes, (d, d), and the exponents of the powers of two taken out.

    Powers are taken out, of each code or of the whole table, only if squares overflow or vanish. A dead code
    has exactly 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        products = _centred_products(table)
    small = np.diag(products) < LEAST_SAFE
    if not np.isfinite(products).all() or (table[:, small] != table[0, small]).any():
        table, exponents = scaled(table, axis=axis)
        return _centred_products(table), exponents
    return products, np.zeros(table.shape[1] if axis == 0 else (), np.int32)


def _centred_products(table: NDArray[np.float64]) -> NDArray[np.float64]:
    mean = np.full(len(table), 1 / len(table)) @ table
    products = np.zeros((table.shape[1], table.shape[1]))
    centred = np.empty((min(len(table), BLOCK), table.shape[1]))
    for first in range(0, len(table), BLOCK):
        block = table[first : first + BLOCK]
        part = np.subtract(block, mean, out=centred[: len(block)])
        products += part.T @ part
    # A spread that is small compared with the mean is rounding, or a dead code: take the mean out exactly.
    doubtful = np.diag(products) <= len(table) * (DOUBTFUL * mean) ** 2
    if doubtful.any():
        moved = table - np.where(doubtful, table[0], mean)
        moved[:, doubtful] -= moved[:, doubtful].mean(axis=0)
        products = moved.T @ moved
    return products


def _off_diagonal(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    return matrix[~np.eye(len(matrix), dtype=bool)]
