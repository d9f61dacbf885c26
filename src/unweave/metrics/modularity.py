"""Modularity asks whether each code depends on one factor only.

Ridgeway and Mozer, "Learning Deep Disentangled Embeddings With the F-Statistic Loss", NeurIPS 2018 [1],
with the estimator of Locatello et al., ICML 2019 [2].
"""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from unweave.errors import UnweaveError
from unweave.metrics.checks import check_factors_of
from unweave.metrics.information import mutual_information


def modularity(
    codes: ArrayLike, factors: ArrayLike, *, bins: int = 20, dead: Literal["zero", "leave out"] = "zero"
) -> float:
    """Return the mean over codes of 1 - sum_{j != best} I_j^2 / (I_best^2 (k - 1)).

    I_j is the plug-in information between the binned code and factor j. From 0 to 1, higher is better.
    With one factor an informative code scores 1. A dead code, with no information at all, counts 0
    as in [2], or is left out on request; if all are dead the score is 0. A code of pure noise is not
    dead: the small accidents of counting score about 0.7.

    Differs from [2]: there rounding could give a dead code a tiny information, and then any score.

    >>> factors = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> modularity(factors, factors)
    1.0
    >>> codes = [[a, 7] for a, b in factors]
    >>> modularity(codes, factors), modularity(codes, factors, dead="leave out")
    (0.5, 1.0)
    """
    if dead not in ("zero", "leave out"):
        raise UnweaveError(f'dead must be "zero" or "leave out"; got {dead!r}.')
    checked = check_factors_of(codes, factors)
    information = mutual_information(codes, checked, bins)
    best = information.max(axis=1)
    alive = best > 0
    if not alive.any():
        return 0.0
    shares = (information[alive] / best[alive, None]) ** 2
    others = max(checked.shape[1] - 1, 1)
    scores = 1 - (shares.sum(axis=1) - 1) / others
    return float(scores.sum() / (len(best) if dead == "zero" else len(scores)))
