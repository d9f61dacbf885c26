"""DCI and SAP of factors of different kinds: categories are classified, numbers and angles are regressed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.metrics.checks import check_codes
from unweave.metrics.dci import DCI, disentanglement
from unweave.metrics.estimators.boosting import fit_boosted_trees, sort_codes
from unweave.metrics.estimators.regression import RegressionFit, fit_lasso, fit_regression_trees
from unweave.metrics.kinds import FactorKind, columns_of, factor_labels
from unweave.metrics.mcc import absolute_correlations
from unweave.metrics.real_factors import Floats, RealSplit, standardised
from unweave.metrics.sap import SAP, sap_with_accuracies
from unweave.streams import Stream

LEAST_ROWS = 3


def dci_mixed(
    codes: ArrayLike,
    factors: Floats,
    *,
    kinds: Sequence[FactorKind],
    test: tuple[ArrayLike, Floats] | None = None,
    model: Literal["trees", "lasso"] = "trees",
    seed: int | Stream = 0,
) -> DCI:
    """Return DCI by boosted trees: classifiers of categories and levels, regressors of numbers and angles.

    With model="lasso" all factors are regressed by linear models with an L1 penalty.
    See `dci` for the formulas. Informativeness of a regressed factor is max(0, R^2). A circular factor is
    regressed as its cosine and sine, and has the mean of both importances and scores. Rows in which a factor
    is missing are left out of the models of that factor only. With whole numbers only, the result is that of
    `dci`.
    """
    data = split_mixed(codes, factors, test)
    stream = Stream.of(seed).child("dci").child
    fits = [
        _classify(known_rows(data, j), kind, stream("trees", j))
        if model == "trees" and not _is_real(kind)
        else _regress(known_rows(data, j), kind, model, stream("trees", j))
        for j, kind in enumerate(kinds)
    ]
    importance = np.stack([fit.importance for fit in fits], axis=1)
    return DCI(
        disentanglement(importance),
        disentanglement(importance.T),
        float(np.mean([fit.train for fit in fits])),
        float(np.mean([fit.test for fit in fits])),
        importance,
    )


def sap_mixed(
    codes: ArrayLike,
    factors: Floats,
    *,
    kinds: Sequence[FactorKind],
    test: tuple[ArrayLike, Floats] | None = None,
) -> SAP:
    """Return SAP: accuracies for categories and levels, squared correlations for numbers and angles.

    See `sap` for both. Squared correlations are those of the training data; of a circular factor, the mean of
    those of its cosine and sine. Rows in which a factor is missing are left out for that factor only.
    """
    data = split_mixed(codes, factors, test)
    gaps, columns = [], []
    for j, kind in enumerate(kinds):
        part = known_rows(data, j)
        gap, scores = _squared_correlations(part, kind) if _is_real(kind) else _accuracies(part, kind)
        gaps.append(gap)
        columns.append(scores)
    return SAP(float(np.mean(gaps)), np.stack(columns, axis=1))


def complete_rows(codes: NDArray[np.generic], factors: Floats) -> tuple[NDArray[np.generic], Floats]:
    """Return the rows in which no factor is missing."""
    known = np.flatnonzero(np.isfinite(factors).all(axis=1))
    if len(known) < LEAST_ROWS:
        raise UnweaveError(
            f"All factors are known in {len(known)} of {len(factors)} rows; {LEAST_ROWS} are needed. "
            "Leave out the factor with the most missing values."
        )
    return codes[known], factors[known]


def _is_real(kind: FactorKind) -> bool:
    return kind.name in ("continuous", "circular")


def split_mixed(codes: ArrayLike, factors: Floats, test: tuple[ArrayLike, Floats] | None) -> RealSplit:
    """Return checked codes and factors with NaN for missing values; without `test`, hold out a third."""
    table = check_codes(codes)
    if test is not None:
        return RealSplit(table, factors, check_codes(test[0], "test codes"), test[1])
    rest = len(table) - len(table) // 3
    return RealSplit(table[:rest], factors[:rest], table[rest:], factors[rest:])


def known_rows(data: RealSplit, factor: int) -> RealSplit:
    """Return the rows in which one factor is known, and that factor alone."""
    column, held_out = data.factors[:, factor], data.test_factors[:, factor]
    train, test = np.isfinite(column), np.isfinite(held_out)
    return RealSplit(
        data.codes[train], column[train][:, None], data.test_codes[test], held_out[test][:, None]
    )


def _regress(data: RealSplit, kind: FactorKind, model: str, stream: Stream) -> RegressionFit:
    fit = fit_regression_trees if model == "trees" else fit_lasso
    train, test = standardised(data.codes, data.test_codes)
    fits = [
        fit(train, target, test, truth, stream)
        for target, truth in zip(
            columns_of(data.factors[:, 0], kind), columns_of(data.test_factors[:, 0], kind), strict=True
        )
    ]
    importance, own, fresh = zip(*fits, strict=True)
    return RegressionFit(np.mean(importance, axis=0), float(np.mean(own)), float(np.mean(fresh)))


def _classify(data: RealSplit, kind: FactorKind, stream: Stream) -> RegressionFit:
    labels = factor_labels(data.factors, [kind])[:, 0]
    held_out = factor_labels(data.test_factors, [kind], data.factors)[:, 0]
    trees = fit_boosted_trees(sort_codes(data.codes), labels, seed=stream)
    fresh = (trees.predict(data.test_codes) == held_out).mean() if len(held_out) else 0.0
    return RegressionFit(trees.importances, float((trees.fitted == labels).mean()), float(fresh))


def _accuracies(data: RealSplit, kind: FactorKind) -> tuple[float, Floats]:
    labels = factor_labels(data.factors, [kind])
    held_out = factor_labels(data.test_factors, [kind], data.factors)
    found = sap_with_accuracies(data.codes, labels, test=(data.test_codes, held_out))
    return found.score, found.accuracy[:, 0]


def _squared_correlations(data: RealSplit, kind: FactorKind) -> tuple[float, Floats]:
    columns = np.stack(columns_of(data.factors[:, 0], kind), axis=1)
    scores = (absolute_correlations(data.codes, columns) ** 2).mean(axis=1)
    ranked = np.sort(np.append(scores, 0.0))
    return float(ranked[-1] - ranked[-2]), scores
