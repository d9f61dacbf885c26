"""D_LSBD: whether circular factors act on codes as rotations of planes.

Tonnaer, Perez Rey, Menkovski, Holenderski, Portegies, "Quantifying and Learning Linear Symmetry-Based
Disentanglement", ICML 2022 [1].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unweave.metrics.orbits import (
    Circular,
    Orbits,
    checked_columns,
    numbered,
    numbers_of_values,
    orbits_of,
    periods_of,
)
from unweave.metrics.real_factors import Floats
from unweave.metrics.representation import Representation, check_count, check_representation
from unweave.streams import Stream

# Orbits of each factor; with several circular factors, this many of them share their other factors.
ORBITS, SHARING = 200, 8
FREQUENCIES = 10
# A principal component with a smaller deviation, relative to the first or to the codes, is rounding.
ROUNDING, PRECISION = 1e-9, 1e-12


class DLSBD(NamedTuple):
    """The mean over circular factors, the same with shared planes and for shuffled orbits; each factor.

    `frequencies` (circular factors, groups) has the turns that a code makes while the factor runs once
    through all its values, for each combination of the categorical factors in sorted order.
    """

    score: float
    shared: float
    chance: float
    details: dict[str, float]
    frequencies: NDArray[np.int64]


def d_lsbd(
    representation: Representation,
    circular: Circular,
    *,
    categorical: Sequence[int] = (),
    factor_names: Sequence[str] | None = None,
    orbits: int = ORBITS,
    frequencies: int = FREQUENCIES,
    seed: int | Stream = 0,
) -> DLSBD:
    """Return the distance of codes from a linear action of circular factors, 0 to 1; lower is better.

    An orbit is the codes z_0, ..., z_{n-1} of all n values of a circular factor, with the other factors
    fixed. Each orbit is centred. For each object (one combination of all factors that are not circular), the
    codes of its orbits are projected on their first two principal components, scaled to variance 1/2 each:
    p_j in the plane, as a complex number. If the factor acts as a rotation, p_j exp(-i w 2 pi j / n) is the
    same for all j, for some whole number w. With the mean over orbits and values,

        D = mean |p_j exp(-i w 2 pi j / n) - mean|^2 = 1 - |mean p_j exp(-i w 2 pi j / n)|^2

    averaged over objects, for the frequency w from 1 to `frequencies` with the least average. The score is
    the mean over circular factors; `details` has each of them. `shared` is the same with one plane for all
    objects of the same categorical factors, which is stricter: the factor must act on all of them alike. The
    `chance` is the score of the same codes if the points of each orbit are in random order.

    `circular` and `categorical` are numbers of factors. If a circular factor starts again before its last
    value, state its period: circular={2: 39}. The frequency is chosen for each combination of the
    `categorical` factors, because the symmetry of an object can depend on its shape: the codes of a square
    repeat after a quarter turn, so w = 4. `orbits` orbits of each factor are drawn. With several circular
    factors, up to 8 of them belong to one object, at evenly spread angles of the other circular factors. Of
    known rows, all complete orbits are used.

    Differs from [1]: the direction of the rotation is free for each object, because principal components have
    no orientation; each combination of categorical factors has its own frequency (there, all objects have the
    same one); frequencies above half the number of values are left out, because they look the same as lower
    ones; variances are divided by the number of points N, not N - 1, so their value is (N - 1) / N of this
    one; a component without variance counts as 0; distances of several circular factors are averaged
    (there, they are added up); `shared` and `chance` are ours.

    >>> def circle(factors, stream):
    ...     angle = 2 * np.pi * factors[:, 0] / 12
    ...     return np.stack([np.cos(angle), np.sin(angle), factors[:, 1]], axis=1)
    >>> result = d_lsbd(Representation(circle, sizes=(12, 3)), circular=[0])
    >>> round(result.score, 6), result.frequencies.tolist()
    (0.0, [[1]])
    """
    k = len(representation.sizes)
    periods = periods_of(circular, numbers_of_values(representation))
    stated = checked_columns(categorical, k, "categorical") if len(categorical) else ()
    check_representation(representation)
    check_count("orbits", orbits)
    check_count("frequencies", frequencies)
    objects = [j for j in range(k) if j not in periods]
    groups = [j for j in stated if j in objects]
    stream = Stream.of(seed).child("d_lsbd")
    rows, turns = [], []
    for column, period in periods.items():
        own = stream.child("factor", column)
        others = [(j, own_period) for j, own_period in periods.items() if j != column]
        bases = _bases(representation.sizes, objects, others, orbits, own)
        drawn = orbits_of(representation, column, period, bases, own.child("codes"))
        value, found = _distance(drawn, objects, groups, frequencies)
        shared, _ = _distance(drawn, groups, groups, frequencies)
        chance, _ = _distance(_shuffled(drawn, own.child("chance")), objects, groups, frequencies)
        rows.append((value, shared, chance))
        turns.append(found)
    names = factor_names or [f"v{j}" for j in range(k)]
    details = {names[column]: value for column, (value, _, _) in zip(periods, rows, strict=True)}
    score, shared, chance = (float(mean) for mean in np.mean(rows, axis=0))
    return DLSBD(score, shared, chance, details, np.array(turns))


def _bases(
    sizes: Sequence[int],
    objects: Sequence[int],
    others: Sequence[tuple[int, int]],
    orbits: int,
    stream: Stream,
) -> NDArray[np.int64]:
    """Random factors (orbits, k); if there are other circular factors, a block of 8 orbits shares an object.

    `others` are their columns and periods. In a block the angles of the first two are at equal distances: one
    step of the first is 3 or 5 of the second, so that their sum and difference go round, too. With random
    angles, |mean|^2 of codes that depend on them would be 1/8 too large.
    """
    drawn = stream.child("bases").integers(orbits, sizes)
    if others:
        block, place = np.divmod(np.arange(orbits), SHARING)
        start = drawn[block * SHARING]
        drawn[:, objects] = start[:, objects]
        for (column, period), steps in zip(others, (place, place * (3 + 2 * (block % 2))), strict=False):
            drawn[:, column] = (start[:, column] + steps % SHARING * period // SHARING) % period
    return drawn


def _shuffled(orbits: Orbits, stream: Stream) -> Orbits:
    """The points of each orbit in random order, the same for an orbit that was drawn more than once."""
    first, numbers = numbered(orbits.bases)
    order = stream.permutations(*orbits.codes.shape[:2])[first[numbers]]
    return orbits._replace(codes=np.take_along_axis(orbits.codes, order[:, :, None], axis=1))


def _distance(
    orbits: Orbits, objects: Sequence[int], groups: Sequence[int], frequencies: int
) -> tuple[float, NDArray[np.int64]]:
    """The distance of one factor, and the frequency (groups,) for each value of the categorical factors."""
    first, numbers = numbered(orbits.bases[:, objects])
    shares = np.stack([_shares(orbits.codes[numbers == j], frequencies) for j in range(len(first))])
    kinds, kind = numbered(orbits.bases[first][:, groups])
    means = np.stack([shares[kind == j].mean(axis=0) for j in range(len(kinds))])
    best = means.argmax(axis=1)
    share = shares[np.arange(len(shares)), best[kind]].mean()
    return float(np.clip(1 - share, 0.0, 1.0)), best + 1


def _shares(codes: Floats, frequencies: int) -> Floats:
    """The share of the variance of orbits (r, n, d) of one object that turns with each frequency."""
    size = codes.shape[1]
    centred = (codes - codes.mean(axis=1, keepdims=True)).reshape(-1, codes.shape[2])
    axes, spread, _ = np.linalg.svd(centred, full_matrices=False)
    least = max(ROUNDING * spread[0], PRECISION * np.linalg.norm(codes))
    alive = spread > least
    plane = (axes * alive)[:, :2] * np.sqrt(len(centred) / 2)
    points = plane @ np.array([1, 1j])[: plane.shape[1]]
    highest = max(1, min(frequencies, size // 2))
    angles = np.tile(2 * np.pi * np.arange(size) / size, len(codes))
    turned = np.exp(-1j * np.outer(np.arange(1, highest + 1), angles))
    both = np.abs(turned @ points), np.abs(turned.conj() @ points)
    return np.asarray((np.maximum(*both) / len(points)) ** 2)
