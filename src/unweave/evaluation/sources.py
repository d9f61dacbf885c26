"""Where the codes of an evaluation come from: what metrics ask for, and an encoder with a ground truth.

A source answers what metrics ask for: a sample of points to train and to test on, codes of chosen factors,
posteriors of all images, likelihoods. For a deterministic ground truth the whole grid is encoded once, if
anything needs it, and all of these are look-ups in that table. Sources of arrays are in
`unweave.evaluation.arrays`.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.data import CATALOGUE, GroundTruth
from unweave.data.supervision.restrict import drawn_combinations
from unweave.errors import UnweaveError
from unweave.evaluation.image_split import split_by_image
from unweave.evaluation.likelihoods import CHUNK, Bits, Losses, Meaningless, likelihood_of, split_factors
from unweave.evaluation.parts import Part
from unweave.evaluation.posterior_memory import PosteriorMemory
from unweave.evaluation.posteriors import EncodeFactors, EncodeImages, Posterior, joined
from unweave.evaluation.standardising import Columns
from unweave.evaluation.tokens import Tokens
from unweave.metrics.block_separation import factors_of_blocks
from unweave.metrics.kinds import FactorKind
from unweave.metrics.representation import Representation
from unweave.metrics.requests import Conditions, block_word
from unweave.metrics.swap_consistency import Judge
from unweave.progress import Progress
from unweave.streams import Stream

MUCH = 0.1  # share of the test points above which images shared with training points are worth a note
FEW = 1000  # images; scores from fewer depend much on which they are
# The codes that form a block, by its name: {"content": (0, 1), "style": (2, 3)}.
BlocksOfCodes: TypeAlias = Mapping[str, tuple[int, ...]]
# The factors that a block should hold, by its name: {"content": ("shape",)}.
FactorsOfBlocks: TypeAlias = Mapping[str, tuple[str, ...]]


class Sample(NamedTuple):
    """Codes and factors to count on, to fit on, and others to test on.

    What is counted is what is fitted on; where rows are few, nothing is held out from counting.
    """

    counted_codes: NDArray[Any]
    counted_factors: NDArray[Any]
    codes: NDArray[Any]
    factors: NDArray[Any]
    test_codes: NDArray[Any]
    test_factors: NDArray[Any]
    notes: tuple[str, ...] = ()  # how the points to test on were held out, where that must be known
    counted_images: Callable[[], NDArray[np.uint8]] | None = None  # makes the images of the counted codes


class Source(Protocol):
    """What metrics may ask for. `kind` is mean or sampled."""

    images: int  # how many images were encoded and not yet reported
    seconds: float  # how long that took
    losses: Losses | None  # of a run
    bits: Bits | None  # of a run whose density of images is known
    blocks: BlocksOfCodes  # empty where no codes form a block
    block_factors: FactorsOfBlocks  # empty if it is not known which factors a block should hold
    judge: Callable[[], Judge] | None  # opens a judge of the images that a run decodes
    kinds: tuple[FactorKind, ...]  # empty if all factors are whole numbers
    repeats_are_halves: bool  # whether repeats are halves of the rows, and not fresh points
    discrete: bool  # whether mean codes are known to have a few values only
    unscaled: Columns | None  # codes to standardise for metrics that depend on their scale
    meaningless: Meaningless  # numbers to leave out, and why
    readout: str  # the protocol's word for directions that codes were read along; empty without them
    tokens: Tokens | None  # the shape of codes that are tokens of several numbers each

    @property
    def restricted(self) -> bool:
        """Whether some combinations of factors are never drawn."""

    @property
    def held_out(self) -> bool:
        """Whether the points are held-out combinations, to which nothing may be fitted."""

    @property
    def missing(self) -> bool:
        """Whether a value of a factor is missing."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the factors that can be measured."""

    @property
    def code_names(self) -> tuple[str, ...]:
        """The names of the codes, where they have some."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out of the data, and why; and what else to know of the data."""

    def conditions(self, points: tuple[int, int]) -> Conditions:
        """What the data of a score are like if so many points to train and to test on are asked for."""

    @property
    def no_factors(self) -> str:
        """Why no factor can be measured, where that is so."""

    @property
    def has_posteriors(self) -> bool:
        """Whether there may be log variances of q(z|x)."""

    @property
    def has_images(self) -> bool:
        """Whether the images of a sample can be made."""

    def sample(
        self, points: tuple[int, int], kind: str, stream: Stream, repeat: Stream | None = None
    ) -> Sample:
        """Points to train and to test on.

        With `repeat`, a sample that scores vary over as they do over fresh samples: a fresh one if points
        can be drawn, else half of the points that `stream` chooses; see `unweave.evaluation.intervals`.
        """

    def interventions(self, kind: str, repeat: Stream | None = None, many: bool = True) -> Representation:
        """Codes of chosen factors; with `repeat`, of half of the rows where there are only rows.

        If not `many` codes will be asked for, they are encoded when they are.
        """

    def posterior(self, repeat: Stream | None = None) -> tuple[Posterior, NDArray[np.int64]]:
        """Posteriors and factors of all images; with `repeat`, of half of the rows if there are only rows."""

    def likelihood(self, n: int, stream: Stream) -> tuple[NDArray[np.float64], Posterior]:
        """How unlikely n drawn images are, -log p(x|z), and their posteriors."""


def columns_of_blocks(source: Source) -> dict[str, list[int]]:
    """The columns of the factors that each block should hold; empty if that is not known."""
    if not source.block_factors:
        return {}
    stated = {
        block: [source.names.index(name) for name in names] for block, names in source.block_factors.items()
    }
    return factors_of_blocks(source.blocks, stated, len(source.names))


@dataclass(eq=False)
class GroundTruthSource:
    """An encoder, and a ground truth whose images it encodes."""

    encode: EncodeImages
    truth: GroundTruth
    losses: Losses | None = None
    grid: Posterior | None = None  # of the whole grid, where it is known already
    tell: Progress | None = None
    part: Part = "training"
    fitted: GroundTruth | None = None  # whose points are fitted on, where that is not `truth`
    images: int = 0
    seconds: float = 0.0
    blocks: BlocksOfCodes = field(default_factory=dict)
    block_factors: FactorsOfBlocks = field(default_factory=dict)
    judge: Callable[[], Judge] | None = None
    bits: Bits | None = None
    encode_factors: EncodeFactors | None = None  # also makes the images; None: `truth` makes them
    memory: PosteriorMemory | None = None  # of images that are drawn at random
    _noise: Stream = field(default_factory=lambda: Stream.of(0).child("whole grid"))

    code_names: tuple[str, ...] = ()
    kinds: tuple[FactorKind, ...] = ()
    missing: bool = False
    has_posteriors: bool = True
    has_images: bool = True
    repeats_are_halves: bool = False
    discrete: bool = False
    unscaled: Columns | None = None
    meaningless: Meaningless = field(default_factory=dict)
    readout: str = ""
    tokens: Tokens | None = None

    @property
    def restricted(self) -> bool:
        """Whether some combinations of factors are never drawn."""
        return self.truth.allowed is not None

    @property
    def held_out(self) -> bool:
        """Whether the points are held-out combinations, to which nothing may be fitted."""
        return self.fitted is not None

    @cached_property
    def varied(self) -> NDArray[np.int64]:
        """The columns of the factors that take two values or more where something is fitted."""
        return np.flatnonzero((self.fitted or self.truth).varied)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the factors that can be measured."""
        return tuple(self.truth.factors[j].name for j in self.varied)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out of the data, and whether there are too few images."""
        constant = [factor.name for j, factor in enumerate(self.truth.factors) if j not in self.varied]
        notes = [f'factor "{name}" was left out: it has one value only.' for name in constant]
        images = drawn_combinations(self.truth)
        if not self.truth.stochastic and images < FEW:
            notes.append(f"{self.truth.name} has {images} images; scores from fewer than {FEW:,} are rough.")
        return tuple(notes)

    @cached_property
    def disjoint(self) -> bool:
        """Whether points to test on show other images than points to train on.

        Most data sets of the catalogue keep the published protocol: all points are drawn from all images.
        """
        published = [entry for entry in CATALOGUE if entry.rows is None and not entry.disjoint]
        sizes = {entry.name: tuple(factor.size for factor in entry.grid_factors) for entry in published}
        return sizes.get(self.truth.name) != self.truth.sizes

    def conditions(self, points: tuple[int, int]) -> Conditions:
        """As many points as are asked for can be drawn."""
        return Conditions(
            points[0],
            *points,
            points[0],
            disjoint=self.disjoint,
            standardised=self.unscaled is not None,
            part="" if self.part == "training" else self.part,
            readout=self.readout,
            blocks=block_word(columns_of_blocks(self), self.names),
        )

    @property
    def no_factors(self) -> str:
        """Why no factor can be measured, where that is so."""
        return f"no factor of {self.truth.name} takes two values"

    def encode_grid(self) -> Posterior:
        """Encode every combination of factors, once."""
        if self.grid is None:
            parts = []
            for start in range(0, len(self.truth), CHUNK):
                index = np.arange(start, min(start + CHUNK, len(self.truth)))
                parts.append(self._encode(self.truth.factors_at(index), self._noise.skip(start)))
                if self.tell:
                    self.tell(int(index[-1]) + 1, len(self.truth), "encoding")
            self.grid = joined(parts)
        return self.grid

    def sample(
        self, points: tuple[int, int], kind: str, stream: Stream, repeat: Stream | None = None
    ) -> Sample:
        """Points drawn from the ground truth; with `repeat`, a fresh sample of them.

        What is held out is counted and tested on; nothing is fitted on it.
        """
        stream = repeat or stream
        if self.fitted is not None:
            return self._held_out_sample(self.fitted, points, kind, stream)
        # Twice as many where images are split, so that both parts have their points.
        drawn = self.truth.sample_factors(sum(points) * (2 if self.disjoint else 1), stream)
        if not self.truth.stochastic and not self.restricted and len(self.truth) <= len(drawn):
            self.encode_grid()
        codes, factors = self._codes(drawn, kind, stream), drawn[:, self.varied]
        counted = train = np.arange(points[0])
        test, note = np.arange(points[0], sum(points)), self._overlap(drawn, points)
        if self.disjoint:
            images = self._image_numbers(drawn, stream)
            train, test, note = split_by_image(images, points, stream, self.truth.name)
        return Sample(
            codes[counted],
            factors[counted],
            codes[train],
            factors[train],
            codes[test],
            factors[test],
            note,
            lambda: np.concatenate(list(self._observed(drawn[counted], stream))),
        )

    def _held_out_sample(
        self, fitted: GroundTruth, points: tuple[int, int], kind: str, stream: Stream
    ) -> Sample:
        """Points to fit on as for the training data, and points of what was held out."""
        source = replace(self, truth=fitted, fitted=None, part="training", images=0, seconds=0.0)
        trained = source.sample(points, kind, stream)
        self.images, self.seconds = self.images + source.images, self.seconds + source.seconds
        stream = stream.child("held-out combinations")
        drawn = self.truth.sample_factors(sum(points), stream)
        codes, factors = self._codes(drawn, kind, stream), drawn[:, self.varied]
        counted, tested = slice(points[0]), slice(points[0], None)
        return Sample(
            codes[counted],
            factors[counted],
            trained.codes,
            trained.factors,
            codes[tested],
            factors[tested],
            ("Test points show combinations that were held out; what is fitted is fitted on the others.",),
            lambda: np.concatenate(list(self._observed(drawn[counted], stream))),
        )

    def interventions(
        self,
        kind: str,
        repeat: Stream | None = None,  # noqa: ARG002
        many: bool = True,
    ) -> Representation:
        """Look-ups in the grid; images that are drawn at random are encoded as they are asked for."""
        if many and not self.truth.stochastic:
            self.encode_grid()

        def encode(chosen: NDArray[np.int64], stream: Stream) -> NDArray[Any]:
            factors = np.zeros((len(chosen), len(self.truth.factors)), np.int64)
            factors[:, self.varied] = chosen
            return self._codes(factors, kind, stream)

        return Representation(encode, tuple(self.truth.sizes[j] for j in self.varied))

    def posterior(self, repeat: Stream | None = None) -> tuple[Posterior, NDArray[np.int64]]:  # noqa: ARG002
        """Posteriors and factors of all images that may be drawn."""
        grid, factors = self.encode_grid(), self.truth.factors_at(np.arange(len(self.truth)))
        if self.truth.allowed is not None:
            rows = self.truth.allowed(factors) > 0
            log_var = None if grid.log_var is None else grid.log_var[rows]
            grid, factors = Posterior(grid.mean[rows], log_var), factors[rows]
        return grid, factors[:, self.varied]

    def likelihood(self, n: int, stream: Stream) -> tuple[NDArray[np.float64], Posterior]:
        """How unlikely n drawn images are, -log p(x|z), and their posteriors."""
        if self.losses is None:
            raise UnweaveError("only a trained run says how likely images are.")

        def draw(count: int, part: Stream) -> tuple[NDArray[np.uint8], Posterior]:
            factors = self.truth.sample_factors(count, part)
            return self.truth.observe(factors, part), self._posterior(factors, part)

        return likelihood_of(draw, self.losses, n, stream)

    def _image_numbers(self, factors: NDArray[np.int64], stream: Stream) -> NDArray[np.int64]:
        """(n,) numbers 0, 1, ..., equal where two points show the same image."""
        if not self.truth.stochastic:
            return np.unique(self.truth.index(factors), return_inverse=True)[1]
        marks: list[bytes] = []
        for images in self._observed(factors, stream):
            marks += [hashlib.blake2b(image.tobytes(), digest_size=8).digest() for image in images]
        return np.unique(np.frombuffer(b"".join(marks), np.uint64), return_inverse=True)[1]

    def _overlap(self, factors: NDArray[np.int64], points: tuple[int, int]) -> tuple[str, ...]:
        """A note where many points to test on show an image that was trained on."""
        if self.truth.stochastic or self.disjoint:
            return ()
        index = self.truth.index(factors)
        share = float(np.isin(index[points[0] :], index[: points[0]]).mean())
        if share <= MUCH:
            return ()
        return (
            f"{share:.0%} of the test points show an image that is also a training point, because points are "
            f"drawn with replacement from the {len(self.truth):,} images of {self.truth.name}, as published.",
        )

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

        def encode() -> Posterior:
            return joined([self._encode(*part) for part in split_factors(factors, stream)])

        return encode() if self.memory is None else self.memory.get(factors, stream, encode)

    def _observed(self, factors: NDArray[np.int64], stream: Stream) -> Iterator[NDArray[np.uint8]]:
        """The images of factors (n, k), in parts."""
        for part in split_factors(factors, stream):
            yield self.truth.observe(*part)

    def _encode(self, factors: NDArray[np.int64], stream: Stream) -> Posterior:
        if self.encode_factors is None:
            images = self.truth.observe(factors, stream)  # before the clock starts: it times the encoder
            start = time.perf_counter()
            posterior = self.encode(images)
        else:
            start = time.perf_counter()
            posterior = self.encode_factors(factors, stream)
        self.seconds += time.perf_counter() - start
        self.images += len(factors)
        return posterior
