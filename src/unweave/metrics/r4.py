"""R^4: whether each factor is an invertible function of one code, where the factor is active.

Ross, Doshi-Velez, "Benchmarks, Algorithms, and Metrics for Hierarchical Disentanglement", ICML 2021 [1].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unweave.metrics.estimators.boosting import fit_boosted_trees, sort_codes
from unweave.metrics.kinds import FactorKind
from unweave.metrics.mixed import known_rows, split_mixed
from unweave.metrics.real_factors import Floats, RealSplit, explained_variance, split_real, standardised
from unweave.metrics.representation import check_count

# The most values of whole numbers that are classes; more are numbers to regress [1].
MOST_CLASSES = 10
MOST_POINTS = 1_500


class R4(NamedTuple):
    """The mean over factors of the best code, and the correspondence of every code (d) and factor (k)."""

    score: float
    correspondence: Floats


def r4(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    rounds: int = 100,
) -> R4:
    """Return how well each factor and its best code predict each other, 0 to 1; higher is better.

        R4 = mean_i max_j sqrt(max(0, R^2(v_i -> z_j)) max(0, R^2(z_j -> v_i)))

    R^2(a -> b) is that of gradient boosted trees that predict b from a, on test data; the accuracy if b is a
    category or has at most 10 values, all whole numbers, codes included. The score is 1 if each factor is an
    invertible function of one code, however curved.

    In a hierarchy, a factor is active for some values of its parent only: the length of a tail, if there is
    one. Give such factors as NaN where they are not active, with `unweave.evaluate`. Each factor then counts
    on the rows in which it is active, as in R^4_c of [1] for codes without a hierarchy of their own.

    At most 1,500 training and 1,500 test points are used. Without `test`, the last third is held out.

    Differs from [1]: one split into training and test data (there, the mean of five); a constant code or
    factor has no correspondence (there, a constant is predicted perfectly, so a dead code is rewarded for the
    most frequent category).

    >>> factors = np.stack(np.meshgrid(np.arange(20), np.arange(20)), axis=-1).reshape(-1, 2)
    >>> codes = np.stack([np.exp(factors[:, 0] / 9), -(factors[:, 1] ** 3)], axis=1)
    >>> round(r4(codes, factors, test=(codes, factors)).score, 2)
    1.0
    """
    check_count("rounds", rounds)
    data = split_real(codes, factors, test)
    return _correspondences(data, [FactorKind("ordinal")] * data.factors.shape[1], rounds)


def r4_mixed(
    codes: ArrayLike,
    factors: Floats,
    *,
    kinds: Sequence[FactorKind],
    test: tuple[ArrayLike, Floats] | None = None,
    rounds: int = 100,
) -> R4:
    """Return `r4` of factors of any kind, each on the rows in which it is known."""
    return _correspondences(split_mixed(codes, factors, test), kinds, rounds)


def _correspondences(data: RealSplit, kinds: Sequence[FactorKind], rounds: int) -> R4:
    columns = []
    for j, kind in enumerate(kinds):
        known = RealSplit(*(array[:MOST_POINTS] for array in known_rows(data, j)))
        columns.append(_of_factor(known, kind, rounds))
    table = np.stack(columns, axis=1)
    return R4(float(table.max(axis=0).mean()), table)


def _of_factor(data: RealSplit, kind: FactorKind, rounds: int) -> Floats:
    """The correspondence of one factor with each code, (d,)."""
    factor, held_out = data.factors, data.test_factors
    if not len(held_out) or len(np.unique(factor)) < 2:
        return np.zeros(data.codes.shape[1])
    train, test = standardised(data.codes, data.test_codes)
    values = np.zeros(train.shape[1])
    for j in np.flatnonzero(train.any(axis=0)):  # a constant code is 0
        code, fresh = train[:, [j]], test[:, [j]]
        is_category = kind.name == "categorical" or _are_classes(factor)
        forth = _predictability(code, factor, fresh, held_out, is_category, rounds)
        back = _predictability(factor, code, held_out, fresh, _are_classes(data.codes[:, j]), rounds)
        values[j] = np.sqrt(max(0.0, forth) * max(0.0, back))
    return values


def _are_classes(values: Floats) -> bool:
    """Whether numbers count as classes: at most 10, all whole."""
    different = np.unique(values)
    return len(different) <= MOST_CLASSES and bool((different == np.round(different)).all())


def _predictability(
    inputs: Floats, targets: Floats, test_inputs: Floats, test_targets: Floats, category: bool, rounds: int
) -> float:
    """The accuracy or R^2 of boosted trees on test data; all arrays are (n, 1)."""
    if category:
        classes = np.unique(targets)
        labels = np.searchsorted(classes, targets[:, 0])
        trees = fit_boosted_trees(sort_codes(inputs), labels, rounds=rounds)
        return float((classes[trees.predict(test_inputs)] == test_targets[:, 0]).mean())
    from sklearn.ensemble import GradientBoostingRegressor  # type: ignore[import-untyped]

    model = GradientBoostingRegressor(n_estimators=rounds, random_state=0).fit(inputs, targets[:, 0])
    return float(explained_variance(test_targets, model.predict(test_inputs)[:, None])[0])
