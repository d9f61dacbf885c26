"""What an intervening metric asks: the codes of any factors it chooses.

BetaVAE, FactorVAE and their kind hold factors fixed and look at what the codes do. They need a function,
not a sample: `Representation`. For a deterministic encoder the codes of the whole grid are computed once
and looked up for ever (`Representation.from_table`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.streams import Stream

# (n, k) factors and a stream, from whose row i a stochastic encoder draws for row i -> (n, d) codes.
Encode: TypeAlias = Callable[[NDArray[np.int64], Stream], ArrayLike]

# Codes asked for in one call: large enough for any encoder, small enough for any memory.
ROWS_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class Representation:
    """Codes as a function of factors; `sizes` gives the number of values of each factor.

    >>> line = Representation(lambda factors, stream: factors * 0.5, sizes=(3, 4))
    >>> codes, factors = line.draw(5, Stream.of(0))
    >>> bool((codes == factors / 2).all())
    True
    """

    encode: Encode = field(repr=False)
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        given = tuple(self.sizes)
        if not given or any(not isinstance(size, int | np.integer) or size < 1 for size in given):
            raise UnweaveError(
                f"sizes must give the number of values, 1 or more, of each factor; got {given}. "
                "Pass for example sizes=(3, 6, 40, 32, 32)."
            )
        object.__setattr__(self, "sizes", tuple(int(size) for size in given))

    @classmethod
    def from_table(cls, codes: ArrayLike, sizes: Sequence[int]) -> Representation:
        """A representation that looks codes up: row i belongs to point i of the grid, last factor fastest."""
        table = np.asarray(codes)
        points = math.prod(sizes)
        if table.ndim != 2 or len(table) != points:
            raise UnweaveError(
                f"the table must be (n, d) with one row for each of the {points} combinations of factors "
                f"{tuple(sizes)}; got {table.shape}. Encode the whole grid, the last factor running fastest."
            )
        checked_codes(table, points)
        strides = np.array([math.prod(sizes[j + 1 :]) for j in range(len(sizes))], np.int64)

        def look_up(factors: NDArray[np.int64], stream: Stream) -> NDArray[Any]:  # noqa: ARG001
            found: NDArray[Any] = table[factors @ strides]
            return found

        return cls(look_up, tuple(sizes))

    def codes(self, factors: NDArray[np.int64], seed: int | Stream) -> NDArray[np.float64]:
        """(n, d) codes of (n, k) factors, checked."""
        return checked_codes(self.encode(factors, Stream.of(seed)), len(factors))

    def draw(self, n: int, seed: int | Stream) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Codes (n, d) and factors (n, k) of n points drawn uniformly, point i from row i of the stream."""
        stream = Stream.of(seed)
        factors = stream.child("factors").integers(n, self.sizes)
        return self.codes(factors, stream.child("codes")), factors


def checked_codes(codes: ArrayLike, n: int) -> NDArray[np.float64]:
    """Codes of n points as float64, or one sentence about what is wrong with them."""
    array = np.asarray(codes)
    if array.dtype.kind not in "biuf":
        raise UnweaveError(f"codes must be real numbers; encode gave {array.dtype}.")
    if array.ndim != 2 or len(array) != n or array.shape[1] == 0:
        raise UnweaveError(
            f"codes must be (n, d) with n = {n} rows, one for each row of factors; encode gave {array.shape}."
        )
    numbers = array.astype(np.float64)
    finite = np.isfinite(numbers)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise UnweaveError(
            f"codes must be finite; {int((~finite).sum())} of {finite.size} are NaN or infinite, the first "
            f"in row {row}, column {column}."
        )
    return numbers


def check_count(name: str, value: int, least: int = 1) -> None:
    """Refuse a number of draws that is no whole number or too small."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise UnweaveError(f"{name} must be a whole number, {least} or more; got {value!r}.")


def parts(points: int, batch: int) -> Iterator[tuple[int, int]]:
    """(first point, number of points) of parts whose codes, `batch` a point, are asked for in one call."""
    step = max(1, ROWS_AT_ONCE // batch)
    for first in range(0, points, step):
        yield first, min(step, points - first)
