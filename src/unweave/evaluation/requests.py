"""What a metric may ask for: one class each.

`REQUESTS` has an entry for every word of `Metric.needs`. An entry says why a source cannot give what the
metric asks for, and gathers the arguments of the metric's function. Nothing else in the evaluation depends on
that word.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from unweave.errors import UnweaveError
from unweave.evaluation.angles import periods_of
from unweave.evaluation.circular import circular_obstacle, columns_of_kind, periods_of_source
from unweave.evaluation.sources import Sample, Source, columns_of_blocks
from unweave.metrics.requests import INPUTS, Needs
from unweave.streams import Stream


@dataclass
class Drawing:
    """One draw from a source. The sample of points is drawn once, for all metrics that ask for it.

    `repeat` is the stream of one of the repeats that intervals are made of, None for the value itself.
    """

    source: Source
    points: tuple[int, int]
    kind: str  # mean or sampled
    stream: Stream
    repeat: Stream | None = None
    samples: list[Sample | UnweaveError] = field(default_factory=list)

    @property
    def metric_stream(self) -> Stream:
        """What metrics draw from: each repeat draws other numbers."""
        return self.repeat or self.stream

    @property
    def drawn_sample(self) -> Sample | None:
        """The sample, if a metric asked for it."""
        return next((sample for sample in self.samples if isinstance(sample, Sample)), None)

    def sample(self) -> Sample:
        """Points to count on, to fit on and to test on."""
        if not self.samples:
            try:
                drawn = self.source.sample(self.points, self.kind, self.stream, self.repeat)
            except UnweaveError as error:
                self.samples.append(error)
            else:
                self.samples.append(drawn)
        sample = self.samples[0]
        if isinstance(sample, UnweaveError):
            raise sample
        return sample


class Request(Protocol):
    """One thing that a metric can ask for."""

    def obstacle(self, source: Source) -> str | None:
        """Why a source that has factors cannot give it, or None."""

    def gather(self, drawing: Drawing) -> dict[str, Any]:
        """The arguments of the metric's function by name."""


@dataclass(frozen=True)
class CountedCodes:
    """Codes and factors of points to count on; nothing is held out. Some metrics look at the codes only."""

    looks_at_factors: bool = True

    def obstacle(self, source: Source) -> str | None:  # noqa: ARG002
        """Every source has codes."""
        return None

    def gather(self, drawing: Drawing) -> dict[str, Any]:
        """Codes and factors of fresh points, or of half of the rows, for a repeat."""
        sample = drawing.sample()
        if self.looks_at_factors:
            _refuse_constant(drawing.source, sample)
        return {"codes": sample.counted_codes, "factors": sample.counted_factors}


@dataclass(frozen=True)
class HeldOutCodes:
    """Codes and factors to fit on, and others to test on."""

    def obstacle(self, source: Source) -> str | None:  # noqa: ARG002
        """Every source has codes."""
        return None

    def gather(self, drawing: Drawing) -> dict[str, Any]:
        """Codes, factors and test. A repeat of rows halves both parts apart from each other."""
        sample = drawing.sample()
        test = (sample.test_codes, sample.test_factors)
        return {"codes": sample.codes, "factors": sample.factors, "test": test}


@dataclass(frozen=True)
class HeldOutCircles:
    """What `HeldOutCodes` gathers, and the periods of circular factors."""

    def obstacle(self, source: Source) -> str | None:
        """Many data sets have no circular factor."""
        return None if periods_of(source) else NO_ANGLES

    def gather(self, drawing: Drawing) -> dict[str, Any]:
        """Codes, factors, test and periods by column."""
        return {**HeldOutCodes().gather(drawing), "periods": periods_of(drawing.source)}


NO_ANGLES = 'it needs a circular factor. State those of your own arrays with kinds={"angle": "circular"}'
NOT_RESTRICTED = "it needs all combinations of factors, and some are held out: measure it with --on all"


@dataclass(frozen=True)
class Interventions:
    """Codes of factors that the metric chooses. If these are not `many`, the others are not encoded."""

    many: bool = True

    def obstacle(self, source: Source) -> str | None:
        """A metric holds factors fixed and draws the others freely, which held-out combinations forbid."""
        return NOT_RESTRICTED if source.restricted else None

    def gather(self, drawing: Drawing) -> dict[str, Any]:
        """The representation. The metric draws from it; a repeat of rows has half of them."""
        representation = drawing.source.interventions(drawing.kind, drawing.repeat, self.many)
        return {"codes": None, "factors": None, "representation": representation}


@dataclass(frozen=True)
class Posteriors:
    """Means and log variances of q(z|x) of all images."""

    def obstacle(self, source: Source) -> str | None:
        """Arrays may come without log variances."""
        return None if source.has_posteriors else "it needs the log variances of q(z|x): give log_var="

    def gather(self, drawing: Drawing) -> dict[str, Any]:
        """Means, log variances and factors. The metric samples them; a repeat of rows has half of them."""
        posterior, factors = drawing.source.posterior(drawing.repeat)
        return {"codes": posterior.mean, "log_var": posterior.log_var, "factors": factors}


@dataclass(frozen=True)
class Likelihoods:
    """How unlikely drawn images are under the model, -log p(x|z), and their posteriors."""

    def obstacle(self, source: Source) -> str | None:
        """Only a run has a decoder."""
        return "it needs a trained run" if source.losses is None else None

    def gather(self, drawing: Drawing) -> dict[str, Any]:
        """Losses, means and log variances of as many images as there are points to train on."""
        stream = drawing.metric_stream.child("likelihood")
        losses, posterior = drawing.source.likelihood(drawing.points[0], stream)
        return {"codes": posterior.mean, "factors": None, "log_var": posterior.log_var, "losses": losses}


@dataclass(frozen=True)
class Densities:
    """Bits per dimension of images under a model whose density of images is known."""

    def obstacle(self, source: Source) -> str | None:
        """Only flows have such a density."""
        return "it needs a run of a flow, such as glow" if source.bits is None else None

    def gather(self, drawing: Drawing) -> dict[str, Any]:
        """Bits per dimension, (n,), of the points to count on."""
        images = CountedImages().gather(drawing)["images"]
        bits = drawing.source.bits
        if bits is None:
            raise UnweaveError("these images have no density. Evaluate a run of a flow, such as glow.")
        losses = bits(images, drawing.metric_stream.child("density"))
        return {"codes": None, "factors": None, "losses": losses}


@dataclass(frozen=True)
class CountedImages:
    """Codes and factors of points to count on, and the images that the codes belong to."""

    def obstacle(self, source: Source) -> str | None:
        """Arrays of codes have no images."""
        return None if source.has_images else "it needs images: evaluate a run or an encoder on a data set"

    def gather(self, drawing: Drawing) -> dict[str, Any]:
        """Codes, factors and uint8 images (n, c, h, w)."""
        sample = drawing.sample()
        if sample.counted_images is None:
            raise UnweaveError("these codes have no images. Evaluate a run or an encoder on a data set.")
        images = sample.counted_images()
        return {"codes": sample.counted_codes, "factors": sample.counted_factors, "images": images}


NO_BLOCKS = 'it needs blocks of codes: give blocks={"content": [0, 1], "style": [2, 3]}'
NO_BLOCK_FACTORS = (
    'it needs the factors that each block should hold: give block_factors={"content": ["shape"]}'
)


@dataclass(frozen=True)
class Blocks:
    """Codes and factors of points to count on, and the dimensions of the codes that form a block."""

    def obstacle(self, source: Source) -> str | None:
        """Most methods, and arrays, have no blocks unless they are given."""
        return None if source.blocks else NO_BLOCKS

    def gather(self, drawing: Drawing) -> dict[str, Any]:
        """Codes, factors and blocks."""
        sample = drawing.sample()
        blocks = _checked_blocks(drawing.source, sample)
        return {"codes": sample.counted_codes, "factors": sample.counted_factors, "blocks": blocks}


@dataclass(frozen=True)
class HeldOutBlocks:
    """Codes and factors to fit on, others to test on, and the codes that form a block."""

    def obstacle(self, source: Source) -> str | None:
        """Most methods, and arrays, have no blocks unless they are given."""
        return None if source.blocks else NO_BLOCKS

    def gather(self, drawing: Drawing) -> dict[str, Any]:
        """Codes, factors, test and blocks."""
        blocks = _checked_blocks(drawing.source, drawing.sample())
        return {**HeldOutCodes().gather(drawing), "blocks": blocks}


@dataclass(frozen=True)
class BlocksWithFactors:
    """What `HeldOutBlocks` gathers, and which factors a block should hold."""

    def obstacle(self, source: Source) -> str | None:
        """A method that splits its codes may not know which factors belong to which part."""
        if not source.blocks:
            return NO_BLOCKS
        return None if source.block_factors else NO_BLOCK_FACTORS

    def gather(self, drawing: Drawing) -> dict[str, Any]:
        """Codes, factors, test, blocks, columns of the factors of each block, and names of all factors."""
        source, gathered = drawing.source, HeldOutBlocks().gather(drawing)
        return {**gathered, "block_factors": columns_of_blocks(source), "factor_names": source.names}


@dataclass(frozen=True)
class Swaps:
    """Codes and factors of points to count on, blocks with their factors, and a judge of decoded images."""

    def obstacle(self, source: Source) -> str | None:
        """Only a run of a data set of known factors decodes images that can be judged."""
        if source.judge is None:
            return "it needs a trained run of a data set with a grid of factors"
        return BlocksWithFactors().obstacle(source)

    def gather(self, drawing: Drawing) -> dict[str, Any]:
        """Codes, factors, blocks with the columns of their factors, names of all factors, and the judge."""
        gathered = {**BlocksWithFactors().gather(drawing), **Blocks().gather(drawing)}
        del gathered["test"]
        if drawing.source.judge is None:
            raise UnweaveError("only a trained run decodes images.")
        return {**gathered, "judge": drawing.source.judge()}


@dataclass(frozen=True)
class CircularOrbits:
    """Codes of all values of circular factors, with the other factors fixed."""

    def obstacle(self, source: Source) -> str | None:
        """Many data sets have no circular factor, and held-out combinations break orbits."""
        return NOT_RESTRICTED if source.restricted else circular_obstacle(source)

    def gather(self, drawing: Drawing) -> dict[str, Any]:
        """The representation, from which the metric draws, and the columns of the factors."""
        source = drawing.source
        representation = source.interventions(drawing.kind, many=False)
        if drawing.repeat is not None and representation.rows is not None:
            raise UnweaveError("halves of the rows would break orbits, so there is no interval.")
        return {
            "codes": None,
            "factors": None,
            "representation": representation,
            "circular": periods_of_source(source),
            "categorical": columns_of_kind(source, "categorical"),
            "factor_names": source.names,
        }


def _refuse_constant(source: Source, sample: Sample) -> None:
    """Refuse to count held-out combinations in which a factor has one value only."""
    if not source.held_out:
        return
    for j, name in enumerate(source.names):
        if (sample.counted_factors[:, j] == sample.counted_factors[0, j]).all():
            raise UnweaveError(
                "metrics that count, such as mig, cannot be measured on these held-out combinations, because "
                f'"{name}" has one value in all of them. Leave these metrics out, or use --on all.'
            )


def _checked_blocks(source: Source, sample: Sample) -> dict[str, tuple[int, ...]]:
    width = sample.counted_codes.shape[1]
    for name, codes in source.blocks.items():
        if max(codes) >= width:
            raise UnweaveError(
                f'blocks must name codes from 0 to {width - 1}; block "{name}" has {max(codes)}.'
            )
    return dict(source.blocks)


# In the order of gathering: what encodes the whole grid comes first, so that the sample is looked up in it.
REQUESTS: dict[Needs, Request] = {
    "representation": Interventions(),
    "posterior": Posteriors(),
    "likelihood": Likelihoods(),
    "density": Densities(),
    "interventions": Interventions(many=False),
    "codes": CountedCodes(),
    "codes+test": HeldOutCodes(),
    "codes+test+periods": HeldOutCircles(),
    "unsupervised": CountedCodes(looks_at_factors=False),
    "images": CountedImages(),
    "blocks": Blocks(),
    "blocks+test": HeldOutBlocks(),
    "blocks+factors": BlocksWithFactors(),
    "swaps": Swaps(),
    "orbits": CircularOrbits(),
}


def obstacle_of(needs: Needs, source: Source) -> str | None:
    """Why a source cannot give what a metric needs, or None."""
    if INPUTS[needs].needs_factors and not source.names:
        return source.no_factors
    if source.tokens is not None and "blocks" not in INPUTS[needs].arguments:
        return source.tokens.obstacle
    return REQUESTS[needs].obstacle(source)
