"""Orbits: the codes of all values of one factor, with all other factors fixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.errors import UnweaveError
from unweave.metrics.checks import scaled
from unweave.metrics.real_factors import Floats
from unweave.metrics.representation import Representation, Rows
from unweave.streams import Stream


class Orbits(NamedTuple):
    """Factors (m, k), 0 in the column of the factor that runs, and codes (m, n, d) of its n values."""

    bases: NDArray[np.int64]
    codes: Floats

    def split(self, stream: Stream) -> tuple[Orbits, Orbits]:
        """Orbits of a random half of the bases, and those of the other half; of one base, the same twice."""
        first, numbers = numbered(self.bases)
        order = stream.permutations(1, len(first))[0]
        if len(order) < 2:
            return self, self
        chosen = np.isin(numbers, order[: len(order) // 2])
        return self.part(chosen), self.part(~chosen)

    def part(self, chosen: NDArray[np.bool_]) -> Orbits:
        """Some of the orbits."""
        return Orbits(self.bases[chosen], self.codes[chosen])


# Numbers of circular factors, or the number of values after which each of them starts again.
Circular: TypeAlias = Sequence[int] | Mapping[int, int]


def checked_columns(columns: Sequence[int], factors: int, name: str = "circular") -> tuple[int, ...]:
    """Return numbers of factors, or raise an error if they are anything else or there are none."""
    chosen = tuple(columns)
    whole = all(isinstance(j, int | np.integer) and 0 <= j < factors for j in chosen)
    if not chosen or not whole or len(set(chosen)) < len(chosen):
        raise UnweaveError(
            f"`{name}` must list different factors by their numbers, 0 to {factors - 1}; got {columns!r}."
        )
    return tuple(int(j) for j in chosen)


def periods_of(circular: Circular, sizes: Sequence[int]) -> dict[int, int]:
    """Return the period of each circular factor: as stated, or the number of its values."""
    columns = checked_columns(tuple(circular), len(sizes))
    stated = circular if isinstance(circular, Mapping) else {j: sizes[j] for j in columns}
    for j in columns:
        if not 1 <= stated[j] <= sizes[j]:
            raise UnweaveError(
                f"the period of factor {j} must be 1 to {sizes[j]}, its number of values; got {stated[j]}."
            )
    return {j: int(stated[j]) for j in columns}


def numbers_of_values(representation: Representation) -> tuple[int, ...]:
    """Return the number of values of each factor; of rows, also values that a single row has."""
    if representation.rows is None:
        return representation.sizes
    return tuple(int(most) + 1 for most in representation.rows.ranks.max(axis=0))


def numbered(table: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row of each different row of a table, and the number (m,) of each row among these.

    >>> [array.tolist() for array in numbered(np.array([[5], [3], [5]]))]
    [[1, 0], [1, 0, 1]]
    """
    if not table.shape[1]:
        return np.zeros(1, np.int64), np.zeros(len(table), np.int64)
    _, first, numbers = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return first, numbers.ravel()


def orbits_of(
    representation: Representation, column: int, size: int, bases: NDArray[np.int64], stream: Stream
) -> Orbits:
    """Return orbits of the first `size` values of a factor; of known rows, all orbits that are complete.

    Codes are divided by a power of two, the same for all of them, so that huge ones can be squared.
    """
    if representation.rows is not None:
        bases, codes = _complete_orbits(representation.rows, column, size)
    else:
        points = np.repeat(bases, size, axis=0)
        points[:, column] = np.tile(np.arange(size), len(bases))
        codes = representation.codes(points, stream).reshape(len(bases), size, -1)
    bases = bases.copy()
    bases[:, column] = 0
    return Orbits(bases, scaled(codes)[0])


def _complete_orbits(rows: Rows, column: int, size: int) -> tuple[NDArray[np.int64], Floats]:
    """Bases and codes of the orbits of which all values are known; rows of equal factors are averaged."""
    points, place, counts = np.unique(rows.ranks, axis=0, return_inverse=True, return_counts=True)
    codes = np.zeros((len(points), rows.codes.shape[1]))
    # Divided before they are added, so that the sum of huge codes does not overflow.
    np.add.at(codes, place.ravel(), rows.codes / counts[place.ravel()][:, None])
    known = points[:, column] < size
    points, codes = points[known], codes[known]
    others = points.copy()
    others[:, column] = 0
    first, orbit = numbered(others)
    complete = np.flatnonzero(np.bincount(orbit) == size)
    if not len(complete):
        raise UnweaveError(
            f"no orbit of factor {column} is complete: some rows must have all its {size} values while all "
            "other factors stay the same. Give the codes of such rows, or an encoder and its data set."
        )
    order = np.lexsort((points[:, column], orbit))
    chosen = order[np.isin(orbit[order], complete)]
    return others[first[complete]], codes[chosen].reshape(len(complete), size, -1)
