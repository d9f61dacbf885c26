"""Directions by known factors: a linear read-out of codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.directions.directions import Directions, Fitted, Floats, linear_directions
from unweave.errors import UnweaveError
from unweave.evaluation.inputs import check_order, read_factors
from unweave.metrics.checks import check_codes
from unweave.metrics.kinds import FactorKind, KindLike, columns_of, kinds_of, stated_kinds

STRENGTHS = 10.0 ** np.arange(-4, 5)  # of the ridge penalty, among which the best is chosen
REMARK = "The fit used the factors of these codes."
LEAST_ROWS = 3  # in which all factors are known


def linear(
    codes: ArrayLike,
    factors: Any,
    *,
    kinds: Mapping[str, KindLike] | None = None,
) -> Directions:
    """The directions from which factors (n, k) are predicted best, by ridge regression on codes (n, d).

    Each new code predicts one factor, as the difference from its mean. A categorical factor with more than
    two values has one code for each value, which predicts whether it holds; a circular one has two, its
    cosine and sine. `kinds` states kinds as for `unweave.evaluate`; columns of words are categorical. Rows
    with a missing factor (NaN) are left out.

    Codes are standardised, and the strength of the penalty is chosen for each factor by leaving one row out.
    `explained` is R2 of these predictions. `directions` are the shortest moves that change one new code and
    no other, where this is possible: the new codes of one categorical factor have a constant sum, so a move
    along one lowers the others. This read-out uses labels: measure it on rows that it was not fitted on.
    """
    check_order(codes, factors)
    table, (targets, names, factor_of) = check_codes(codes), _targets(factors, kinds)
    if len(table) != len(targets):
        raise UnweaveError(f"factors must have {len(table)} rows like codes; got {len(targets)}.")
    known = np.isfinite(targets).all(axis=1)
    if known.sum() < LEAST_ROWS:
        raise UnweaveError(
            f"a linear read-out needs {LEAST_ROWS} rows in which all factors are known; got {known.sum()}."
        )
    table, targets = table[known], targets[known]
    _check_varied(targets, names)
    mean, spread = table.mean(axis=0), table.std(axis=0)
    spread[spread == 0] = 1.0
    parts = [_ridge((table - mean) / spread, targets[:, factor_of == j]) for j in np.unique(factor_of)]
    errors = np.concatenate([errors for _, errors in parts])
    matrix = np.concatenate([weights for weights, _ in parts]) / spread
    if not matrix.any(axis=1).all():
        raise UnweaveError("codes must differ from each other; all rows are the same.")
    explained = np.maximum(1 - errors / targets.var(axis=0), 0.0)
    return linear_directions(matrix, mean, explained, Fitted("linear", len(table), remark=REMARK), names)


def _ridge(codes: Floats, targets: Floats) -> tuple[Floats, Floats]:
    """The weights (k, d) that predict the k columns of one factor, and the mean squared errors (k,).

    All columns have one penalty, so the weights of the values of a category add up to 0, as they should.
    """
    from sklearn.linear_model import RidgeCV  # type: ignore[import-untyped]

    model = RidgeCV(STRENGTHS, store_cv_results=True).fit(codes, targets)
    errors = model.cv_results_.reshape(*targets.shape, -1).mean(axis=0)
    return np.reshape(model.coef_, (targets.shape[1], -1)), errors[:, model.alpha_ == STRENGTHS][:, 0]


def _targets(
    factors: Any, kinds: Mapping[str, KindLike] | None
) -> tuple[Floats, tuple[str, ...], NDArray[np.int64]]:
    """Columns of numbers to predict, NaN where one is missing, their names, and the factor of each."""
    read = read_factors(factors)[0]
    values = read.array.astype(np.float64)
    names = read.names or tuple(f"v{j}" for j in range(values.shape[1]))
    words: dict[str, KindLike] = {
        name: "categorical" for name, word in zip(names, read.words, strict=True) if word
    }
    columns: dict[str, Floats] = {}
    factor_of: list[int] = []
    for j, (name, column, kind) in enumerate(
        zip(names, values.T, kinds_of(values, names, words | stated_kinds(kinds)), strict=True)
    ):
        columns |= dict(_columns(name, column, kind))
        factor_of += [j] * (len(columns) - len(factor_of))
    return np.stack(list(columns.values()), axis=1), tuple(columns), np.array(factor_of)


def _columns(name: str, column: Floats, kind: FactorKind) -> Iterable[tuple[str, Floats]]:
    levels = np.unique(column[np.isfinite(column)])
    if kind.name == "categorical" and len(levels) > 2:
        for level in levels:
            yield f"{name}={level:g}", np.where(np.isfinite(column), column == level, np.nan)
    elif kind.name == "circular":
        yield from zip((f"cos {name}", f"sin {name}"), columns_of(column, kind), strict=True)
    else:
        yield name, column


def _check_varied(targets: Floats, names: tuple[str, ...]) -> None:
    for name, column in zip(names, targets.T, strict=True):
        if (column == column[0]).all():
            raise UnweaveError(f'factor "{name}" has the same value in all rows. Leave it out.')
