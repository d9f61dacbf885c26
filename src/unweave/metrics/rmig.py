"""RMIG: the robust mutual information gap, from binned densities of q(z|x).

Do and Tran, "Theory and Evaluation Metrics for Learning Disentangled Representations", ICLR 2020 [1], with
the settings of the authors' program [2].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.metrics.checks import check_bins, check_codes_factors
from unweave.metrics.information import entropies, numbered
from unweave.metrics.posterior_inputs import check_posteriors
from unweave.metrics.real_factors import Floats

# Rows whose densities are held at once.
ROWS_AT_ONCE = 1 << 14
# Least deviation of a posterior, and density below which it lies in the bin of its mean [2].
LEAST_DEVIATION, LEAST_DENSITY = 1e-8, 1e-5
LEAST_VARIANCE = 1e-8


def rmig(
    mean: ArrayLike,
    log_var: ArrayLike,
    factors: ArrayLike,
    *,
    bins: int = 100,
    limits: tuple[float, float] = (-4.0, 4.0),
) -> float:
    """Return the mutual information gap of Gaussian posteriors q(z|x) = N(mean, exp(log_var)) over bins.

    RMIG = mean_j (I(z_a; v_j) - I(z_b; v_j)) / H(v_j), where a and b are the codes with the most and the
    second most information about factor j. From 0 to 1, higher is better. For a single code I(z_b; v_j) = 0.

    Each code has `bins` bins of equal width between the limits. Q(bin | x) is the density of q(z|x) at the
    centre of the bin, normalised to sum 1; a posterior that is narrower than the bins lies in the bin of its
    mean, and one beyond the limits in the first or last bin. Q(bin, v_j) is the mean of Q(bin | x) over rows
    with value v_j times their share. All as in [2]; codes must be on the scale of the prior N(0, 1).

    Differs from [2]: sums in float64 without clipping probabilities at 1e-8.

    >>> factors = np.repeat(np.arange(4), 50)[:, None]
    >>> means = np.hstack([factors - 1.5, 0 * factors])
    >>> round(rmig(means, np.full((200, 2), -9.0), factors), 3)
    1.0
    """
    means, log_vars = check_posteriors(mean, log_var)
    _, checked = check_codes_factors(means, factors)
    low, high = limits
    if not (np.isfinite([low, high]).all() and low < high):
        raise UnweaveError(f"`limits` must be two numbers, the lower first; got {limits!r}.")
    edges = np.linspace(low, high, check_bins(bins) + 1)
    values = numbered(checked)
    information = np.zeros(
        (means.shape[1] + 1, values.shape[1])
    )  # the last row is the rival of a single code
    for i in range(means.shape[1]):
        joint = _joint(means[:, i], np.exp(log_vars[:, i] / 2), values, edges)
        information[i] = [_information(table) for table in joint]
    ranked = np.sort(information, axis=0)
    return float(np.mean((ranked[-1] - ranked[-2]) / entropies(values)))


def _joint(mean: Floats, deviation: Floats, values: NDArray[np.int64], edges: Floats) -> list[Floats]:
    """Q(v_j, bin) of one code for each factor j, (values of j, bins)."""
    tables = [np.zeros((int(column.max()) + 1, len(edges) - 1)) for column in values.T]
    for first in range(0, len(mean), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        shares = _bin_shares(mean[rows], deviation[rows], edges)
        for table, column in zip(tables, values[rows].T, strict=True):
            np.add.at(table, column, shares)
    return [table / len(mean) for table in tables]


def _bin_shares(mean: Floats, deviation: Floats, edges: Floats) -> Floats:
    """Q(bin | x), (n, bins)."""
    centres = (edges[1:] + edges[:-1]) / 2
    variance = np.maximum(deviation**2, LEAST_VARIANCE)
    with np.errstate(over="ignore"):
        exponents = -((centres - mean[:, None]) ** 2) / (2 * variance[:, None])
    densities = np.exp(exponents) / (np.maximum(deviation, LEAST_DEVIATION)[:, None] * np.sqrt(2 * np.pi))
    narrow = densities.max(axis=1) < LEAST_DENSITY
    shares = densities / np.where(narrow, 1.0, densities.sum(axis=1))[:, None]
    own = np.clip(np.searchsorted(edges, mean[narrow], side="right") - 1, 0, len(centres) - 1)
    shares[narrow] = np.arange(len(centres)) == own[:, None]
    return np.asarray(shares)


def _information(joint: Floats) -> float:
    rows, columns = np.nonzero(joint)
    seen = joint[rows, columns]
    # Logarithms one by one: the product of two tiny shares would be 0.
    ratios = np.log(seen) - np.log(joint.sum(axis=1)[rows]) - np.log(joint.sum(axis=0)[columns])
    return max(0.0, float(seen @ ratios))
