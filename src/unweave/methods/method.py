"""What a method is: hyper-parameters, the networks it trains, and the losses of one step.

Most methods train the architecture's encoder and decoder and differ in their losses only. Such methods share
one forward pass in a population. A method with `own_networks`, such as a GAN, builds all of its networks as
players.

Everything carries leading axes for the runs of a population, (P, B, ...) or none at all, (B, ...): a loss
is written as its paper writes it, for one model, and reduces over the last axes only.

Runs form a group, and share one call of the losses, if they are of the same method and their settings differ
in numbers only. A field annotated `Setting` is a number for one run, and a tensor of shape (P,) for a group
in which it differs. Any other field (a choice, a switch) decides what is computed and is equal in a group.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.methods.sampling import Images, Sampling
from unweave.methods.step import Batch as Batch  # exported with the types below: a method imports one module
from unweave.methods.step import Draws as Draws
from unweave.methods.step import Forward as Forward
from unweave.methods.step import LabelledCodes as LabelledCodes
from unweave.methods.step import Losses as Losses
from unweave.methods.step import StepContext as StepContext
from unweave.methods.step import elbo_terms as elbo_terms
from unweave.methods.step import growth as growth
from unweave.nn.distributions.gaussian import Gaussian, certain
from unweave.nn.networks.architectures import build_decoder, build_encoder
from unweave.nn.networks.coding import Decodes, Encodes, Generates
from unweave.nn.networks.vae import Decoder, Discriminator, Encoder
from unweave.nn.optimiser import Adam as Adam
from unweave.nn.optimiser import AdamW as AdamW
from unweave.nn.optimiser import Optimiser
from unweave.nn.schedule import Schedule
from unweave.streams import Stream

Setting: TypeAlias = float | Tensor

AUTOENCODER = "autoencoder"


@dataclass(frozen=True)
class Blueprint:
    """What networks are built from: a stream of initial weights per run, and the shapes of data and code."""

    streams: Sequence[Stream]
    shape: tuple[int, int, int]  # (c, h, w) of an image
    latents: int
    architecture: str = "released"
    label_sizes: tuple[int, ...] = ()  # how many values each label has, where the method gets labels
    likelihood: str = "bernoulli"

    def encoder(self) -> Encoder:
        """The architecture's encoder."""
        return build_encoder(self.streams, self.shape, self.latents, self.architecture)

    def decoder(self) -> Decoder:
        """The architecture's decoder, with the outputs that the likelihood needs."""
        return build_decoder(self.streams, self.shape, self.latents, self.architecture, self.likelihood)


@dataclass(frozen=True)
class Player:
    """A network that is trained with an optimiser and a loss of its own; its parameters are (P, ...).

    Without an optimiser of its own it uses the run's, with the run's learning rate; without a schedule, the
    run's schedule. A schedule is a name, or, in a method with `own_networks`, a function of the elapsed share
    of the steps. The run's warm-up applies to all players. It starts after the share `starts` of the steps;
    before, its networks are absent and cost nothing. A `precise` player
    computes in tf32 where the other players of a run compute in bf16.

    With an `average`, the decay of an exponential moving average, the trained weights are that average; the
    losses get the current weights. An update whose gradient has a norm of `skip_above` or more, before it is
    clipped, or one that is not finite, is skipped, and with it those of the method's other players in the
    same turn. Both are off at 0.
    """

    name: str
    build: Callable[[Blueprint], nn.Module]
    optimiser: Optimiser | None = None
    starts: Setting = 0.0
    precise: bool = False
    schedule: str | Schedule | None = None
    average: Setting = 0.0
    skip_above: Setting = 0.0


@dataclass(frozen=True)
class Phase:
    """Another objective of a player's network, with an optimiser and moments of its own.

    Adam divides a gradient by its root mean square, so one optimiser of a sum follows the term with the
    largest gradient. With phases, the scales of the objectives do not matter. `trains` is the name of a
    player, or of a part of its network, such as "autoencoder.encoder". The learning rate is `rate` times that
    of the optimiser, or, without one, of the run. `turns` and `Losses.players` name phases like players.
    """

    name: str
    trains: str
    optimiser: Optimiser | None = None
    rate: Setting = 1.0


@dataclass(frozen=True)
class Method(ABC):
    """A frozen dataclass whose fields are the paper's hyper-parameters, with its names and defaults."""

    name: ClassVar[str]
    citation: ClassVar[str]  # BibTeX
    strength: ClassVar[str | None] = None  # the setting that studies vary
    least: ClassVar[Mapping[str, int]] = {}  # how small settings that are whole numbers may be, if not 0
    # False: trains the architecture's encoder and decoder, which all such methods of a population share.
    # True: all its networks are those of its players.
    own_networks: ClassVar[bool] = False
    # Whether a prior sets the scale of the codes. Otherwise metrics that depend on it get standardised codes.
    has_prior: ClassVar[bool] = True
    # Whether each code of an image is one of a few values, which metrics may count.
    discrete_codes: ClassVar[bool] = False
    # Whether a page of the explorer can compute the decoder. To trace one that is too large takes minutes.
    exportable: ClassVar[bool] = True
    # Images that a trained run encodes or decodes at once; few where each needs much memory.
    largest_batch: ClassVar[int] = 4096
    # Fields of RunSpec whose defaults differ for this method, such as {"steps": 150_000}.
    run_defaults: ClassVar[Mapping[str, Any]] = {}
    # Settings that the first version of the method lacked. Specs state them only where they differ from their
    # defaults, so that the ids of older runs stay the same.
    added: ClassVar[frozenset[str]] = frozenset()
    renamed: ClassVar[Mapping[str, str]] = {}  # earlier names of settings, which older specs have

    def __post_init__(self) -> None:
        kinds = _hints(type(self))
        for setting in fields(self):
            value = getattr(self, setting.name)
            fits, expected = _fits(value, kinds[setting.name])
            if fits and setting.name in self.least and isinstance(value, int):
                smallest = self.least[setting.name]
                fits, expected = value >= smallest, f"at least {smallest}"
            if not fits:
                raise UnweaveError(
                    f"{setting.name} of {self.name} must be {expected}; got {value!r}. "
                    f"The default is {setting.default!r}."
                )

    @property
    def players(self) -> tuple[Player, ...]:
        """The networks with an objective of their own; besides the shared autoencoder, where there is one."""
        return ()

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Further objectives of the players' networks, for methods with networks of their own."""
        return ()

    @property
    def turns(self) -> tuple[tuple[str, ...], ...]:
        """Which players are updated together, turn after turn, in one update; by default all at once.

        Each turn has its own forward pass, with the same batch and draws, and networks as the last turn left
        them. A player may have several turns. Turns are for methods with networks of their own.
        """
        names = [player.name for player in self.players] + [phase.name for phase in self.phases]
        return (tuple(names),)

    @property
    def sampling(self) -> Sampling:
        """How batches are sampled: single images, pairs, groups, sequences, or some with labels."""
        return Images()

    @property
    def second_batch_needed(self) -> bool:
        """Whether the losses need the codes of a second, independent batch."""
        return False

    @property
    def stochastic(self) -> bool:
        """Whether z is drawn from q(z|x), or is its mean."""
        return True

    @property
    def has_divergence(self) -> bool:
        """Whether codes are drawn from q(z|x) and have a prior, so that a KL divergence means something."""
        return self.stochastic and self.has_prior

    @property
    def exact_weights(self) -> bool:
        """Whether the losses depend on the weights themselves, which must then stay float32."""
        return False

    @property
    def exact_products(self) -> bool:
        """Whether products of TF32 are too rough, so that float32 is the default precision on a GPU."""
        return False

    def content_dimensions(self, latents: int) -> int:  # noqa: ARG002
        """How many dimensions, the first ones, are content, and the rest style; 0 where there is no split."""
        return 0

    def code_blocks(self, latents: int) -> Mapping[str, Sequence[int]]:
        """The dimensions of each block, such as content and style, by its name; empty without blocks.

        Scores of blocks use them. The block that holds the labelled or shared factors is called "content".
        """
        content = self.content_dimensions(latents)
        if not 0 < content < latents:
            return {}
        return {"content": range(content), "style": range(content, latents)}

    def trained_blocks(
        self,
        networks: Mapping[str, nn.Module],  # noqa: ARG002
        latents: int,
    ) -> Mapping[str, Sequence[int]]:
        """The blocks of a trained run: `code_blocks`, unless they depend on what was learned."""
        return self.code_blocks(latents)

    def code_layers(
        self,
        networks: Mapping[str, nn.Module],
        images: Tensor,
        draws: Draws | None = None,  # noqa: ARG002
    ) -> Mapping[str, Gaussian]:
        """q(z|x) of images (P, B, c, h, w) by layers or blocks; empty for one code without parts.

        Of a hierarchy, all layers by their names, the top one first, where `encode` may give a choice of
        latents. Each is (P, B, ...). Layers of one resolution share what is before the slash: 8x8/1, 8x8/2.
        A layer is given the means of the layers above or, with `draws`, latents that are drawn.
        """
        posterior = self.encode(networks, images)
        blocks = self.trained_blocks(networks, posterior.mean.shape[-1])
        return {name: posterior[..., list(codes)] for name, codes in blocks.items()}

    def code_notes(self, networks: Mapping[str, nn.Module]) -> tuple[str, ...]:  # noqa: ARG002
        """What readers of scores must know about the codes of a trained run."""
        return ()

    def codes_without_prior(self, latents: int) -> Sequence[int]:
        """The codes whose scale no prior sets: none or all of them, unless the method says otherwise."""
        return () if self.has_prior else range(latents)

    def has_samples(self, latents: int) -> bool:
        """Whether `from_prior` draws images from the distribution that is trained."""
        return not len(self.codes_without_prior(latents))

    def merged(self, posterior: Gaussian, labels: Tensor | None) -> Gaussian:  # noqa: ARG002
        """The posteriors that codes are drawn from: images of a pair or group may share theirs.

        For methods on the shared autoencoder. `labels` (..., B, k) is None unless `sampling` asks for labels.
        """
        return posterior

    def initialise(self, step: StepContext) -> None:  # noqa: B027
        """Set initial weights that depend on data; called once before the first update, without gradients.

        `step` has the batch of the first update. By default nothing depends on data. The weights of dense
        layers must not be set here unless the method has `exact_weights`.
        """

    @abstractmethod
    def losses(self, step: StepContext) -> Losses:
        """The objective of each player, and the terms to log.

        On the shared autoencoder, `step.forward` is the pass through it, and its objective has the name
        AUTOENCODER. With turns, only the objectives of the players of `step.turn` are needed, and the terms
        of the first turn are logged.
        """

    def networks(self, plan: Blueprint) -> dict[str, nn.Module]:
        """The networks that `encode` and `decode` need, by the names of their weights."""
        if self.own_networks:
            return {player.name: player.build(plan) for player in self.players}
        return {"encoder": plan.encoder(), "decoder": plan.decoder()}

    def encode(self, networks: Mapping[str, nn.Module], images: Tensor) -> Gaussian:
        """q(z|x) of images (P, B, c, h, w), (P, B, D): the codes that are scored.

        A method that is not `stochastic` never trains the variances of an architecture's encoder.
        """
        for network in networks.values():
            if isinstance(network, Encoder) and not self.stochastic:
                return certain(network.encode(images).mean)
            if isinstance(network, Encodes):
                return network.encode(images)
        raise UnweaveError(f"no network of {self.name} encodes images. One of them needs encode(images).")

    def decode(self, networks: Mapping[str, nn.Module], codes: Tensor) -> Tensor:
        """Decoder output (P, B, k c, h, w), mostly logits, of codes (P, B, D)."""
        for network in networks.values():
            if isinstance(network, Decodes):
                return network.decode(codes)
        raise UnweaveError(f"no network of {self.name} decodes codes. One of them needs decode(codes).")

    def all_latents(self, networks: Mapping[str, nn.Module], latents: int) -> int:  # noqa: ARG002
        """How many latents a run has in all, of which its codes may be a choice."""
        return latents

    def encode_all(self, networks: Mapping[str, nn.Module], images: Tensor) -> Tensor:
        """The mean codes of all latents, (P, B, all latents): those of `encode`, unless they are a choice."""
        return self.encode(networks, images).mean

    def decode_all(self, networks: Mapping[str, nn.Module], codes: Tensor) -> Tensor:
        """Decoder output of codes of all latents, (P, B, all latents)."""
        return self.decode(networks, codes)

    def prior_size(self, networks: Mapping[str, nn.Module], latents: int) -> int:
        """How many standard normal numbers `from_prior` takes for an image."""
        generator = _generator(networks)
        return self.all_latents(networks, latents) if generator is None else generator.drawn

    def from_prior(self, networks: Mapping[str, nn.Module], numbers: Tensor) -> Tensor:
        """Decoder output of (P, B, prior size) standard normal numbers.

        They are codes, unless a network makes images of other numbers.
        """
        generator = _generator(networks)
        return self.decode_all(networks, numbers) if generator is None else generator.from_normal(numbers)

    def latent_levels(self, networks: Mapping[str, nn.Module], latents: int) -> Mapping[str, int]:  # noqa: ARG002
        """How many of all latents enter the decoder at each level, the coarsest first; empty without levels.

        Swaps take the first levels from one image and the others from another.
        """
        return {}


def _generator(networks: Mapping[str, nn.Module]) -> Generates | None:
    """The network that makes images of other numbers than codes, if there is one."""
    return next((network for network in networks.values() if isinstance(network, Generates)), None)


def code_discriminator(width: int = 1000, depth: int = 6) -> Callable[[Blueprint], Discriminator]:
    """A function that builds a discriminator of codes."""
    return lambda plan: Discriminator(plan.streams, plan.latents, width, depth)


def numeric_settings(method: Method | type[Method]) -> tuple[str, ...]:
    """Names of the settings in which runs of one group may differ."""
    return _numeric_fields(method if isinstance(method, type) else type(method))


@cache  # a study creates thousands of methods
def _hints(kind: type[Method]) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _numeric_fields(kind: type[Method]) -> tuple[str, ...]:
    kinds = _hints(kind)
    return tuple(setting.name for setting in fields(kind) if Setting in _alternatives(kinds[setting.name]))


def is_known_type(kind: Any) -> bool:
    """Whether a setting may have this type: Setting, bool, int, str, Literal, or one of several of these."""
    known = (Setting, bool, int, str)
    return all(part in known or get_origin(part) is Literal for part in _alternatives(kind))


def _alternatives(kind: Any) -> tuple[Any, ...]:
    """The types of which a field may be, with numbers that may be tensors as one of them."""
    if get_origin(kind) not in (Union, UnionType):
        return (kind,)
    numeric, parts = get_args(Setting), get_args(kind)
    if not set(numeric) <= set(parts):
        return parts
    return Setting, *(part for part in parts if part not in numeric)


def _fits(value: object, kind: Any) -> tuple[bool, str]:
    """Whether a value fits the annotation of a field, and a description of the values that do."""
    if kind == Setting:
        return isinstance(value, Tensor) or _is_weight(value), "a number >= 0"
    if kind is bool:
        return isinstance(value, bool), "True or False"
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0, "a whole number >= 0"
    if kind is str:
        return isinstance(value, str), "a text"
    if get_origin(kind) in (Union, UnionType):
        parts = [_fits(value, part) for part in _alternatives(kind)]
        return any(fits for fits, _ in parts), " or ".join(expected for _, expected in parts)
    choices = get_args(kind)
    return value in choices, " or ".join(repr(choice) for choice in choices)


def _is_weight(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return 0 <= float(value) < math.inf
