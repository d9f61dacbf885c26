"""What an intervening metric asks: the codes of any factors it chooses.

BetaVAE, FactorVAE and their kind hold factors fixed and look at what the codes do. They need a function,
not a sample: `Representation`. For a deterministic encoder the codes of the whole grid are computed once
and looked up for ever (`Representation.from_table`). Where only some points are known, matching ones stand
in for those that a metric would ask for (`Representation.from_rows`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.metrics.checks import FactorError, as_array, check_codes_factors
from unweave.streams import Stream

# (n, k) factors and a stream, from whose row i a stochastic encoder draws for row i -> (n, d) codes.
Encode: TypeAlias = Callable[[NDArray[np.int64], Stream], ArrayLike]

# Codes asked for in one call: large enough for any encoder, small enough for any memory.
ROWS_AT_ONCE = 1 << 18
# Numbers asked for in one call, where it is known how many there are in a row.
NUMBERS_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Rows:
    """Points whose codes are known, and for each factor the rows in the order of its values."""

    codes: NDArray[np.float64]  # (n, d)
    factors: NDArray[np.int64]  # (n, k), numbered 0, 1, 2, ...: first those that several rows share
    ranks: NDArray[np.int64]  # (n, k), numbered in the order of their values
    order: NDArray[np.int64]  # (k, n)
    start: NDArray[np.int64]  # (k, values + 1): where the rows of a value begin in the order

    @classmethod
    def of(cls, codes: NDArray[np.float64], whole: NDArray[np.int64]) -> Rows:
        """Number the values of factors and sort the rows, once for all draws."""
        numbers = [_numbers(column) for column in whole.T]
        factors, ranks = (np.stack(columns, axis=1) for columns in zip(*numbers, strict=True))
        values = np.arange(int(factors.max()) + 2)
        order = np.argsort(factors, axis=0, kind="stable").T
        start = np.stack([np.searchsorted(np.sort(column), values) for column in factors.T])
        for j, column in enumerate(factors.T):
            counts = np.diff(start[j])
            if 2 * (counts[column] > 1).sum() < len(column):
                raise FactorError(
                    "to hold {factor} fixed, at least half of the rows must share its value with another "
                    f"row; {int((counts[column] > 1).sum())} of {len(column)} do. Give more rows, or bin it.",
                    j,
                )
        return cls(codes, factors, ranks, order, start)

    def draw(self, values: NDArray[np.int64], held: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
        """Codes of random rows, row i with value values[i] of factor held[i]."""
        first, last = self.start[held, values], self.start[held, values + 1]
        share = stream.child("rows").uniform(len(values), 1)[:, 0]
        return self.codes[self.order[held, first + (share * (last - first)).astype(np.int64)]]

    def draw_pairs(
        self, values: NDArray[np.int64], held: NDArray[np.int64], stream: Stream
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Codes of random pairs of two different rows, pair i with value values[i] of factor held[i]."""
        first, last = self.start[held, values], self.start[held, values + 1]
        share = stream.child("pairs").uniform(len(values), 2)
        one = (share[:, 0] * (last - first)).astype(np.int64)
        other = (share[:, 1] * (last - first - 1)).astype(np.int64)
        other += other >= one
        return self.codes[self.order[held, first + one]], self.codes[self.order[held, first + other]]


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
    rows: Rows | None = field(default=None, repr=False)
    width: int | None = field(default=None, repr=False)  # the number of codes, where it is known
    # How many rows, the first ones, are to be fitted to; None: a random half.
    fit_rows: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        given = tuple(self.sizes)
        if not given or any(not isinstance(size, int | np.integer) or size < 1 for size in given):
            raise UnweaveError(
                f"sizes must give the number of values, 1 or more, of each factor; got {given}. "
                "Pass for example sizes=(3, 6, 40, 32, 32)."
            )
        object.__setattr__(self, "sizes", tuple(int(size) for size in given))

    def require_grid(self, subject: str) -> None:
        """Refuse a representation of some rows only; `subject` begins the sentence, with its verb."""
        if self.rows is not None:
            raise UnweaveError(
                f"{subject} a representation of all combinations of factors; got some rows only. "
                "Pass an encoder and its data set, or codes of the whole grid."
            )

    @classmethod
    def from_table(cls, codes: ArrayLike, sizes: Sequence[int]) -> Representation:
        """A representation that looks codes up: row i belongs to point i of the grid, last factor fastest."""
        table = as_array(codes)
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

        return cls(look_up, tuple(sizes), width=table.shape[1])

    @classmethod
    def from_rows(cls, codes: ArrayLike, factors: ArrayLike, fit_rows: int | None = None) -> Representation:
        """A representation of which only some points are known: row i of codes has row i of factors.

        Where a metric holds one factor and lets the others vary, it gets codes of rows with that value.
        Each factor's values are numbered in their order: first those that several rows share, which are all
        that `sizes` counts, since a value of one row cannot be held fixed. `separated` fits to the first
        `fit_rows` rows and tests on the others; without it, it chooses a random half. Rows that have all
        values of a single factor once are a table.
        """
        checked, whole = check_codes_factors(codes, factors)
        if whole.shape[1] == 1 and len(np.unique(whole)) == len(whole):  # all points of a grid
            return cls.from_table(checked[np.argsort(whole[:, 0])], (len(whole),))
        rows = Rows.of(checked, whole)

        def refuse(factors: NDArray[np.int64], stream: Stream) -> NDArray[Any]:  # noqa: ARG001
            raise UnweaveError("these codes are known for some points only, not for any that are asked for.")

        sizes = tuple(int((np.diff(start) > 1).sum()) for start in rows.start)
        return cls(refuse, sizes, rows, checked.shape[1], fit_rows)

    def separated(self, stream: Stream) -> tuple[Representation, Representation]:
        """One representation to fit to and one to test on.

        Of rows each is a random half unless `fit_rows` says which are fitted to, so that a model cannot
        recognise the rows that it was fitted to. If one of them has too few rows that share a value, both are
        the whole. A function of factors is returned twice.
        """
        if self.rows is None:
            return self, self
        if self.fit_rows is None:
            order = stream.child("halves").permutations(1, len(self.rows.codes))[0]
            middle = len(order) // 2
        else:
            order, middle = np.arange(len(self.rows.codes)), self.fit_rows
        try:
            fit, test = (
                Representation.from_rows(self.rows.codes[part], self.rows.factors[part])
                for part in (order[:middle], order[middle:])
            )
        except UnweaveError:
            return self, self
        return (self, self) if fit.rows is None or test.rows is None else (fit, test)

    def codes(
        self, factors: NDArray[np.int64], seed: int | Stream, held: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """(n, d) codes of (n, k) factors, checked.

        `held` (n,) says which factor matters in each row, where the others were drawn at random anyway.
        """
        if self.rows is not None and held is not None:
            return self.rows.draw(factors[np.arange(len(factors)), held], held, Stream.of(seed))
        return checked_codes(self.encode(factors, Stream.of(seed)), len(factors))

    def pairs(
        self, one: NDArray[np.int64], other: NDArray[np.int64], stream: Stream, held: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Codes (n, d) of pairs of points, which share the value of factor held[i] in row i.

        Of rows, the two points of a pair are always different rows.
        """
        if self.rows is not None:
            return self.rows.draw_pairs(one[np.arange(len(one)), held], held, stream)
        return self.codes(one, stream.child("one")), self.codes(other, stream.child("other"))

    def draw(self, n: int, seed: int | Stream) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Codes (n, d) and factors (n, k) of n points drawn uniformly, point i from row i of the stream."""
        stream = Stream.of(seed)
        if self.rows is not None:
            drawn = stream.child("rows").integers(n, [len(self.rows.codes)])[:, 0]
            return self.rows.codes[drawn], self.rows.factors[drawn]
        factors = stream.child("factors").integers(n, self.sizes)
        return self.codes(factors, stream.child("codes")), factors


def _numbers(column: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Values as 0, 1, 2, ...: in order but those that occur once after all others, and in order."""
    _, ranks, counts = np.unique(column, return_inverse=True, return_counts=True)
    place = np.argsort(np.argsort(counts == 1, kind="stable"), kind="stable")
    return np.asarray(place[ranks]), ranks


def checked_codes(codes: ArrayLike, n: int) -> NDArray[np.float64]:
    """Codes of n points as float64, or one sentence about what is wrong with them."""
    array = as_array(codes)
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


def check_representation(value: object) -> None:
    """Refuse arrays and whatever else is no Representation."""
    if not isinstance(value, Representation):
        raise UnweaveError(
            f"`representation` must be a Representation; got {type(value).__name__}. Make one of arrays with "
            "Representation.from_rows(codes, factors), or use evaluate(codes, factors, metrics=...)."
        )


def check_count(name: str, value: int, least: int = 1) -> None:
    """Refuse a number of draws that is no whole number or too small."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise UnweaveError(f"{name} must be a whole number, {least} or more; got {value!r}.")


def parts(points: int, batch: int, width: int | None = None) -> Iterator[tuple[int, int]]:
    """(first point, number of points) of parts whose codes, `batch` a point, are asked for in one call."""
    rows = ROWS_AT_ONCE if width is None else min(ROWS_AT_ONCE, NUMBERS_AT_ONCE // width)
    step = max(1, rows // batch)
    for first in range(0, points, step):
        yield first, min(step, points - first)
