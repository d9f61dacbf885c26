"""MIG-sup: the mutual information gap of codes, each of which should be informative about one factor.

Li, Murkute, Gyawali, Wang, "Progressive Learning and Disentanglement of Hierarchical Representations",
ICLR 2020 [1].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.metrics.checks import check_codes_factors, scaled
from unweave.metrics.information import entropies, mutual_information, numbered


def mig_sup(codes: ArrayLike, factors: ArrayLike, *, bins: int = 20, active: float = 0.01) -> float:
    """Return the mean over active codes of the gap between their two best factors.

    MIG-sup = mean_i (U_ia - U_ib), U_ij = I(z_i; v_j) / H(v_j), where a and b are the factors about which
    code i has the most and the second most information. From 0 to 1, higher is better. As in the authors'
    program a code is active if its variance is above 0.01, so the score depends on the scale of the codes;
    active=0 takes all that vary. Without an active code the score is 0. For a single factor U_ib = 0.

    Differs from [1]: information of binned codes, like `mig`, instead of an integral over q(z|x).

    >>> factors = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> mig_sup(factors, factors), mig_sup([[a + 2 * b] for a, b in factors], factors)
    (1.0, 0.0)
    """
    if not active >= 0:
        raise UnweaveError(f"active must be a variance >= 0; got {active!r}.")
    table, checked = check_codes_factors(codes, factors)
    share = mutual_information(codes, checked, bins) / entropies(numbered(checked))
    share = share[_deviation(table) > np.sqrt(active)]
    if not len(share):
        return 0.0
    ranked = np.sort(np.hstack([share, np.zeros((len(share), 1))]), axis=1)
    return float(np.mean(ranked[:, -1] - ranked[:, -2]))


def _deviation(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviation of each code; infinite where it is too large to write down, 0 where it is dead."""
    digits, exponents = scaled(table, axis=0)
    deviation = np.where(np.ptp(digits, axis=0) > 0, digits.std(axis=0), 0.0)
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(deviation, exponents))
