"""JEMMIG asks whether each factor is held by one code only, and that code holds nothing else.

Do and Tran, "Theory and Evaluation Metrics for Learning Disentangled Representations", ICLR 2020 [1].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unweave.metrics.checks import check_codes_factors
from unweave.metrics.information import (
    discretise,
    entropies,
    information_of_labels,
    joint_entropies,
    numbered,
)

ROUNDING = 1e-12


def jemmig(codes: ArrayLike, factors: ArrayLike, *, bins: int = 20) -> float:
    """Return the joint entropy minus the mutual information gap, normalised and subtracted from 1.

    JEMMIG_j = H(z_a, v_j) - I(z_a; v_j) + I(z_b; v_j), where a and b are the codes with the most and
    the second most information about factor j. The score is mean_j 1 - JEMMIG_j / (H(v_j) + log bins). From 0
    to 1, higher is better. For a single code I(z_b; v_j) = 0. Of codes with equal information, a is the one
    with the smallest joint entropy.

    Differs from [1]: plug-in information of binned codes, where [1] bins samples of q(z|x); and the
    normalised score is subtracted from 1 (as in Carbonneau et al., "Measuring Disentanglement: A Review
    of Metrics", 2022), so that higher is better.

    >>> factors = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> jemmig(factors, factors)
    1.0
    >>> round(jemmig([[a + 2 * b] for a, b in factors], factors, bins=4), 3)  # 1 - log 2 / log 8
    0.667
    """
    _, checked = check_codes_factors(codes, factors)
    bin_labels, values = discretise(codes, bins), numbered(checked)
    information = information_of_labels(bin_labels, values)
    ranked = np.sort(np.vstack([information, np.zeros(values.shape[1])]), axis=0)
    # Of codes with equal information, up to rounding, the one with the smallest joint entropy counts.
    best = information >= ranked[-1] - ROUNDING
    joint = np.where(best, joint_entropies(bin_labels, values), np.inf).min(axis=0)
    loss = joint - ranked[-1] + ranked[-2]
    return float(np.mean(1 - loss / (entropies(values) + np.log(bins))))
