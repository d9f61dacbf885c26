"""MED: disentanglement as in DCI, with mutual information in place of the importances of a model.

Cao, Nai, Yang, Huang, Gao, "An Empirical Study on Disentanglement of Negative-free Contrastive Learning",
NeurIPS 2022 [1]. Nothing is fitted, so it also works for codes with hundreds of dimensions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.metrics.checks import check_factors_of
from unweave.metrics.information import mutual_information


def med(codes: ArrayLike, factors: ArrayLike, *, bins: int = 20, top: int | None = None) -> float:
    """Return the disentanglement of the matrix R_ij = I(z_i; v_j) / sum_i I(z_i; v_j).

    MED = sum_i w_i (1 - H_k(R_i / sum_j R_ij)), w_i = sum_j R_ij / sum R, H_k the entropy to base k. From
    0 to 1, higher is better; 0 if no code is informative. With one factor an informative code scores 1.
    With `top`, the score of the `top` most disentangled codes of each factor ("Top-k MED"), where a code
    belongs to the factor it has the largest R for.

    Estimator: plug-in information of binned codes, as in [1].

    >>> factors = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> med(factors, factors), med([[a + 2 * b] for a, b in factors], factors)
    (1.0, 0.0)
    """
    if top is not None and (isinstance(top, bool) or not isinstance(top, int | np.integer) or top < 1):
        raise UnweaveError(f"top must be a whole number >= 1, or None for all codes; got {top!r}.")
    checked = check_factors_of(codes, factors)
    information = mutual_information(codes, checked, bins)
    columns = information.sum(axis=0)
    importance = np.divide(information, columns, out=np.zeros_like(information), where=columns > 0)
    scores = _disentanglement(importance)
    if top is not None:
        chosen = _best_of_each_factor(importance, scores, int(top))
        importance, scores = importance[chosen], scores[chosen]
    weights = importance.sum(axis=1)
    return float(scores @ weights / weights.sum()) if weights.sum() > 0 else 0.0


def _disentanglement(importance: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 - entropy of each row to the base of the number of factors; 0 for a row of zeros."""
    rows, factors = importance.sum(axis=1, keepdims=True), importance.shape[1]
    share = np.divide(importance, rows, out=np.full_like(importance, 1 / factors), where=rows > 0)
    logs = np.log(share, out=np.zeros_like(share), where=share > 0)
    # The logarithm of a single factor is 0, and so is the entropy.
    return np.asarray(1 + (share * logs).sum(axis=1) / np.log(max(factors, 2)))


def _best_of_each_factor(importance: NDArray[np.float64], scores: NDArray[np.float64], top: int) -> list[int]:
    owner = importance.argmax(axis=1)
    order = np.argsort(-scores, kind="stable")
    return [int(i) for factor in range(importance.shape[1]) for i in order[owner[order] == factor][:top]]
