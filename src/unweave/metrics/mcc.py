"""MCC: the mean correlation coefficient between factors and the codes matched to them.

The standard measure of identifiability: Hyvärinen and Morioka, "Unsupervised Feature Extraction by
Time-Contrastive Learning and Nonlinear ICA", NeurIPS 2016 [1]; Khemakhem et al., "Variational Autoencoders
and Nonlinear ICA", AISTATS 2020 [2]. The comparison after a linear map is the "weak MCC" of Khemakhem et al.,
"ICE-BeeM: Identifiable Conditional Energy-Based Deep Models", NeurIPS 2020 [3].
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError, did_you_mean
from unweave.metrics.checks import check_codes_factors
from unweave.metrics.real_factors import Floats, split_real, standardised

Correlation: TypeAlias = Literal["pearson", "spearman"]
Fit: TypeAlias = Literal["none", "linear", "affine"]


class MCC(NamedTuple):
    """The score, the absolute correlations it comes from, and the code matched to each factor."""

    score: float
    correlations: Floats  # (d, k); after a fit, (k, k): predicted factors against factors
    matches: NDArray[np.int64]  # (k,); -1 where there are fewer codes than factors


def mcc(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    correlation: Correlation = "pearson",
    fit: Fit = "none",
) -> MCC:
    """Return the mean absolute correlation between each factor and the code matched to it.

        MCC = 1/k max_p sum_j |corr(z_p(j), v_j)|

    p assigns a different code to each factor; the best assignment is found exactly (Hungarian algorithm).
    Factors may be any real numbers. From 0 to 1, higher is better. A factor without a code (d < k), a dead
    code and a constant factor have correlation 0.

    `correlation` is "pearson" or "spearman" (rank correlation: codes may be monotone functions of factors).

    With `fit`, factors are first predicted from all codes by least squares on the training data, with an
    intercept ("affine") or without ("linear"), and the predictions are compared with the factors on the test
    data. This is identifiability up to a linear map. Without `test`, the last third of the rows is held out.
    With fit="none" all rows are used and `test` is ignored.

    Differs from [3]: least squares in place of canonical correlation analysis; factors without a code count
    as 0 (there, as many codes as factors are required).

    >>> factors = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 4.0], [3.0, 2.0]])
    >>> round(mcc(factors[:, ::-1] * -3.0, factors).score, 3)  # permuted, mirrored and rescaled
    1.0
    """
    for name, value, known in (
        ("correlation", correlation, ("pearson", "spearman")),
        ("fit", fit, ("none", "linear", "affine")),
    ):
        if value not in known:
            raise UnweaveError(
                f"`{name}` must be one of {', '.join(known)}; got {value!r}. "
                f"{did_you_mean(str(value), known)}"
            )
    if fit == "none":
        compared, truth = check_codes_factors(codes, factors, discrete=False, varied=False)
    else:
        data = split_real(codes, factors, test)
        compared = _predicted(data.codes, data.factors, data.test_codes, intercept=fit == "affine")
        truth = data.test_factors
    return _matched(absolute_correlations(compared, truth, correlation))


def absolute_correlations(codes: Floats, factors: Floats, correlation: Correlation = "pearson") -> Floats:
    """Return |corr(z_i, v_j)|, (d, k); 0 for constant columns."""
    if correlation == "spearman":
        from scipy.stats import rankdata

        codes, factors = rankdata(codes, axis=0), rankdata(factors, axis=0)
    z, v = standardised(codes, codes)[0], standardised(factors, factors)[0]
    return np.minimum(np.abs(z.T @ v) / len(z), 1.0)


def best_matching(scores: Floats) -> NDArray[np.int64]:
    """Return the row matched to each column, (k,), so that the sum is largest; -1 where rows are lacking.

    >>> best_matching(np.array([[0.9, 0.8], [0.7, 0.1]])).tolist()
    [1, 0]
    """
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(scores, maximize=True)
    matches = np.full(scores.shape[1], -1, np.int64)
    matches[columns] = rows
    return matches


def _matched(correlations: Floats) -> MCC:
    matches = best_matching(correlations)
    matched = correlations[matches, np.arange(len(matches))] * (matches >= 0)
    return MCC(float(matched.mean()), correlations, matches)


def _predicted(codes: Floats, factors: Floats, test_codes: Floats, intercept: bool) -> Floats:
    """Factors of the test codes, predicted by least squares on the training data."""
    if intercept:
        train, test = standardised(codes, test_codes)
        targets = standardised(factors, factors)[0]
    else:
        scale = np.where((codes != 0).any(axis=0), np.abs(codes).max(axis=0), 1.0)
        train, test, targets = codes / scale, test_codes / scale, factors
    weights = np.linalg.lstsq(train, targets, rcond=None)[0]
    return np.asarray(test @ weights)
