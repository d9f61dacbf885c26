"""Where the codes of an evaluation come from: arrays, or an encoder and its data.

A source answers what metrics ask for: a sample of points to train and to test on, codes of chosen factors,
posteriors of all images, likelihoods. For a deterministic ground truth the whole grid is encoded once, if
anything needs it, and all of these are look-ups in that table.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.data import Collection, GroundTruth
from unweave.data.grid import Factor
from unweave.errors import UnweaveError
from unweave.evaluation.encoders import EncodeImages, Posterior
from unweave.metrics.checks import check_codes, check_codes_factors
from unweave.metrics.metric import Needs
from unweave.metrics.representation import Representation
from unweave.streams import Stream

CHUNK = 2048  # images that are made and encoded at once
Tell: TypeAlias = Callable[[int, int, str], None]  # how many of how many are done, and of what
# images, codes -> -log p(x|z) of each.
Losses: TypeAlias = Callable[[NDArray[np.uint8], NDArray[Any]], NDArray[np.float64]]


class Sample(NamedTuple):
    """Codes and factors to count on, to fit on, and others to test on.

    What is counted is what is fitted on; where rows are few, nothing is held out from counting.
    """

    counted_codes: NDArray[Any]
    counted_factors: NDArray[np.int64]
    codes: NDArray[Any]
    factors: NDArray[np.int64]
    test_codes: NDArray[Any]
    test_factors: NDArray[np.int64]


class Source(Protocol):
    """What metrics may ask for. `kind` is mean or sampled."""

    images: int  # how many images were encoded and not yet reported
    seconds: float  # how long that took

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the factors."""

    @property
    def rows(self) -> int | None:
        """How many points are known, where an intervening metric can ask for no others."""

    def lacks(self, needs: Needs) -> str | None:
        """Why something cannot be had, or None."""

    def sample(self, points: tuple[int, int], kind: str, stream: Stream, again: bool) -> Sample:
        """Points to train and to test on; `again` for a further sample of the same kind."""

    def interventions(self, kind: str) -> Representation:
        """Codes of chosen factors."""

    def posterior(self) -> tuple[Posterior, NDArray[np.int64]]:
        """Posteriors and factors of all images."""

    def likelihood(self, n: int, stream: Stream) -> tuple[NDArray[np.float64], Posterior]:
        """How unlikely n drawn images are, -log p(x|z), and their posteriors."""


@dataclass(eq=False)
class ArraySource:
    """Codes and factors that the user has; row i of one belongs to row i of the other."""

    codes: NDArray[np.float64]
    factors: NDArray[np.int64]
    log_var: NDArray[np.float64] | None = None
    test: tuple[NDArray[np.float64], NDArray[np.int64]] | None = None
    names: tuple[str, ...] = ()
    images: int = 0
    seconds: float = 0.0

    @classmethod
    def of(
        cls,
        codes: ArrayLike,
        factors: ArrayLike,
        log_var: ArrayLike | None = None,
        test: tuple[ArrayLike, ArrayLike] | None = None,
        names: tuple[str, ...] = (),
    ) -> ArraySource:
        """Check what came."""
        mean, whole = check_codes_factors(codes, factors)
        spread = None if log_var is None else check_codes(log_var, "log_var")
        if spread is not None and spread.shape != mean.shape:
            raise UnweaveError(f"log_var must be {mean.shape} like codes; got {spread.shape}.")
        held_out = None if test is None else check_codes_factors(*test, varied=False)
        if held_out and (held_out[0].shape[1:], held_out[1].shape[1:]) != (mean.shape[1:], whole.shape[1:]):
            raise UnweaveError(
                f"test must have {mean.shape[1]} codes and {whole.shape[1]} factors like the rest; got "
                f"{held_out[0].shape[1]} and {held_out[1].shape[1]}."
            )
        return cls(mean, whole, spread, held_out, names or tuple(f"v{j}" for j in range(whole.shape[1])))

    @property
    def rows(self) -> int | None:
        """The number of rows, unless they are all combinations of factors."""
        return None if self._grid is not None else len(self.codes)

    def lacks(self, needs: Needs) -> str | None:
        """Why something cannot be had, or None."""
        if needs == "posterior" and self.log_var is None:
            return "it needs the log variances of q(z|x): give log_var="
        if needs == "likelihood":
            return "it needs a trained run"
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
                raise UnweaveError(f"an evaluation needs at least 3 rows; got {len(codes)}. Give more.")
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

    def likelihood(self, n: int, stream: Stream) -> tuple[NDArray[np.float64], Posterior]:  # noqa: ARG002
        """Refuse: codes do not say how likely images are."""
        raise UnweaveError("codes alone do not say how likely images are.")

    def _drawn(self, kind: str, stream: Stream) -> NDArray[Any]:
        if kind == "mean":
            return self.codes
        return Posterior(self.codes, self.log_var).draw(stream.child("noise").normal(*self.codes.shape))

    @cached_property
    def _grid(self) -> tuple[NDArray[np.int64], tuple[int, ...]] | None:
        """The order of the rows in the grid of all combinations, where each is there exactly once."""
        columns = [np.unique(column, return_inverse=True)[1] for column in self.factors.T]
        sizes = tuple(int(column.max()) + 1 for column in columns)
        if np.prod([float(size) for size in sizes]) != len(self.factors):
            return None
        place = np.ravel_multi_index(tuple(columns), sizes)
        order = np.argsort(place, kind="stable")
        return (order, sizes) if (place[order] == np.arange(len(order))).all() else None


@dataclass(eq=False)
class GroundTruthSource:
    """An encoder, and a ground truth whose images it encodes."""

    encode: EncodeImages
    truth: GroundTruth
    losses: Losses | None = None
    grid: Posterior | None = None  # of the whole grid, where it is known already
    tell: Tell | None = None
    rows: int | None = None
    images: int = 0
    seconds: float = 0.0
    _noise: Stream = field(default_factory=lambda: Stream.of(0).child("whole grid"))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the factors."""
        return tuple(factor.name for factor in self.truth.factors)

    def lacks(self, needs: Needs) -> str | None:
        """Why something cannot be had, or None."""
        if needs == "likelihood" and self.losses is None:
            return "it needs a trained run"
        return None

    def encode_grid(self) -> Posterior:
        """Encode every combination of factors, once."""
        if self.grid is None:
            parts = []
            for start in range(0, len(self.truth), CHUNK):
                index = np.arange(start, min(start + CHUNK, len(self.truth)))
                images = self.truth.observe(self.truth.factors_at(index), self._noise.skip(start))
                parts.append(self._encode(images))
                if self.tell:
                    self.tell(int(index[-1]) + 1, len(self.truth), "encoding")
            self.grid = _joined(parts)
        return self.grid

    def sample(self, points: tuple[int, int], kind: str, stream: Stream, again: bool) -> Sample:  # noqa: ARG002
        """Points drawn anew from the ground truth."""
        factors = self.truth.sample_factors(sum(points), stream)
        codes = self._codes(factors, kind, stream)
        train, test = (codes[: points[0]], factors[: points[0]]), (codes[points[0] :], factors[points[0] :])
        return Sample(*train, *train, *test)

    def interventions(self, kind: str) -> Representation:
        """Look-ups in the grid; images that are drawn at random are encoded as they are asked for."""
        if not self.truth.stochastic:
            self.encode_grid()
        return Representation(lambda factors, stream: self._codes(factors, kind, stream), self.truth.sizes)

    def posterior(self) -> tuple[Posterior, NDArray[np.int64]]:
        """Posteriors and factors of all images."""
        return self.encode_grid(), self.truth.factors_at(np.arange(len(self.truth)))

    def likelihood(self, n: int, stream: Stream) -> tuple[NDArray[np.float64], Posterior]:
        """How unlikely n drawn images are, -log p(x|z), and their posteriors."""
        if self.losses is None:
            raise UnweaveError("only a trained run says how likely images are.")
        posteriors, losses = [], []
        for start in range(0, n, CHUNK):
            part = stream.skip(start)
            factors = self.truth.sample_factors(min(CHUNK, n - start), part)
            posteriors.append(self._posterior(factors, part))
            noise = part.child("noise").normal(*posteriors[-1].mean.shape)
            losses.append(self.losses(self.truth.observe(factors, part), posteriors[-1].draw(noise)))
        return np.concatenate(losses), _joined(posteriors)

    def _codes(self, factors: NDArray[np.int64], kind: str, stream: Stream) -> NDArray[Any]:
        posterior = self._posterior(factors, stream)
        if kind == "mean":
            return posterior.mean
        return posterior.draw(stream.child("noise").normal(*posterior.mean.shape))

    def _posterior(self, factors: NDArray[np.int64], stream: Stream) -> Posterior:
        if self.grid is not None and not self.truth.stochastic:
            found = self.truth.index(factors)
            log_var = self.grid.log_var
            return Posterior(self.grid.mean[found], None if log_var is None else log_var[found])
        starts = range(0, len(factors), CHUNK)
        images = (self.truth.observe(factors[s : s + CHUNK], stream.skip(s)) for s in starts)
        return _joined([self._encode(part) for part in images])

    def _encode(self, images: NDArray[np.uint8]) -> Posterior:
        start = time.perf_counter()
        found = self.encode(images)
        self.seconds += time.perf_counter() - start
        self.images += len(images)
        return found


def collection_source(encode: EncodeImages, data: Collection, most: int, seed: Stream) -> ArraySource:
    """Codes of at most so many rows of a collection, chosen at random from those that know every factor."""
    for factor in data.factors:
        if not isinstance(factor, Factor):
            raise UnweaveError(
                f'"{factor.name}" of {data.name} is continuous, and scores count values: bin it first, with '
                f'binned(collection, "{factor.name}").'
            )
    if not data.factors or len(data.complete) < 3:
        raise UnweaveError(
            f"{data.name} has {len(data.complete)} rows in which every factor is known; an evaluation needs "
            "3 or more, and better thousands."
        )
    order = seed.child("rows").permutations(1, len(data.complete))[0][:most]
    rows, start = data.complete[order], time.perf_counter()
    parts = [encode(data.images_at(rows[first : first + CHUNK])) for first in range(0, len(rows), CHUNK)]
    seconds, found = time.perf_counter() - start, _joined(parts)
    names = tuple(factor.name for factor in data.factors)
    source = ArraySource.of(found.mean, data.values_at(rows), found.log_var, names=names)
    source.images, source.seconds = len(rows), seconds
    return source


def _joined(parts: list[Posterior]) -> Posterior:
    log_vars = [part.log_var for part in parts if part.log_var is not None]
    return Posterior(
        np.concatenate([part.mean for part in parts]), np.concatenate(log_vars) if log_vars else None
    )
