"""Regression of circular factors: how well the angle of each can be predicted from all codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unweave.errors import UnweaveError
from unweave.metrics.kinds import FactorKind, factor_numbers
from unweave.metrics.mixed import complete_rows
from unweave.metrics.r2 import RegressionModel, predict_targets
from unweave.metrics.real_factors import Floats, split_real, standardised
from unweave.streams import Stream


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
    _check_periods(periods)
    data = split_real(*_targets(codes, factors, periods), None if test is None else _targets(*test, periods))
    train, held_out = standardised(data.codes, data.test_codes)
    centre = data.factors.mean(axis=0)
    stream = Stream.of(seed).child("downstream circular")
    predicted = predict_targets(train, data.factors - centre, held_out, model, stream) + centre
    errors = _of_factors((predicted - data.test_factors) ** 2)
    spread = _of_factors((data.test_factors - data.test_factors.mean(axis=0)) ** 2)
    scores = np.where(spread > 0, 1 - errors / np.where(spread > 0, spread, 1.0), 0.0)
    return DownstreamCircular(float(scores.mean()), scores)


def _targets(codes: ArrayLike, factors: ArrayLike, periods: Mapping[int, float]) -> tuple[ArrayLike, Floats]:
    """Codes, and cosine and sine of the circular factors, in the rows in which all of these are known."""
    numbers = np.asarray(factors, np.float64)
    if numbers.ndim != 2 or max(periods) >= numbers.shape[1]:
        raise UnweaveError(
            f"`factors` must have shape (n, k), with a column for each circular factor ({max(periods)} is "
            f"the largest); got {numbers.shape}."
        )
    known, angles = complete_rows(np.asarray(codes), numbers[:, list(periods)])
    return known, factor_numbers(angles, [FactorKind("circular", period) for period in periods.values()])


def _of_factors(squares: Floats) -> Floats:
    """The mean over rows of the sums of cosine and sine, (k,)."""
    return np.asarray(squares.mean(axis=0).reshape(-1, 2).sum(axis=1))


def _check_periods(periods: Mapping[int, float]) -> None:
    if not periods or not all(column >= 0 and period > 0 for column, period in periods.items()):
        raise UnweaveError(
            "`periods` must name one circular factor or more by its column, with its period, such as "
            f"{{2: 40}}; got {periods!r}."
        )
