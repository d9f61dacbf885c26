"""DCIMIG asks whether each factor has a code of its own, that holds all of it.

Sepliarskaia, Kiseleva, de Rijke, "How to Not Measure Disentanglement", arXiv 1910.05587 [1], where it is
also called 3CharM.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unweave.metrics.checks import check_factors_of
from unweave.metrics.information import entropies, mutual_information, numbered


def dcimig(codes: ArrayLike, factors: ArrayLike, *, bins: int = 20) -> float:
    """Return the share of the factors' entropy that dedicated codes hold.

    Each code i belongs to the factor it is most informative about, with the gap G_i to its second factor. The
    score is sum_j max(G_i of the codes of factor j) / sum_j H(v_j); a factor without a code adds 0. From 0
    to 1, higher is better. A single factor has no rival.

    Estimator: plug-in information of binned codes, like `mig`.

    >>> factors = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> dcimig(factors, factors), dcimig([[a] for a, b in factors], factors)
    (1.0, 0.5)
    """
    checked = check_factors_of(codes, factors)
    information = mutual_information(codes, checked, bins)
    ranked = np.sort(np.hstack([information, np.zeros((len(information), 1))]), axis=1)
    gaps = np.zeros_like(information)
    gaps[np.arange(len(gaps)), information.argmax(axis=1)] = ranked[:, -1] - ranked[:, -2]
    return float(gaps.max(axis=0).sum() / entropies(numbered(checked)).sum())
