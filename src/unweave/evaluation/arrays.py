"""Codes that are rows: a user's arrays, or the encoded images of a collection."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.data import Collection
from unweave.data.grid import Factor
from unweave.errors import UnweaveError
from unweave.evaluation.factor_table import FactorTable, held_out_values, read_factor_table
from unweave.evaluation.inputs import check_order, read_codes, read_factors
from unweave.evaluation.intervals import half_of
from unweave.evaluation.likelihoods import CHUNK, Bits, Losses, Meaningless, likelihood_of
from unweave.evaluation.posteriors import EncodeImages, Posterior, joined
from unweave.evaluation.sources import BlocksOfCodes, FactorsOfBlocks, Sample, columns_of_blocks
from unweave.evaluation.standardising import Columns
from unweave.evaluation.tokens import Tokens
from unweave.metrics.checks import FactorError, check_codes, in_own_precision
from unweave.metrics.kinds import FactorKind, KindLike, factor_labels, stated_kinds
from unweave.metrics.representation import Representation
from unweave.metrics.requests import Conditions, block_word
from unweave.metrics.swap_consistency import Judge
from unweave.streams import Stream

LEAST_ROWS = 3  # of which one can be held out


@dataclass(eq=False)
class ArraySource:
    """Codes and factors as rows; row i of one belongs to row i of the other. There may be no factor."""

    codes: NDArray[Any]  # float32 or float64
    factors: NDArray[Any]  # int64, or float64 with NaN for missing values; see kinds
    log_var: NDArray[np.float64] | None = None
    test: tuple[NDArray[Any], NDArray[Any]] | None = None
    names: tuple[str, ...] = ()
    code_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    no_factors: str = "there are no factors"  # why, where there are none
    draw: Callable[[int, Stream], tuple[NDArray[np.uint8], Posterior]] | None = None
    losses: Losses | None = None
    images: int = 0
    seconds: float = 0.0
    blocks: BlocksOfCodes = field(default_factory=dict)
    block_factors: FactorsOfBlocks = field(default_factory=dict)
    judge: Callable[[], Judge] | None = None
    images_at: Callable[[NDArray[np.int64]], NDArray[np.uint8]] | None = None  # the images of rows
    kinds: tuple[
        FactorKind, ...
    ] = ()  # empty if all factors are whole numbers; else factors are real numbers
    repeats_are_halves: bool = True
    discrete: bool = False
    unscaled: Columns | None = None
    meaningless: Meaningless = field(default_factory=dict)
    readout: str = ""
    tokens: Tokens | None = None
    bits: Bits | None = None
    restricted: bool = False
    held_out: bool = False

    @classmethod
    def of(
        cls,
        codes: Any,
        factors: Any,
        log_var: Any = None,
        test: tuple[Any, Any] | None = None,
        names: tuple[str, ...] = (),
        lenient: bool = False,
        kinds: Mapping[str, KindLike] | None = None,
    ) -> ArraySource:
        """Check a user's arrays. `kinds` states kinds of factors that are not to be inferred.

        If `lenient`, factors that no metric can measure are left out and noted; otherwise they are refused.
        """
        if test is not None and (not isinstance(test, tuple | list) or len(test) != 2):
            raise UnweaveError(f"test must be a pair (codes, factors); got {type(test).__name__}.")
        check_order(codes, factors)
        own_codes = read_codes(codes)
        own_factors, test_factors = read_factors(factors, None if test is None else test[1])
        names = names or own_factors.names
        names = names or tuple(f"v{j}" for j in range(own_factors.array.shape[1]))
        try:
            table = read_factor_table(
                own_codes.array,
                own_factors.array,
                names,
                words=own_factors.words,
                kinds=kinds,
                lenient=lenient,
            )
        except FactorError as error:
            raise error.named(names) from None
        mean = in_own_precision(own_codes.array)
        held_out = None
        if test is not None and test_factors is not None:
            held_out = _checked_test(read_codes(test[0]).array, test_factors, mean, table)
        return cls(
            mean,
            table.values,
            _checked_log_var(log_var, mean),
            held_out,
            tuple(names[j] for j in table.columns),
            own_codes.names,
            table.notes,
            "no factor can be measured",
            kinds=table.kinds,
        )

    def conditions(self, points: tuple[int, int]) -> Conditions:
        """How many of the rows are used; all of them by metrics that intervene, unless they are a grid."""
        rows = len(self.codes)
        test = min(rows // 3 if self.test is None else len(self.test[0]), points[1])
        train = min(rows - test if self.test is None else rows, points[0])
        matched = None if self._grid is not None else len(self._complete)
        return Conditions(
            min(rows, points[0]),
            train,
            test,
            points[0],
            matched,
            standardised=self.unscaled is not None,
            blocks=block_word(columns_of_blocks(self), self.names),
            readout=self.readout,
        )

    @property
    def has_posteriors(self) -> bool:
        """Whether there are log variances of q(z|x)."""
        return self.log_var is not None

    @property
    def has_images(self) -> bool:
        """Whether the rows are encoded images."""
        return self.images_at is not None

    def sample(
        self, points: tuple[int, int], kind: str, stream: Stream, repeat: Stream | None = None
    ) -> Sample:
        """Rows chosen at random by `stream`; with `repeat`, a random half of each part of these."""
        codes, factors = self._drawn(kind, stream), self.factors
        sizes = self.conditions(points)
        if self.test is not None:
            test_codes, test_factors = self.test
            counted = train = _at_most(sizes.train, len(codes), stream.child("order"))
            test = _at_most(sizes.test, len(test_codes), stream.child("test order"))
        else:
            if not sizes.test:
                raise UnweaveError(
                    f"an evaluation needs at least {LEAST_ROWS} rows; got {len(codes)}. Give more."
                )
            test_codes, test_factors = codes, factors
            order = stream.child("order").permutations(1, len(codes))[0]
            test, rest, counted = order[: sizes.test], order[sizes.test :], order[: sizes.counted]
            train = rest[: sizes.train]
        if repeat:
            train, test, counted = (
                half_of(rows, repeat.child(name))
                for name, rows in (("train rows", train), ("test rows", test), ("counted rows", counted))
            )
        return Sample(
            codes[counted],
            factors[counted],
            codes[train],
            factors[train],
            test_codes[test],
            test_factors[test],
            counted_images=None if self.images_at is None else partial(self.images_at, counted),
        )

    def interventions(
        self,
        kind: str,
        repeat: Stream | None = None,
        many: bool = True,  # noqa: ARG002
    ) -> Representation:
        """Look-ups in the rows; with `repeat`, in half of them unless they are all combinations.

        All repeats split the rows into the same two parts, to fit to and to test on, and halve each part. A
        new split in each repeat would add variance that fresh samples do not have.
        """
        codes = self._drawn(kind, Stream.of(0).child("interventions"))
        if self._grid is not None:
            order, sizes = self._grid
            return Representation.from_table(codes[order], sizes)
        if repeat is None:
            return Representation.from_rows(codes[self._complete], self._labels)
        order = Stream.of(0).child("fit or test").permutations(1, len(self._complete))[0]
        middle = len(order) // 2
        fit = half_of(order[:middle], repeat.child("fit rows"))
        chosen = np.concatenate([fit, half_of(order[middle:], repeat.child("test rows"))])
        return Representation.from_rows(codes[self._complete[chosen]], self._labels[chosen], len(fit))

    def posterior(self, repeat: Stream | None = None) -> tuple[Posterior, NDArray[np.int64]]:
        """Posteriors and factors of all images; with `repeat`, of half of them."""
        rows, labels = self._complete_rows(repeat)
        log_var = None if self.log_var is None else self.log_var[rows]
        return Posterior(self.codes[rows], log_var), labels

    def likelihood(self, n: int, stream: Stream) -> tuple[NDArray[np.float64], Posterior]:
        """How unlikely n drawn images are, -log p(x|z), and their posteriors."""
        if self.losses is None or self.draw is None:
            raise UnweaveError("codes alone do not say how likely images are.")
        return likelihood_of(self.draw, self.losses, n, stream)

    def _drawn(self, kind: str, stream: Stream) -> NDArray[Any]:
        if kind == "mean":
            return self.codes
        return Posterior(self.codes, self.log_var).draw(stream.child("noise").normal(*self.codes.shape))

    @property
    def missing(self) -> bool:
        """Whether a value of a factor is missing."""
        return len(self._complete) < len(self.codes)

    @cached_property
    def _complete(self) -> NDArray[np.int64]:
        """The rows in which every factor is known."""
        if not self.kinds:
            return np.arange(len(self.codes))
        return np.flatnonzero(np.isfinite(self.factors).all(axis=1))

    def _complete_rows(self, repeat: Stream | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows in which every factor is known, and their labels; with `repeat`, of half of them."""
        if repeat is None:
            return self._complete, self._labels
        chosen = half_of(np.arange(len(self._complete)), repeat.child("rows"))
        return self._complete[chosen], self._labels[chosen]

    @cached_property
    def _labels(self) -> NDArray[np.int64]:
        """What metrics count in these rows."""
        return factor_labels(self.factors[self._complete], self.kinds) if self.kinds else self.factors

    @cached_property
    def _grid(self) -> tuple[NDArray[np.int64], tuple[int, ...]] | None:
        """The order of the rows in the grid of all combinations, where each is there exactly once."""
        if self.kinds:
            return None
        columns = [np.unique(column, return_inverse=True)[1] for column in self.factors.T]
        sizes = tuple(int(column.max()) + 1 for column in columns)
        if not columns or np.prod([float(size) for size in sizes]) != len(self.factors):
            return None
        place = np.ravel_multi_index(tuple(columns), sizes)
        order = np.argsort(place, kind="stable")
        return (order, sizes) if (place[order] == np.arange(len(order))).all() else None


def _at_most(count: int, rows: int, stream: Stream) -> NDArray[np.int64]:
    """All rows in their order, or so many that are chosen at random."""
    return np.arange(rows) if count == rows else stream.permutations(1, rows)[0][:count]


def _checked_log_var(log_var: Any, mean: NDArray[Any]) -> NDArray[np.float64] | None:
    if log_var is None:
        return None
    spread = check_codes(read_codes(log_var, "log_var").array, "log_var")
    if spread.shape != mean.shape:
        raise UnweaveError(f"log_var must be {mean.shape} like codes; got {spread.shape}.")
    return spread


def _checked_test(
    codes: NDArray[Any], factors: NDArray[Any], mean: NDArray[Any], table: FactorTable
) -> tuple[NDArray[Any], NDArray[Any]]:
    if not table.columns:  # nothing supervised is measured
        return check_codes(codes, "test codes"), np.empty((len(codes), 0), np.int64)
    tested = held_out_values(table, codes, factors)
    if codes.shape[1] != mean.shape[1]:
        raise UnweaveError(f"test must have {mean.shape[1]} codes like the rest; got {codes.shape[1]}.")
    return in_own_precision(codes), tested


def collection_source(
    encode: EncodeImages,
    data: Collection,
    most: int,
    seed: Stream,
    losses: Losses | None = None,
    lenient: bool = False,
    kinds: Mapping[str, KindLike] | None = None,
) -> ArraySource:
    """Codes of at most so many rows of a collection, chosen at random from those that know every factor.

    If `lenient`, factors that no metric can measure are left out and noted; otherwise they are refused.
    """
    columns, notes = _measurable(data)
    known = np.flatnonzero(~np.isnan(data.values[:, columns]).any(axis=1))
    no_factors = (
        f"{data.name} has no factors" if not data.factors else f"no factor of {data.name} can be used"
    )
    if columns and len(known) < LEAST_ROWS:
        no_factors = (
            f"{data.name} has {len(known)} rows in which every factor is known, and {LEAST_ROWS} are needed"
        )
        columns, known = [], np.arange(len(data))
    order = seed.child("rows").permutations(1, len(known))[0][:most]
    rows, start = known[order], time.perf_counter()
    parts = [encode(data.images_at(rows[first : first + CHUNK])) for first in range(0, len(rows), CHUNK)]
    seconds, found = time.perf_counter() - start, joined(parts)
    if columns:
        names = tuple(data.factors[j].name for j in columns)
        stated: dict[str, KindLike] = {
            name: "continuous"
            for name, j in zip(names, columns, strict=True)
            if not isinstance(data.factors[j], Factor)
        }
        source = ArraySource.of(
            found.mean,
            data.values_at(rows)[:, columns],
            found.log_var,
            names=names,
            lenient=lenient,
            kinds=stated | stated_kinds(kinds),
        )
    else:
        mean = in_own_precision(found.mean)
        source = ArraySource(mean, np.empty((len(mean), 0), np.int64), _checked_log_var(found.log_var, mean))
    source.no_factors, source.notes = no_factors, (*notes, *source.notes)
    source.images, source.seconds = len(rows), seconds
    source.losses = losses
    source.images_at = lambda chosen: data.images_at(rows[chosen])

    def draw(count: int, part: Stream) -> tuple[NDArray[np.uint8], Posterior]:
        images = data.images_at(data.sample_index(count, part))
        source.images += count
        return images, encode(images)

    source.draw = draw
    return source


def _measurable(data: Collection) -> tuple[list[int], list[str]]:
    """The columns of the factors that can be measured, and notes on the others."""
    columns, notes = [], []
    for j, factor in enumerate(data.factors):
        if isinstance(factor, Factor) and factor.size == 1:
            notes.append(f'factor "{factor.name}" was left out: it has one value only.')
        else:
            columns.append(j)
    return columns, notes
