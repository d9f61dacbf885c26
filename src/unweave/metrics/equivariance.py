"""Equivariance: how well one linear map predicts the codes after a shift of a factor from those before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unweave.metrics.orbits import Circular, Orbits, numbers_of_values, orbits_of, periods_of
from unweave.metrics.real_factors import Floats
from unweave.metrics.representation import Representation, check_count, check_representation
from unweave.streams import Stream

# Orbits of each factor, one half to fit maps to and one to test them on.
ORBITS = 200
# Relative to the largest, a smaller singular value of the codes is rounding.
ROUNDING = 1e-9
# Relative to the variance of the codes, a smaller change of all codes is rounding.
SMALL = 1e-12


class ShiftFit(NamedTuple):
    """R^2 of the codes after one shift on held-out orbits, by four predictions of them.

    1 is perfect, and the mean code scores 0. `chance` is a linear map that was fitted to codes in random
    order. `gain` is the share of the error of the better of two guesses, the code itself and the mean code,
    that the linear map removes. `spread` is the sum of squares of the codes after the shift, around their
    mean, which R^2 is relative to; numbers are 0 where it is 0.
    """

    shift: int
    linear: float
    rotation: float
    identity: float
    chance: float
    gain: float
    spread: float


class Equivariance(NamedTuple):
    """The gain of linear maps, that of rotations, and the gain of linear maps for each factor."""

    score: float
    rotation: float
    details: dict[str, float]


def equivariance(
    representation: Representation,
    circular: Circular,
    *,
    categorical: Sequence[int] = (),  # noqa: ARG001 - metrics of orbits have the same arguments
    factor_names: Sequence[str] | None = None,
    orbits: int = ORBITS,
    seed: int | Stream = 0,
) -> Equivariance:
    """Return how much of the change of codes under shifts of circular factors a linear map explains.

    z is the code of an image, z' that of the image with a circular factor shifted by s steps. One map
    z' = A z + b is fitted for each factor and each s, whatever the other factors are and from whatever value
    the shift starts. On orbits that were held out,

        gain = 1 - sum_s E_s(A z + b) / sum_s min(E_s(z), E_s(mean z')),   E_s(p) = sum |z' - p|^2

    The score is the mean over circular factors. 1: linear maps predict all changes. 0: they are no better
    than the better of two guesses, the code before the shift and the mean code. `rotation` is the gain of the
    best maps with an orthogonal A. From 0 to 1, higher is better; a gain below 0 counts as 0. Codes that
    ignore a factor have no gain for it.

    `circular` lists numbers of factors, or has their periods, as for `d_lsbd`. `orbits` orbits of each factor
    are drawn, and one half is held out. Of known rows, all complete orbits are used. Without another factor
    there is only one orbit, and nothing is held out. `categorical` is accepted and ignored.

    >>> def circle(factors, stream):
    ...     angle = 2 * np.pi * factors[:, 0] / 12
    ...     return np.stack([np.cos(angle), np.sin(angle), factors[:, 1]], axis=1)
    >>> round(equivariance(Representation(circle, sizes=(12, 6)), circular=[0]).score, 6)
    1.0
    """
    periods = periods_of(circular, numbers_of_values(representation))
    check_representation(representation)
    check_count("orbits", orbits, 2)
    stream, details, rotations = Stream.of(seed).child("equivariance"), {}, []
    for column, period in periods.items():
        own = stream.child("factor", column)
        bases = own.child("bases").integers(orbits, representation.sizes)
        drawn = orbits_of(representation, column, period, bases, own.child("codes"))
        fits = shift_fits(*drawn.split(own.child("halves")), True, own)
        details[column] = mean_gain([fit.linear for fit in fits], fits)
        rotations.append(mean_gain([fit.rotation for fit in fits], fits))
    names = factor_names or [f"v{j}" for j in range(len(representation.sizes))]
    return Equivariance(
        float(np.mean(list(details.values()))),
        float(np.mean(rotations)),
        {names[column]: value for column, value in details.items()},
    )


def mean_gain(explained: Sequence[float], fits: Sequence[ShiftFit]) -> float:
    """Return the gain over all shifts of maps with these R^2, at least 0; 0 if codes do not change."""
    baseline = sum(min(1 - fit.identity, 1.0) * fit.spread for fit in fits)
    error = sum((1 - value) * fit.spread for value, fit in zip(explained, fits, strict=True))
    least = SMALL * sum(fit.spread for fit in fits)
    return max(0.0, 1 - error / baseline) if baseline > least else 0.0


def shift_fits(fit: Orbits, test: Orbits, circular: bool, stream: Stream) -> list[ShiftFit]:
    """Return what linear maps predict for each shift of a factor, fitted on some orbits, tested on others.

    Values of a circular factor wrap around. For other factors, only values that stay in range are shifted.
    """
    size = fit.codes.shape[1]
    return [
        _shift_fit(shift, _pairs(fit.codes, shift, circular), _pairs(test.codes, shift, circular), stream)
        for shift in range(1, size)
    ]


def _pairs(codes: Floats, shift: int, circular: bool) -> tuple[Floats, Floats]:
    """Codes (pairs, d) before and after a shift."""
    width = codes.shape[2]
    if circular:
        return codes.reshape(-1, width), np.roll(codes, -shift, axis=1).reshape(-1, width)
    return codes[:, :-shift].reshape(-1, width), codes[:, shift:].reshape(-1, width)


def _shift_fit(
    shift: int, fit: tuple[Floats, Floats], test: tuple[Floats, Floats], stream: Stream
) -> ShiftFit:
    centres = fit[0].mean(axis=0), fit[1].mean(axis=0)
    before, after = fit[0] - centres[0], fit[1] - centres[1]
    shuffled = after[stream.child("chance", shift).permutations(1, len(after))[0]]
    start, target = test[0] - centres[0], test[1] - centres[1]
    errors = [
        float(((target - start @ matrix) ** 2).sum())
        for matrix in (_linear(before, after), _rotation(before, after), _linear(before, shuffled))
    ]
    unmoved = float(((test[1] - test[0]) ** 2).sum())
    spread = float(((test[1] - test[1].mean(axis=0)) ** 2).sum())
    least = 1e-24 * float((test[1] ** 2).sum())
    linear, rotation, identity, chance = (
        _explained(error, spread, least) for error in (*errors[:2], unmoved, errors[2])
    )
    gain = _explained(errors[0], min(unmoved, spread), least)
    return ShiftFit(shift, linear, rotation, identity, chance, gain, spread)


def _explained(error: float, total: float, least: float) -> float:
    """The share of a sum of squares that is explained; 0 where there is nothing but rounding to explain."""
    return 1 - error / total if total > least else 0.0


def _linear(before: Floats, after: Floats) -> Floats:
    return np.asarray(np.linalg.lstsq(before, after, rcond=ROUNDING)[0])


def _rotation(before: Floats, after: Floats) -> Floats:
    """The orthogonal matrix of least squares (Procrustes)."""
    left, _, right = np.linalg.svd(before.T @ after)
    return np.asarray(left @ right)
