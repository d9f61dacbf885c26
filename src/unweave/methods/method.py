"""What a method is: hyper-parameters, and a loss of what one forward pass gives.

Most methods are autoencoders: they share the networks and the forward pass, and differ in the loss. A method
with networks of its own, such as a GAN, says itself how they are built, what each of its players minimises,
and how they encode and decode.

Everything carries leading axes for the runs of a population, (P, B, ...) or none at all, (B, ...): a loss
is written as its paper writes it, for one model, and reduces over the last axes only.

Runs form a group, and share one call of the loss, if they are of the same method and their settings differ
in numbers only. A field annotated `Setting` is a number for one run, and a tensor of shape (P,) for a group
in which it differs. Any other field (a choice, a switch) decides what is computed and is alike in a group.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Protocol, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.methods.supply import Images, Supply
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.networks.architectures import build_decoder, build_encoder
from unweave.nn.networks.vae import Decoder, Discriminator, Encoder
from unweave.nn.optimiser import Adam as Adam  # exported: methods give them to their players
from unweave.nn.optimiser import AdamW as AdamW
from unweave.nn.optimiser import Optimiser
from unweave.streams import Stream

Setting: TypeAlias = float | Tensor

AUTOENCODER = "autoencoder"


class Draws(Protocol):
    """Random numbers for the current step of each run, from its own streams."""

    def normal(self, purpose: str, rows: int, columns: int) -> Tensor:
        """(..., rows, columns) standard normal numbers."""

    def uniform(self, purpose: str, rows: int, columns: int) -> Tensor:
        """(..., rows, columns) numbers from 0 to 1."""

    def integers(self, purpose: str, rows: int, sizes: Sequence[int]) -> Tensor:
        """(..., rows, len(sizes)) int64: whole numbers from 0 to size - 1."""

    def permutations(self, purpose: str, rows: int, length: int) -> Tensor:
        """(..., rows, length) int64: a random order of 0 .. length - 1 in each row."""


@dataclass(frozen=True)
class Batch:
    """What a step learns from; see supply.py for the order of images. Images are bytes, (..., B, c, h, w)."""

    images: Tensor
    labels: Tensor | None = None  # (..., B, k) int64, where the images have labels
    # Of a second batch, from a fixed set of labelled points: images, labels (..., B, k), places in the set.
    labelled_images: Tensor | None = None
    labelled_labels: Tensor | None = None
    labelled_index: Tensor | None = None  # (..., B) int64

    def tensors(self) -> list[Tensor]:
        """All that are there."""
        found = (getattr(self, each.name) for each in fields(self))
        return [tensor for tensor in found if tensor is not None]

    def of_runs(self, runs: slice) -> Batch:
        """The part of some runs of a population."""
        there = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(self, **{name: tensor[runs] for name, tensor in there.items() if tensor is not None})


@dataclass(frozen=True)
class Labelled:
    """What the encoder says of labelled images."""

    posterior: Gaussian  # q(z|x), (..., B, D)
    labels: Tensor  # (..., B, k) int64
    sizes: tuple[int, ...]  # (k): how many values each label has

    def of_runs(self, runs: slice) -> Labelled:
        """The part of some runs of a population."""
        return Labelled(self.posterior[runs], self.labels[runs], self.sizes)


@dataclass(frozen=True)
class Pass:
    """What one forward pass through encoder and decoder gives."""

    reconstruction: Tensor  # (...): -E log p(x|z), summed over pixels, mean over the batch
    posterior: Gaussian  # q(z|x), (..., B, D)
    sample: Tensor  # (..., B, D): one z for each x
    step: Tensor | int  # how many updates were made before this one
    data_size: int  # N, the number of images in the data set
    draws: Draws
    networks: Mapping[str, nn.Module] = field(default_factory=dict)  # the method's other players
    # (..., B, D): codes of a second batch, where a method asks for it; nothing is learned through them.
    other_sample: Tensor | None = None
    labelled: Labelled | None = None  # of the method's labelled images
    known_kl: Tensor | None = None  # `kl`, where it has been computed already

    @property
    def kl(self) -> Tensor:
        """(...): KL(q(z|x) || N(0, I)), mean over the batch."""
        return self.posterior.kl().mean(-1) if self.known_kl is None else self.known_kl


@dataclass(frozen=True)
class Losses:
    """What each player minimises, (...), one number a run; and what is written to the log."""

    players: Mapping[str, Tensor]
    terms: Mapping[str, Tensor]


@dataclass(frozen=True)
class Blueprint:
    """What networks are built for: one stream of initial weights a run, and the shapes of data and code."""

    streams: Sequence[Stream]
    shape: tuple[int, int, int]  # (c, h, w) of an image
    latents: int
    architecture: str = "released"
    label_sizes: tuple[int, ...] = ()  # how many values each label has, where the method is given labels
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
    run's schedule. The run's warm-up applies to all players. Before the share `starts` of the steps it rests:
    it is not among the networks and costs nothing. If it is `precise`, it computes in tf32 where the others
    of a run compute in bf16.
    """

    name: str
    build: Callable[[Blueprint], nn.Module]
    optimiser: Optimiser | None = None
    starts: Setting = 0.0
    precise: bool = False
    schedule: str | None = None


@dataclass(frozen=True)
class Moment:
    """Where training stands, for a method with networks of its own."""

    step: Tensor | int  # how many updates were made before this one
    data_size: int  # N, the number of images in the data set
    draws: Draws
    likelihood: str
    steps: Tensor | int = 1  # how many updates there will be: a number, or one a run, (P,)
    turn: tuple[str, ...] | None = None  # the players that will move now; None: all of them

    def is_turn_of(self, player: str) -> bool:
        """Whether its objective is asked for."""
        return self.turn is None or player in self.turn


@dataclass(frozen=True)
class Method(ABC):
    """A frozen dataclass whose fields are the paper's hyper-parameters, with its names and defaults."""

    name: ClassVar[str]
    citation: ClassVar[str]  # BibTeX
    strength: ClassVar[str | None] = None  # the setting that studies vary
    least: ClassVar[Mapping[str, int]] = {}  # how small settings that are whole numbers may be, if not 0

    def __post_init__(self) -> None:
        kinds = _hints(type(self))
        for each in fields(self):
            value = getattr(self, each.name)
            fits, expected = _fits(value, kinds[each.name])
            if fits and each.name in self.least:
                smallest = self.least[each.name]
                fits, expected = value >= smallest, f"at least {smallest}"
            if not fits:
                raise UnweaveError(
                    f"{each.name} of {self.name} must be {expected}; got {value!r}. "
                    f"The default is {each.default!r}."
                )

    @property
    def players(self) -> tuple[Player, ...]:
        """The networks with a loss of their own; of an autoencoder, those besides itself."""
        return ()

    @property
    def supply(self) -> Supply:
        """What it learns from."""
        return Images()

    @property
    def stochastic(self) -> bool:
        """Whether z is drawn from q(z|x), or is its mean."""
        return True

    @property
    def exact_weights(self) -> bool:
        """Whether its loss looks at weights themselves, whose rounding to bfloat16 it does not bear."""
        return False

    def content_dimensions(self, latents: int) -> int:  # noqa: ARG002
        """How many dimensions, the first ones, are content, and the rest style; 0 where there is no split."""
        return 0

    @abstractmethod
    def networks(self, plan: Blueprint) -> dict[str, nn.Module]:
        """The networks that `encode` and `decode` need, by the names of their weights."""

    @abstractmethod
    def encode(self, networks: Mapping[str, nn.Module], images: Tensor) -> Gaussian:
        """q(z|x) of images (P, B, c, h, w), (P, B, D): what scores are computed of."""

    @abstractmethod
    def decode(self, networks: Mapping[str, nn.Module], codes: Tensor) -> Tensor:
        """Logits (P, B, c, h, w) of codes (P, B, D)."""


class Autoencoder(Method):
    """A method that trains the usual encoder and decoder, by a loss of what one pass through them gives."""

    @property
    def other_batch(self) -> bool:
        """Whether the loss wants the codes of a second, independent batch."""
        return False

    def merged(self, posterior: Gaussian, labels: Tensor | None) -> Gaussian:  # noqa: ARG002
        """The posteriors that codes are drawn from: groups and pairs may share theirs.

        `labels` (..., B, k) are there if the method's supply says that it is told them.
        """
        return posterior

    @abstractmethod
    def loss(self, forward: Pass) -> Losses:
        """The objective of each player."""

    def networks(self, plan: Blueprint) -> dict[str, nn.Module]:
        """The usual encoder and decoder."""
        return {"encoder": plan.encoder(), "decoder": plan.decoder()}

    def encode(self, networks: Mapping[str, nn.Module], images: Tensor) -> Gaussian:
        """q(z|x)."""
        posterior: Gaussian = networks["encoder"](images)
        return posterior

    def decode(self, networks: Mapping[str, nn.Module], codes: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = networks["decoder"](codes)
        return logits


class OwnNetworks(Method):
    """A method with networks of its own: all of them are its players'."""

    @property
    def turns(self) -> tuple[tuple[str, ...], ...]:
        """Who moves together, one turn after another, in one update: all at once, if it does not say else.

        Each turn has its own forward pass, with the same batch and draws, and networks as the last turn left
        them. A player may have several turns.
        """
        return (tuple(player.name for player in self.players),)

    @abstractmethod
    def losses(self, batch: Batch, networks: Mapping[str, nn.Module], moment: Moment) -> Losses:
        """The objective of each player whose turn it is, and, in the first turn, the terms for the log.

        The networks are under the players' names; those of players that rest are not among them.
        """

    def networks(self, plan: Blueprint) -> dict[str, nn.Module]:
        """Those of all players."""
        return {player.name: player.build(plan) for player in self.players}


def code_discriminator(width: int = 1000, depth: int = 6) -> Callable[[Blueprint], Discriminator]:
    """How a discriminator of codes is built."""
    return lambda plan: Discriminator(plan.streams, plan.latents, width, depth)


def elbo_terms(forward: Pass) -> dict[str, Tensor]:
    """What every variational autoencoder writes to its log; elbo = -(reconstruction + kl)."""
    kl = forward.kl
    return {"reconstruction": forward.reconstruction, "kl": kl, "elbo": -(forward.reconstruction + kl)}


def numeric_settings(method: Method | type[Method]) -> tuple[str, ...]:
    """Names of the settings in which runs of one group may differ."""
    return _numeric_fields(method if isinstance(method, type) else type(method))


@cache  # a study asks for thousands of runs
def _hints(kind: type[Method]) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _numeric_fields(kind: type[Method]) -> tuple[str, ...]:
    kinds = _hints(kind)
    return tuple(each.name for each in fields(kind) if kinds[each.name] == Setting)


def _fits(value: object, kind: Any) -> tuple[bool, str]:
    """Whether a value is right for a field of that annotation, and what is right for it in words."""
    if kind == Setting:
        return isinstance(value, Tensor) or _is_weight(value), "a number >= 0"
    if kind is bool:
        return isinstance(value, bool), "True or False"
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0, "a whole number >= 0"
    if kind is str:
        return isinstance(value, str), "a text"
    if get_origin(kind) in (Union, UnionType):
        parts = [_fits(value, part) for part in get_args(kind)]
        return any(fits for fits, _ in parts), " or ".join(expected for _, expected in parts)
    choices = get_args(kind)
    return value in choices, " or ".join(repr(choice) for choice in choices)


def _is_weight(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return 0 <= float(value) < math.inf
