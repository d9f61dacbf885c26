"""Codes that are rows: a user's arrays, or the encoded images of a collection."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.data import Collection
from unweave.data.grid import Factor
from unweave.errors import UnweaveError
from unweave.evaluation.encoders import EncodeImages, Posterior
from unweave.evaluation.inputs import check_order, read_codes, read_factors
from unweave.evaluation.sources import CHUNK, Losses, Sample, joined, likelihood_of
from unweave.metrics.checks import FactorError, check_codes, check_codes_factors
from unweave.metrics.metric import Needs
from unweave.metrics.representation import Representation
from unweave.streams import Stream

LEAST_ROWS = 3  # of which one can be held out


@dataclass(eq=False)
class ArraySource:
    """Codes and factors as rows; row i of one belongs to row i of the other. There may be no factor."""

    codes: NDArray[np.float64]
    factors: NDArray[np.int64]
    log_var: NDArray[np.float64] | None = None
    test: tuple[NDArray[np.float64], NDArray[np.int64]] | None = None
    names: tuple[str, ...] = ()
    code_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    no_factors: str = "there are no factors"  # why, where there are none
    draw: Callable[[int, Stream], tuple[NDArray[np.uint8], Posterior]] | None = None
    losses: Losses | None = None
    images: int = 0
    seconds: float = 0.0
    disjoint: bool = False

    @classmethod
    def of(
        cls,
        codes: Any,
        factors: Any,
        log_var: Any = None,
        test: tuple[Any, Any] | None = None,
        names: tuple[str, ...] = (),
        lenient: bool = False,
    ) -> ArraySource:
        """Check a user's arrays.

        If `lenient`, factors that no metric can measure are left out and noted; otherwise they are refused.
        """
        if test is not None and (not isinstance(test, tuple | list) or len(test) != 2):
            raise UnweaveError(f"test must be a pair (codes, factors); got {type(test).__name__}.")
        check_order(codes, factors)
        own_codes = read_codes(codes)
        own_factors, test_factors = read_factors(factors, None if test is None else test[1])
        names = names or own_factors.names
        mean, whole, kept = _checked(own_codes.array, own_factors.array, names, lenient)
        if not names:
            names = tuple(f"v{j}" for j in range(own_factors.array.shape[1]))
        reasons = [f'factor "{names[j]}" was left out: {reason}.' for j, reason in kept.left_out.items()]
        held_out = None
        if test is not None and test_factors is not None:
            held_out = _checked_test(read_codes(test[0]).array, test_factors[:, kept.columns], mean, whole)
        return cls(
            mean,
            whole,
            _checked_log_var(log_var, mean),
            held_out,
            tuple(names[j] for j in kept.columns),
            own_codes.names,
            tuple(reasons),
            "no factor can be measured",
        )

    @property
    def rows(self) -> int | None:
        """The number of rows, unless they are all combinations of factors."""
        return None if self._grid is not None else len(self.codes)

    def lacks(self, needs: Needs) -> str | None:
        """Why something cannot be had, or None."""
        if needs == "likelihood":
            return "it needs a trained run" if self.losses is None else None
        if needs != "unsupervised" and not self.names:
            return self.no_factors
        if needs == "posterior" and self.log_var is None:
            return "it needs the log variances of q(z|x): give log_var="
        return None

    def sample(self, points: tuple[int, int], kind: str, stream: Stream, again: bool) -> Sample:
        """Rows chosen at random; again: a bootstrap sample of those."""
        codes, factors = self._drawn(kind, stream), self.factors
        if self.test is not None:
            counted = train = np.arange(len(codes))
            test = np.arange(len(self.test[0]))
            test_codes, test_factors = self.test
        else:
            order = stream.child("order").permutations(1, len(codes))[0]
            held_out = min(len(order) // 3, points[1])
            if not held_out:
                raise UnweaveError(
                    f"an evaluation needs at least {LEAST_ROWS} rows; got {len(codes)}. Give more."
                )
            test, train, counted = order[:held_out], order[held_out:][: points[0]], order[: points[0]]
            test_codes, test_factors = codes, factors
        if again:  # the bootstrap: rows drawn from those rows, with replacement
            train, test, counted = (
                rows[stream.child(name).integers(len(rows), [len(rows)])[:, 0]]
                for name, rows in (("train rows", train), ("test rows", test), ("counted rows", counted))
            )
        fitted = codes[train], factors[train]
        return Sample(codes[counted], factors[counted], *fitted, test_codes[test], test_factors[test])

    def interventions(self, kind: str) -> Representation:
        """Look-ups in the rows."""
        codes = self._drawn(kind, Stream.of(0).child("interventions"))
        if self._grid is None:
            return Representation.from_rows(codes, self.factors)
        order, sizes = self._grid
        return Representation.from_table(codes[order], sizes)

    def posterior(self) -> tuple[Posterior, NDArray[np.int64]]:
        """Posteriors and factors of all images."""
        return Posterior(self.codes, self.log_var), self.factors

    def likelihood(self, n: int, stream: Stream) -> tuple[NDArray[np.float64], Posterior]:
        """How unlikely n drawn images are, -log p(x|z), and their posteriors."""
        if self.losses is None or self.draw is None:
            raise UnweaveError("codes alone do not say how likely images are.")
        return likelihood_of(self.draw, self.losses, n, stream)

    def _drawn(self, kind: str, stream: Stream) -> NDArray[Any]:
        if kind == "mean":
            return self.codes
        return Posterior(self.codes, self.log_var).draw(stream.child("noise").normal(*self.codes.shape))

    @cached_property
    def _grid(self) -> tuple[NDArray[np.int64], tuple[int, ...]] | None:
        """The order of the rows in the grid of all combinations, where each is there exactly once."""
        columns = [np.unique(column, return_inverse=True)[1] for column in self.factors.T]
        sizes = tuple(int(column.max()) + 1 for column in columns)
        if not columns or np.prod([float(size) for size in sizes]) != len(self.factors):
            return None
        place = np.ravel_multi_index(tuple(columns), sizes)
        order = np.argsort(place, kind="stable")
        return (order, sizes) if (place[order] == np.arange(len(order))).all() else None


@dataclass(frozen=True)
class _Kept:
    """The columns of factors that are measured, and the reason for each that is not."""

    columns: list[int]
    left_out: dict[int, str]


def _checked(
    codes: NDArray[Any], factors: NDArray[Any], names: Sequence[str], lenient: bool
) -> tuple[NDArray[np.float64], NDArray[np.int64], _Kept]:
    """Codes, the factors that can be measured, and which these are."""
    try:
        if not lenient:
            mean, whole = check_codes_factors(codes, factors)
            return mean, whole, _Kept(list(range(whole.shape[1])), {})
        mean, numbers = check_codes_factors(codes, factors, discrete=False, varied=False)
    except FactorError as error:
        raise (error.named(names) if names else error) from None
    found = {j: _obstacle(column) for j, column in enumerate(numbers.T)}
    kept = _Kept([j for j, why in found.items() if not why], {j: why for j, why in found.items() if why})
    return mean, numbers[:, kept.columns].astype(np.int64), kept


def _obstacle(column: NDArray[np.float64]) -> str:
    """Why no metric can measure a factor; empty if nothing is wrong with it."""
    values, place, counts = np.unique(column, return_inverse=True, return_counts=True)
    if len(values) == 1:
        return "it has the same value in all rows"
    if (values != np.round(values)).any():
        return "its values are not whole numbers; bin it first"
    alone = int((counts[place] == 1).sum())
    if 2 * alone > len(column):
        return f"{alone:,} of {len(column):,} rows have a value that no other row has; bin it first"
    return ""


def _checked_log_var(log_var: Any, mean: NDArray[np.float64]) -> NDArray[np.float64] | None:
    if log_var is None:
        return None
    spread = check_codes(read_codes(log_var, "log_var").array, "log_var")
    if spread.shape != mean.shape:
        raise UnweaveError(f"log_var must be {mean.shape} like codes; got {spread.shape}.")
    return spread


def _checked_test(
    codes: NDArray[Any], factors: NDArray[Any], mean: NDArray[np.float64], whole: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    if not whole.shape[1]:  # nothing supervised is measured
        return check_codes(codes, "test codes"), np.empty((len(codes), 0), np.int64)
    held_out = check_codes_factors(codes, factors, varied=False)
    if held_out[0].shape[1] != mean.shape[1]:
        raise UnweaveError(f"test must have {mean.shape[1]} codes like the rest; got {held_out[0].shape[1]}.")
    return held_out


def collection_source(
    encode: EncodeImages,
    data: Collection,
    most: int,
    seed: Stream,
    losses: Losses | None = None,
    lenient: bool = False,
) -> ArraySource:
    """Codes of at most so many rows of a collection, chosen at random from those that know every factor.

    If `lenient`, factors that no metric can measure are left out and noted; otherwise they are refused.
    """
    columns, notes = _measurable(data, lenient)
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
        source = ArraySource.of(
            found.mean, data.values_at(rows)[:, columns], found.log_var, names=names, lenient=lenient
        )
    else:
        mean = check_codes(found.mean)
        source = ArraySource(mean, np.empty((len(mean), 0), np.int64), _checked_log_var(found.log_var, mean))
    source.no_factors, source.notes = no_factors, (*notes, *source.notes)
    source.images, source.seconds = len(rows), seconds
    source.losses = losses

    def draw(count: int, part: Stream) -> tuple[NDArray[np.uint8], Posterior]:
        images = data.images_at(data.sample_index(count, part))
        source.images += count
        return images, encode(images)

    source.draw = draw
    return source


def _measurable(data: Collection, lenient: bool) -> tuple[list[int], list[str]]:
    """The columns of the factors that can be measured, and notes on the others."""
    columns, notes = [], []
    for j, factor in enumerate(data.factors):
        if not isinstance(factor, Factor):
            if not lenient:
                raise UnweaveError(
                    f'"{factor.name}" of {data.name} is continuous, and scores count values: bin it first, '
                    f'with binned(collection, "{factor.name}").'
                )
            notes.append(f'factor "{factor.name}" was left out: it is continuous; bin it first.')
        elif factor.size == 1:
            notes.append(f'factor "{factor.name}" was left out: it has one value only.')
        else:
            columns.append(j)
    return columns, notes
