"""Collections: images with a table of factors that need not be a full grid.

Real data is rarely a grid: combinations are missing, factors are measured and not set, labels have gaps. A
collection keeps such data as rows: row i is image i and its values. What a grid answers by rendering any
combination, a collection answers by looking for rows that match, and says so where there are too few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images, as_whole_numbers
from unweave.data.own.reference import Reference
from unweave.errors import UnweaveError, did_you_mean
from unweave.streams import Stream

# (m,) checked rows -> (m, c, h, w) images.
Look: TypeAlias = Callable[[NDArray[np.int64]], Images]


@dataclass(frozen=True)
class Continuous:
    """A factor that is a measured number, from `low` to `high`."""

    name: str
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Collection:
    """Images and what is known of their factors, row by row.

    `values` is (n, k), one column for each of `factors`: 0 .. size - 1 for a Factor, the number itself for
    a Continuous one, NaN where it is not known. `source` says where the images came from; a run records it.
    `reference` says how to open it again, where it was opened from disk.
    """

    name: str
    factors: tuple[Factor | Continuous, ...]
    shape: tuple[int, int, int]
    values: NDArray[np.float64] = field(repr=False)
    look: Look = field(repr=False)
    card: Card = field(repr=False)
    source: str
    binary: bool = False
    reference: Reference | None = field(default=None, repr=False)
    _known_matches: dict[tuple[tuple[int, ...], int], _Matches] = field(
        default_factory=dict, init=False, repr=False
    )

    def __len__(self) -> int:
        return len(self.values)

    def _repr_html_(self) -> str:
        from unweave.data.summary import data_html

        image = f"{' x '.join(map(str, self.shape))}, uint8"
        details = {"image": image, "source": self.source}
        if self.factors:
            details["all factors known"] = f"{len(self.complete):,} images"
        return data_html(
            self.name,
            f"{len(self):,} images",
            [_summary_row(factor) for factor in self.factors],
            details,
            lambda n: self.sample_images(min(n, len(self)), 0),
        )

    @property
    def drawn(self) -> str:
        """How rows are drawn, as `GroundTruth.drawn` says it of factors."""
        return "uniformly"

    @cached_property
    def complete(self) -> NDArray[np.int64]:
        """The rows in which every factor is known."""
        return np.flatnonzero(~np.isnan(self.values).any(axis=1))

    def images_at(self, index: ArrayLike) -> Images:
        """Images of rows: an index of shape (...) gives (..., c, h, w) uint8, 0 to 255."""
        rows = self._check_rows(index)
        return self.look(rows.ravel()).reshape(*rows.shape, *self.shape)

    def values_at(self, index: ArrayLike) -> NDArray[np.float64]:
        """Values of rows: an index of shape (...) gives (..., k), NaN where not known."""
        return self.values[self._check_rows(index)]

    def sample_index(self, n: int, seed: int | Stream) -> NDArray[np.int64]:
        """n independent rows, drawn uniformly; draw i comes from row i of the stream."""
        if n < 0:
            raise UnweaveError(f"the number of draws must be 0 or more; got {n}.")
        return Stream.of(seed).child("rows").integers(n, [len(self)])[:, 0]

    def sample_images(self, n: int, seed: int | Stream) -> Images:
        """The images of n independent rows, (n, c, h, w); image i comes from row i of the stream."""
        return self.images_at(self.sample_index(n, seed))

    def matching(self, shared: str | Sequence[str], least: int = 2) -> NDArray[np.int64]:
        """The rows whose value of the shared factors is that of `least` rows or more, their own included."""
        return np.sort(self._matches(shared, least).rows)

    def can_share(self, shared: str | Sequence[str], least: int = 2) -> bool:
        """Whether half of the known rows or more have matches, so that groups can be drawn."""
        return self._matches(shared, least).enough

    def sample_groups(
        self, n: int, size: int, seed: int | Stream, shared: str | Sequence[str], least: int = 2
    ) -> NDArray[np.int64]:
        """n groups of `size` rows that agree in the shared factors, (n, size).

        The first member is any of the matching rows; each further one is any row of the same value but the
        member before it, so a pair is never one row twice while small sets of matches still fill large
        groups. Group i comes from row i of the stream; a larger size only adds members. Values that fewer
        than `least` rows have are left out; if that leaves less than half of the rows whose value is known,
        groups would no longer speak for the data, and there is an error.
        """
        if n < 0 or size < 1:
            raise UnweaveError(f"groups need n >= 0 and size >= 1; got n = {n}, size = {size}.")
        matches = self._matches(shared, least)
        if not matches.enough:
            raise UnweaveError(f"{self.name}: {matches.summary}. {self._advice(shared)}")
        return matches.draw(n, size, Stream.of(seed).child("groups"))

    def torch(self, *, points: int | None = None, seed: int = 0, scale: bool = True) -> Any:
        """The data as a torch data set of pairs (image, values): `unweave.integrations.TorchDataset`."""
        # Imported by name: this package does not depend on torch.
        module = import_module("unweave.integrations.torch_data")
        return module.TorchDataset(self, points=points, seed=seed, scale=scale)

    def position(self, name: str) -> int:
        """The column of a factor, by its name."""
        names = [factor.name for factor in self.factors]
        if name not in names:
            known = did_you_mean(name, names) if names else "It has no factors."
            raise UnweaveError(f'{self.name} has no factor "{name}". {known}')
        return names.index(name)

    def _check_rows(self, index: ArrayLike) -> NDArray[np.int64]:
        rows = as_whole_numbers(index, "index")
        outside = (rows < 0) | (rows >= len(self))
        if outside.any():
            raise UnweaveError(
                f"index of {self.name} must lie in 0 .. {len(self) - 1} ({len(self)} images); "
                f"got {int(rows[outside][0])}."
            )
        return rows

    def _matches(self, shared: str | Sequence[str], least: int) -> _Matches:
        names = [shared] if isinstance(shared, str) else list(shared)
        if not names:
            raise UnweaveError(
                "groups must share at least one factor; got none. Use sample_index for any rows."
            )
        columns = tuple(self.position(name) for name in names)
        # A training loop asks for the same matches at each step, and sorting a million rows takes a while.
        if (columns, least) not in self._known_matches:
            what = " and ".join(f'"{name}"' for name in names)
            matches = _find_matches(self.values[:, columns], least, what)
            self._known_matches[columns, least] = matches
        return self._known_matches[columns, least]

    def _advice(self, shared: str | Sequence[str]) -> str:
        for name in [shared] if isinstance(shared, str) else shared:
            if isinstance(self.factors[self.position(name)], Continuous):
                return f'"{name}" is continuous: bin it first, with binned(collection, "{name}").'
        return "Merge rare values, or share another factor."


@dataclass(frozen=True, eq=False)
class _Matches:
    """Rows that share their value with others, by value; the `count` of row i begin at its `start`."""

    rows: NDArray[np.int64]
    start: NDArray[np.int64]
    count: NDArray[np.int64]
    known: int
    least: int
    what: str

    @property
    def enough(self) -> bool:
        return len(self.rows) > 0 and 2 * len(self.rows) >= self.known

    @property
    def summary(self) -> str:
        return (
            f"{len(self.rows)} of the {self.known} rows with a known value of {self.what} "
            f"have it in {self.least} rows or more, and at least half of them must"
        )

    def draw(self, n: int, size: int, stream: Stream) -> NDArray[np.int64]:
        bits = stream.bits(n, size).astype(np.uint64)
        at = _scale(bits[:, 0], np.full(n, len(self.rows)))
        start, count = self.start[at], self.count[at]
        rank = at - start
        members = [rank]
        for i in range(1, size):
            rank = (rank + 1 + _scale(bits[:, i], count - 1)) % count
            members.append(rank)
        return self.rows[start[:, None] + np.stack(members, axis=1)]


def _summary_row(factor: Factor | Continuous) -> tuple[str, str, str, Sequence[str]]:
    if isinstance(factor, Continuous):
        return factor.name, f"{factor.low:g} to {factor.high:g}", "continuous", ()
    return factor.name, f"{factor.size:,}", factor.kind, factor.labels or ()


def binned(collection: Collection, name: str, bins: int = 20) -> Collection:
    """The collection with a continuous factor made ordinal, by bins of equal width from low to high."""
    if not isinstance(collection, Collection):
        raise UnweaveError(
            f"only a Collection has continuous factors to bin; got {type(collection).__name__}."
        )
    j = collection.position(name)
    factor = collection.factors[j]
    if not isinstance(factor, Continuous):
        raise UnweaveError(
            f'"{name}" already has {factor.size} separate values; only continuous factors are binned. '
            f'To bin numbers that repeat, read them with kinds={{"{name}": "continuous"}}.'
        )
    if not isinstance(bins, int) or bins < 1:
        raise UnweaveError(f"bins must be a whole number, 1 or more; got {bins}.")
    edges = np.linspace(factor.low, factor.high, bins + 1)
    column = collection.values[:, j]
    # Inner edges only, so that low and high themselves are inside; NaN would sort behind all of them.
    codes = np.where(np.isnan(column), np.nan, np.searchsorted(edges[1:-1], column, side="right"))
    labels = tuple(f"{low:g} to {high:g}" for low, high in pairwise(edges))
    values = collection.values.copy()
    values[:, j] = codes
    values.flags.writeable = False
    factors = list(collection.factors)
    factors[j] = Factor(name, bins, "ordinal", labels)
    source = f"{collection.source}; {name} in {bins} bins"
    return replace(collection, factors=tuple(factors), values=values, source=source, reference=None)


def obstacle_to_grid(collection: Collection) -> str:
    """What keeps the rows from being a full grid of factors; empty if nothing does."""
    continuous = [factor.name for factor in collection.factors if isinstance(factor, Continuous)]
    if not collection.factors:
        return "there are no factors"
    if continuous:
        return f"{len(continuous)} factor(s) are continuous ({', '.join(continuous)})"
    missing = len(collection) - len(collection.complete)
    if missing:
        return f"{missing} of {len(collection)} rows miss the value of a factor"
    combinations = math.prod(factor.size for factor in _discrete(collection))
    covered = int(_number_rows(collection.values).max()) + 1
    if covered < combinations:
        return f"the rows cover {covered} of the {combinations} combinations of values"
    return ""


def as_ground_truth(collection: Collection) -> GroundTruth:
    """The ground truth of a collection whose rows cover the full grid of its factors.

    Where a combination has several rows, each image draws one of them: their difference is hidden variation,
    and the ground truth is stochastic. Combinations are equally likely, whatever their number of rows.
    """
    if obstacle := obstacle_to_grid(collection):
        raise UnweaveError(f"{collection.name} is not a full grid of factors: {obstacle}.")
    factors = _discrete(collection)
    sizes = tuple(factor.size for factor in factors)
    cell = np.ravel_multi_index(tuple(collection.values.astype(np.int64).T), sizes)
    order = np.argsort(cell, kind="stable")
    count = np.bincount(cell)
    start = np.cumsum(count) - count

    def render(wanted: Factors, stream: Stream) -> Images:
        cells = np.ravel_multi_index(tuple(wanted.T), sizes)
        rank = _scale(stream.bits(len(cells), 1)[:, 0], count[cells])
        return collection.look(order[start[cells] + rank])

    return GroundTruth(
        name=collection.name,
        factors=factors,
        shape=collection.shape,
        render=render,
        card=collection.card,
        source=collection.source,
        stochastic=len(collection) > len(count),
        binary=collection.binary,
        reference=collection.reference,
    )


def _discrete(collection: Collection) -> tuple[Factor, ...]:
    return tuple(factor for factor in collection.factors if isinstance(factor, Factor))


def _find_matches(values: NDArray[np.float64], least: int, what: str) -> _Matches:
    known = np.flatnonzero(~np.isnan(values).any(axis=1))
    numbers = _number_rows(values[known])
    counts = np.bincount(numbers)
    rows = np.flatnonzero(counts[numbers] >= least)
    rows = rows[np.argsort(numbers[rows], kind="stable")]
    sorted_numbers = numbers[rows]
    start = np.searchsorted(sorted_numbers, sorted_numbers, side="left")
    return _Matches(known[rows], start, counts[sorted_numbers], len(known), least, what)


def _number_rows(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """(n,) numbers 0, 1, ...: equal for equal rows, none left out."""
    numbers = np.zeros(len(values), np.int64)
    for column in values.T:
        distinct, codes = np.unique(column, return_inverse=True)
        # Numbered again after each column, so that they stay below n and never overflow.
        numbers = np.unique(numbers * len(distinct) + codes, return_inverse=True)[1]
    return numbers


def _scale(bits: NDArray[np.uint32] | NDArray[np.uint64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """32 random bits -> a whole number in 0 .. size - 1, each row with its own size."""
    return (bits.astype(np.uint64) * sizes.astype(np.uint64) >> np.uint64(32)).astype(np.int64)
