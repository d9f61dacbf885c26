"""What a method is: hyper-parameters, and a loss of what one forward pass gives.

Everything carries leading axes for the runs of a population, (P, B, ...) or none at all, (B, ...): a loss
is written as its paper writes it, for one model, and reduces over the last axes only.

Runs form a group, and share one call of the loss, if they are of the same method and their settings differ
in numbers only. A field annotated `Setting` is a number for one run, and a tensor of shape (P,) for a group
in which it differs. Any other field (a choice, a switch) decides what is computed and is alike in a group.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, get_args, get_type_hints

import numpy as np
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.nn.gaussian import Gaussian
from unweave.streams import Stream

Setting: TypeAlias = float | Tensor
Needs: TypeAlias = Literal["images", "labels", "groups", "pairs", "sequences"]

AUTOENCODER = "autoencoder"


class Draws(Protocol):
    """Random numbers for the current step of each run, from its own streams."""

    def normal(self, purpose: str, rows: int, columns: int) -> Tensor:
        """(..., rows, columns) standard normal numbers."""

    def permutations(self, purpose: str, rows: int, length: int) -> Tensor:
        """(..., rows, length) int64: a random order of 0 .. length - 1 in each row."""


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

    @cached_property
    def kl(self) -> Tensor:
        """(...): KL(q(z|x) || N(0, I)), mean over the batch."""
        return self.posterior.kl().mean(-1)


@dataclass(frozen=True)
class Losses:
    """What each player minimises, (...), one number a run; and what is written to the log."""

    players: Mapping[str, Tensor]
    terms: Mapping[str, Tensor]


@dataclass(frozen=True)
class Adam:
    """Settings of the optimiser (Kingma and Ba, 2015); as in TensorFlow, epsilon is not bias-corrected."""

    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8


class Build(Protocol):
    """Makes the network of a player for a population: one stream of initial weights a run."""

    def __call__(self, streams: Sequence[Stream], latents: int) -> nn.Module:
        """Networks whose parameters are (P, ...)."""


@dataclass(frozen=True)
class Player:
    """A network that is trained beside the autoencoder, with an optimiser and a loss of its own."""

    name: str
    build: Build
    adam: Adam


@dataclass(frozen=True)
class Method(ABC):
    """A frozen dataclass whose fields are the paper's hyper-parameters, with its names and defaults."""

    name: ClassVar[str]
    citation: ClassVar[str]  # BibTeX
    strength: ClassVar[str | None] = None  # the setting that studies vary
    needs: ClassVar[Needs] = "images"
    players: ClassVar[tuple[Player, ...]] = ()  # besides the autoencoder
    stochastic: ClassVar[bool] = True  # whether z is drawn from q(z|x), or is its mean

    def __post_init__(self) -> None:
        kinds = get_type_hints(type(self))
        for each in fields(self):
            value = getattr(self, each.name)
            fits, expected = _fits(value, kinds[each.name])
            if not fits:
                raise UnweaveError(
                    f"{each.name} of {self.name} must be {expected}; got {value!r}. "
                    f"The default is {each.default!r}."
                )

    @property
    def other_batch(self) -> bool:
        """Whether the loss wants the codes of a second, independent batch."""
        return False

    @abstractmethod
    def loss(self, forward: Pass) -> Losses:
        """The objective of each player."""


def elbo_terms(forward: Pass) -> dict[str, Tensor]:
    """What every variational autoencoder writes to its log; elbo = -(reconstruction + kl)."""
    kl = forward.kl
    return {"reconstruction": forward.reconstruction, "kl": kl, "elbo": -(forward.reconstruction + kl)}


def numeric_settings(method: Method | type[Method]) -> tuple[str, ...]:
    """Names of the settings in which runs of one group may differ."""
    return _numeric_fields(method if isinstance(method, type) else type(method))


@cache  # a study asks for thousands of runs
def _numeric_fields(kind: type[Method]) -> tuple[str, ...]:
    kinds = get_type_hints(kind)
    return tuple(each.name for each in fields(kind) if kinds[each.name] == Setting)


def _fits(value: object, kind: Any) -> tuple[bool, str]:
    """Whether a value is right for a field of that annotation, and what is right for it in words."""
    if kind == Setting:
        return isinstance(value, Tensor) or _is_weight(value), "a number >= 0"
    if kind is bool:
        return isinstance(value, bool), "True or False"
    choices = get_args(kind)
    return value in choices, " or ".join(repr(choice) for choice in choices)


def _is_weight(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return 0 <= float(value) < math.inf
