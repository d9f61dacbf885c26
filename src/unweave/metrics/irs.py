"""The interventional robustness score: how far a code stays put while other factors change.

Suter, Miladinovic, Schölkopf, Bauer, "Robustly Disentangled Causal Mechanisms: Validating Deep
Representations for Interventional Robustness", ICML 2019 [1], as computed by disentanglement_lib [2].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.metrics.checks import check_codes_factors, in_own_precision, scaled
from unweave.metrics.information import discretise, numbered


def irs(codes: ArrayLike, factors: ArrayLike, *, bins: int | None = 20, diff_quantile: float = 0.99) -> float:
    """Return the interventional robustness of the codes, each taken with its best factor.

    For code i and factor j, D_ij is the mean over the values v of factor j of the `diff_quantile`
    quantile of |z_i - mean of z_i given v|, and M_i the largest |z_i - mean of z_i|.
    IRS = sum_i M_i max_j (1 - D_ij / M_i) / sum_i M_i. At most 1, higher is better; 0 if all codes are dead.

    As in [2], values of a factor are merged into 20 bins of equal width; bins=None keeps them apart.

    Means are taken in the precision of the codes, as in [2]: of a float32 code that is constant and not 0,
    rounding errors remain and enter the score, 2e-6 for a constant of 3.7. Give float64 codes to avoid it.

    >>> factors = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> irs(factors, factors), irs([[a + b] for a, b in factors], factors)
    (1.0, 0.5)
    """
    if not 0 <= diff_quantile <= 1:
        raise UnweaveError(f"diff_quantile must be between 0 and 1; got {diff_quantile!r}.")
    _, checked = check_codes_factors(codes, factors)
    values = numbered(checked) if bins is None else discretise(checked, bins)
    table = scaled(in_own_precision(codes))[0]
    if not np.ptp(table, axis=0).any():
        return 0.0
    # NumPy adds up contiguous numbers in pairs and others one by one: the order of [2] is kept here.
    centre = np.ascontiguousarray(table.T).mean(axis=1)
    farthest = np.abs(table - centre).max(axis=0).astype(np.float64)
    table, farthest = table[:, farthest > 0], farthest[farthest > 0]
    spread = np.stack([_spread(table, labels, diff_quantile) for labels in values.T], axis=1)
    best = farthest - spread.min(axis=1)  # M_i max_j (1 - D_ij / M_i)
    return float(best.sum() / farthest.sum())


def _spread(table: NDArray[Any], labels: NDArray[np.int64], quantile: float) -> NDArray[np.float64]:
    """Mean over the values of a factor of the quantile of the distance to the group's mean, (d,)."""
    order = np.argsort(labels, kind="stable")
    groups = np.split(table[order], np.flatnonzero(np.diff(labels[order])) + 1)
    # NumPy interpolates float32 numbers in float32 or float64, depending on its version; [2] did in float64.
    distances = (np.abs(group - group.mean(axis=0)).astype(np.float64) for group in groups)
    quantiles = [np.quantile(distance, quantile, axis=0) for distance in distances]
    return np.asarray(np.mean(quantiles, axis=0, dtype=np.float64))
