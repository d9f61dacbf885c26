"""Factors of variation, and ground truths: a grid of factors with a rule that turns factors into images.

Factor values are indices: factors is an (n, k) array of whole numbers, column j in 0 .. size_j - 1. The
whole grid is numbered in mixed radix, the last factor running fastest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.data.own.reference import Reference
from unweave.data.weight_table import (
    CHUNK,
    HOPELESS,
    LARGEST_TABLE,
    WeightTable,
    draw_given,
    rare_table,
)
from unweave.errors import UnweaveError, did_you_mean
from unweave.streams import Stream

Factors: TypeAlias = NDArray[np.int64]
Images: TypeAlias = NDArray[np.uint8]
Kind: TypeAlias = Literal["categorical", "ordinal", "circular"]

# (n, k) checked factors and a stream, which only stochastic ground truths use -> (n, c, h, w) images.
Render: TypeAlias = Callable[[Factors, Stream], Images]
# (n, k) factors -> (n,) probabilities in [0, 1] with which a uniform draw of them is kept.
Weight: TypeAlias = Callable[[Factors], NDArray[np.float64]]

MOST_ATTEMPTS = 10_000


@dataclass(frozen=True)
class Factor:
    """One factor of variation with `size` values; `labels`, if given, says what the values stand for.

    A circular factor starts again after `period` values: after all of them unless it is stated. The period is
    smaller if the last values repeat the first ones.
    """

    name: str
    size: int
    kind: Kind = "ordinal"
    labels: tuple[str, ...] | None = None
    period: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UnweaveError(f'factor "{self.name}" must have at least one value; got size {self.size}.')
        if self.labels is not None and len(self.labels) != self.size:
            raise UnweaveError(
                f'factor "{self.name}" has {self.size} values but {len(self.labels)} labels; give one each.'
            )
        if self.period is not None and (self.kind != "circular" or not 1 <= self.period <= self.size):
            raise UnweaveError(
                f'factor "{self.name}" is {self.kind} with {self.size} values; got period {self.period}. '
                "Only a circular factor has a period, which is at most the number of values."
            )


@dataclass(frozen=True)
class Card:
    """What a user must know before using a data set: where it is from, and how to cite it."""

    title: str
    licence: str
    citation: str
    homepage: str = ""
    note: str = ""


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """A grid of factors and the rule that turns factors into images.

    `source` says where the images came from (a rendering rule, a file and its checksum); a run records
    it. A stochastic ground truth draws something for each image (a colour, noise, a hidden factor), so
    that `observe` needs a seed or stream. With a `weight`, factors are no longer drawn uniformly over the
    grid, and `drawn` says how: see `unweave.data.supervision` for correlated factors and held-out
    combinations. `reference` says how to open it again, where it is a user's data on disk.

    Of a restricted ground truth, `full` is the one without any restriction, and `allowed` is 1 for the
    combinations that may be drawn and 0 for those that were held out. With `members`, only these positions in
    the grid are drawn, all with the same probability.
    """

    name: str
    factors: tuple[Factor, ...]
    shape: tuple[int, int, int]
    render: Render = field(repr=False)
    card: Card = field(repr=False)
    source: str
    stochastic: bool = False
    binary: bool = False
    weight: Weight | None = field(default=None, repr=False)
    drawn: str = "uniformly"
    reference: Reference | None = field(default=None, repr=False)
    full: GroundTruth | None = field(default=None, repr=False)
    allowed: Weight | None = field(default=None, repr=False)
    members: NDArray[np.int64] | None = field(default=None, repr=False)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each factor."""
        return tuple(factor.size for factor in self.factors)

    @cached_property
    def varied(self) -> NDArray[np.bool_]:
        """(k,): which factors take two values or more among the combinations that may be drawn."""
        low, high = np.asarray(self.sizes), np.zeros(len(self.sizes), np.int64)
        if self.allowed is None or len(self) > LARGEST_TABLE:
            return low > 1
        for start in range(0, len(self), CHUNK):
            factors = self.factors_at(np.arange(start, min(start + CHUNK, len(self))))
            drawn = factors[self.allowed(factors) > 0]
            if len(drawn):
                low, high = np.minimum(low, drawn.min(axis=0)), np.maximum(high, drawn.max(axis=0))
        return np.asarray(low < high)

    def __len__(self) -> int:
        return math.prod(self.sizes)

    def _repr_html_(self) -> str:
        from unweave.data.summary import data_html

        rows = [(f.name, f"{f.size:,}", f.kind, f.labels or ()) for f in self.factors]
        image = f"{' x '.join(map(str, self.shape))}, uint8"
        details = {"image": image, "source": self.source, "factors are drawn": self.drawn}
        size = f"{len(self):,} combinations of factors"
        return data_html(self.name, size, rows, details, lambda n: self.sample_images(n, 0))

    def observe(self, factors: ArrayLike, seed: int | Stream | None = None) -> Images:
        """Images of (n, k) factors: (n, c, h, w) uint8, 0 to 255.

        A stochastic ground truth draws for row i from row i of the stream, so images do not depend on
        how rows are split into batches: `observe(f[9:], stream.skip(9))` equals `observe(f, stream)[9:]`.
        """
        checked = self.check(factors)
        if seed is None and self.stochastic:
            raise UnweaveError(
                f"{self.name} draws at random for each image, so observe needs a seed; got none. "
                "Pass seed=0, or a Stream."
            )
        return self.render(checked, Stream.of(seed or 0).child("observe"))

    def index(self, factors: ArrayLike) -> NDArray[np.int64]:
        """(n, k) factors -> (n,) positions in the grid, last factor fastest."""
        columns = self.check(factors).T
        return np.asarray(np.ravel_multi_index(tuple(columns), self.sizes), np.int64)

    def factors_at(self, index: ArrayLike) -> Factors:
        """(n,) positions in the grid -> (n, k) factors."""
        positions = as_whole_numbers(index, "index")
        if positions.ndim != 1:
            raise UnweaveError(f"index must be of shape (n,); got {positions.shape}.")
        _refuse_outside(positions, len(self), f"index of {self.name}", "images")
        return np.stack(np.unravel_index(positions, self.sizes), axis=1).astype(np.int64)

    def sample_factors(self, n: int, seed: int | Stream, fixed: Mapping[str, int] | None = None) -> Factors:
        """n independent draws, (n, k); `fixed` gives some factors a value: {"shape": 2}."""
        _refuse_negative(n)
        held = np.full(len(self.factors), -1, np.int64)
        for name, value in (fixed or {}).items():
            j = self.position(name)
            _refuse_outside(np.asarray([value]), self.sizes[j], f'fixed factor "{name}"', "values")
            held[j] = value
        return self._draw(Stream.of(seed).child("factors"), np.broadcast_to(held, (n, len(held))))

    def sample_images(self, n: int, seed: int | Stream) -> Images:
        """Images of n independent draws of factors, (n, c, h, w); image i comes from row i of the stream."""
        return self.observe(self.sample_factors(n, seed), seed)

    def sample_groups(
        self, n: int, size: int, seed: int | Stream, shared: Sequence[str] | ArrayLike
    ) -> Factors:
        """n groups of `size` draws that agree in the shared factors and in nothing else but by chance.

        `shared` is a list of factor names, or a boolean mask of shape (k,) or, one choice a group, (n, k).
        Returns (n, size, k). Group i comes from row i of the stream; a larger size only adds members.
        """
        _refuse_negative(n)
        if size < 1:
            raise UnweaveError(f"a group must have at least one member; got size {size}.")
        k = len(self.factors)
        mask = self.mask(shared)
        if mask.shape not in ((k,), (n, k)):
            raise UnweaveError(
                f"shared must be a mask of shape ({k},) or, one row a group, ({n}, {k}); got {mask.shape}."
            )
        mask = np.broadcast_to(mask, (n, k))
        stream = Stream.of(seed).child("factors")
        first = self._draw(stream, np.full(mask.shape, -1, np.int64))
        held = np.where(mask, first, -1)
        others = [self._draw(stream.child("member", i), held) for i in range(1, size)]
        return np.stack([first, *others], axis=1)

    def torch(self, *, points: int | None = None, seed: int = 0, scale: bool = True) -> Any:
        """The data as a torch data set of pairs (image, factors): `unweave.integrations.TorchDataset`."""
        # Imported by name: this package does not depend on torch.
        module = import_module("unweave.integrations.torch_data")
        return module.TorchDataset(self, points=points, seed=seed, scale=scale)

    def position(self, name: str) -> int:
        """The column of a factor, by its name."""
        names = [factor.name for factor in self.factors]
        if name not in names:
            raise UnweaveError(f'{self.name} has no factor "{name}". {did_you_mean(name, names)}')
        return names.index(name)

    def mask(self, chosen: Sequence[str] | ArrayLike) -> NDArray[np.bool_]:
        """Factor names, or a boolean mask that is passed on, as a boolean mask (..., k)."""
        choice = np.asarray(chosen)
        k = len(self.factors)
        if choice.dtype == np.bool_ and choice.shape[-1:] == (k,):
            return choice
        if choice.ndim == 1 and (choice.dtype.kind == "U" or choice.size == 0):
            mask = np.zeros(k, np.bool_)
            mask[[self.position(str(name)) for name in choice]] = True
            return mask
        raise UnweaveError(
            f"factors are chosen by a list of names or a boolean mask (..., {k}); got {chosen!r}."
        )

    def check(self, factors: ArrayLike) -> Factors:
        """Return factors as an (n, k) int64 array, or say what is wrong with them."""
        array = as_whole_numbers(factors, "factors")
        k = len(self.factors)
        if array.ndim != 2 or array.shape[1] != k:
            hint = " Did you transpose them?" if array.ndim == 2 and array.shape[0] == k else ""
            raise UnweaveError(
                f"factors of {self.name} must be (n, {k}), one column for each of "
                f"{', '.join(factor.name for factor in self.factors)}; got {array.shape}.{hint}"
            )
        for j, factor in enumerate(self.factors):
            _refuse_outside(array[:, j], factor.size, f'factor "{factor.name}" of {self.name}', "values")
        return array

    def _draw(self, stream: Stream, held: NDArray[np.int64]) -> Factors:
        """One draw for each row of held, which gives the factors that are fixed (-1: free)."""
        if self.weight is None:
            return np.where(held >= 0, held, stream.integers(len(held), self.sizes))
        if self.members is not None and (held < 0).all():
            return self.factors_at(self.members[stream.integers(len(held), [len(self.members)])[:, 0]])
        if self._rare is not None and (held < 0).all():
            return self._rare.draw(stream.child("table"), len(held))
        return self._draw_weighted(stream, held, self.weight)

    @cached_property
    def _rare(self) -> WeightTable | None:
        """The probabilities of all combinations, where few draws of them are accepted."""
        return None if self.weight is None else rare_table(self.sizes, self.weight)

    def _draw_weighted(self, stream: Stream, held: NDArray[np.int64], weight: Weight) -> Factors:
        # Rejection by row: row i tries rows i of one stream after another, so it stays a function of i.
        out = np.empty(held.shape, np.int64)
        open_rows = np.arange(len(held))
        hopeless = self._rare is not None and self._rare.share < HOPELESS
        for attempt in range(0 if hopeless else MOST_ATTEMPTS):
            if not len(open_rows):
                return out
            draws = stream.child("attempt", attempt)
            fixed = held[open_rows]
            drawn = np.where(fixed >= 0, fixed, draws.integers(open_rows, self.sizes))
            accepted = draws.child("keep").uniform(open_rows, 1)[:, 0] < weight(drawn)
            out[open_rows[accepted]] = drawn[accepted]
            open_rows = open_rows[~accepted]
        rest = draw_given(self.sizes, weight, held[open_rows], stream.child("table"), open_rows)
        if rest is not None:
            out[open_rows] = rest
            return out
        raise UnweaveError(
            f"{self.name}: {len(open_rows)} of {len(held)} draws found no allowed combination of factors. "
            "Hold out or fix less."
        )


def as_whole_numbers(values: ArrayLike, what: str) -> NDArray[np.int64]:
    """Values as int64; floats are taken if they are whole."""
    array = np.asarray(values)
    if array.dtype.kind == "f":
        whole = np.isfinite(array) & (array == np.round(np.nan_to_num(array)))
        if not whole.all():
            raise UnweaveError(
                f"{what} must be whole numbers; {int((~whole).sum())} of {array.size} are not, "
                f"the first is {array[~whole][0]}."
            )
    elif array.dtype.kind not in "iu" and array.size:
        raise UnweaveError(f"{what} must be whole numbers; got {array.dtype}.")
    return array.astype(np.int64)


def _refuse_outside(values: NDArray[Any], size: int, what: str, unit: str) -> None:
    outside = (values < 0) | (values >= size)
    if outside.any():
        raise UnweaveError(
            f"{what} must lie in 0 .. {size - 1} ({size} {unit}); got {int(values[outside][0])}."
        )


def _refuse_negative(n: int) -> None:
    if n < 0:
        raise UnweaveError(f"the number of draws must be 0 or more; got {n}.")
