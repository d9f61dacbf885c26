"""Regression of circular factors: how well the angle of each can be predicted from all codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unweave.errors import UnweaveError
from unweave.metrics.checks import FactorError, as_array, check_codes
from unweave.metrics.kinds import FactorKind, factor_numbers
from unweave.metrics.mixed import complete_rows
from unweave.metrics.r2 import RegressionModel, check_model, predict_targets
from unweave.metrics.real_factors import Floats, RealSplit, split_real, standardised
from unweave.streams import Stream

# Squared cosines and sines of one angle, whole turns apart, may differ by less than this.
ROUNDING = 1e-24


class DownstreamCircular(NamedTuple):
    """The mean over circular factors, and R^2 of each of them."""

    score: float
    factors: Floats  # (k,)


def downstream_circular(
    codes: ArrayLike,
    factors: ArrayLike,
    periods: Mapping[int, float],
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    model: RegressionModel = "kernel",
    seed: int | Stream = 0,
) -> DownstreamCircular:
    """Return R^2 of the cosine and the sine of circular factors, predicted from all codes; at most 1.

    `periods` has the period of each circular factor by its column; other factors are not used. For a factor
    y of period p the targets are t = (cos 2 pi y / p, sin 2 pi y / p), and

        R^2 = 1 - mean |t - prediction|^2 / mean |t - mean t|^2

    on test data. 0 is the prediction of the mean. A number in place of the angle would punish predictions at
    the seam, where the largest value is next to 0. The regression `model` is one of `r2`.

    Without `test`, the last third of the rows is held out.

    >>> angle = Stream.of(0).uniform(300, 1)[:, 0]
    >>> circle = np.stack([np.cos(2 * np.pi * angle), np.sin(2 * np.pi * angle)], axis=1)
    >>> jump = downstream_circular(angle[:, None], angle[:, None], {0: 1.0}, model="linear").score
    >>> round(downstream_circular(circle, angle[:, None], {0: 1.0}, model="linear").score, 3), jump < 0.4
    (1.0, True)
    """
    check_model(model)
    _check_periods(periods)
    data = _split(codes, factors, periods, test)
    kinds = [FactorKind("circular", float(period)) for period in periods.values()]
    targets, truth = factor_numbers(data.factors, kinds), factor_numbers(data.test_factors, kinds)
    train, held_out = standardised(data.codes, data.test_codes)
    centre = targets.mean(axis=0)
    stream = Stream.of(seed).child("downstream circular")
    predicted = predict_targets(train, targets - centre, held_out, model, stream) + centre
    errors = _of_factors((predicted - truth) ** 2)
    spread = _of_factors((truth - truth.mean(axis=0)) ** 2)
    varies = spread > ROUNDING
    scores = np.where(varies, 1 - errors / np.where(varies, spread, 1.0), 0.0)
    return DownstreamCircular(float(scores.mean()), scores)


def _split(
    codes: ArrayLike,
    factors: ArrayLike,
    periods: Mapping[int, float],
    test: tuple[ArrayLike, ArrayLike] | None,
) -> RealSplit:
    """Checked codes and circular factors to fit on and to test on, in the rows in which these are known."""
    if test is not None and (not isinstance(test, tuple | list) or len(test) != 2):
        raise UnweaveError(f"`test` must be a pair (codes, factors); got {type(test).__name__}.")
    held_out = None if test is None else _known(*test, periods)
    try:
        return split_real(*_known(codes, factors, periods), held_out)
    except FactorError as error:  # its column is that among the circular factors
        raise FactorError(error.text, list(periods)[error.column]) from None


def _known(codes: ArrayLike, factors: ArrayLike, periods: Mapping[int, float]) -> tuple[ArrayLike, Floats]:
    """Codes and circular factors in the rows in which all of these are known."""
    table, numbers = check_codes(codes), as_array(factors)
    if numbers.dtype.kind not in "biuf" or numbers.ndim != 2 or max(periods) >= numbers.shape[1]:
        raise UnweaveError(
            f"`factors` must be real numbers (n, k), with a column for each circular factor ({max(periods)} "
            f"is the largest); got an array of type {numbers.dtype} and shape {numbers.shape}."
        )
    if len(table) != len(numbers):
        raise UnweaveError(
            f"codes must be (n, d) with n = {len(numbers)} rows like factors; got {table.shape}. Give both "
            "for the same points."
        )
    angles = numbers[:, list(periods)].astype(np.float64)
    return complete_rows(table, angles) if np.isnan(angles).any() else (table, angles)


def _of_factors(squares: Floats) -> Floats:
    """The mean over rows of the sums of cosine and sine, (k,)."""
    return np.asarray(squares.mean(axis=0).reshape(-1, 2).sum(axis=1))


def _check_periods(periods: Mapping[int, float]) -> None:
    pairs = periods.items() if isinstance(periods, Mapping) else []
    if not pairs or not all(_is_column(column) and _is_period(period) for column, period in pairs):
        raise UnweaveError(
            "`periods` must name one circular factor or more by its column, with its period, such as "
            f"{{2: 40}}; got {periods!r}."
        )


def _is_column(column: object) -> bool:
    return isinstance(column, int | np.integer) and not isinstance(column, bool) and int(column) >= 0


def _is_period(period: object) -> bool:
    if isinstance(period, bool) or not isinstance(period, int | float | np.integer | np.floating):
        return False
    return 0 < float(period) < np.inf
