"""What a method is: hyper-parameters, and a loss of what one forward pass gives.

Everything carries leading axes for the runs of a population, (P, B, ...) or none at all, (B, ...): a loss
is written as its paper writes it, for one model, and reduces over the last axes only. Hyper-parameters are
numbers, or tensors of shape (P,) when runs with different settings train together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from torch import Tensor, nn

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
    other_sample: Tensor | None = None  # (..., B, D): codes of a second batch, where a method asks for it


@dataclass(frozen=True)
class Losses:
    """What each player minimises, (...), one number a run; and what is written to the log."""

    players: Mapping[str, Tensor]
    terms: Mapping[str, Tensor]


@dataclass(frozen=True)
class Adam:
    """Settings of the optimiser (Kingma and Ba, 2015), in TensorFlow's form: epsilon is outside of the
    bias correction.
    """

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


class Method(Protocol):
    """A frozen dataclass: its fields are the paper's hyper-parameters, with the paper's names and defaults."""

    name: ClassVar[str]
    citation: ClassVar[str]
    needs: ClassVar[Needs]
    players: ClassVar[tuple[Player, ...]]  # besides the autoencoder
    stochastic: ClassVar[bool]  # whether z is drawn from q(z|x), or is its mean
    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def other_batch(self) -> bool:
        """Whether the loss wants the codes of a second, independent batch."""

    def loss(self, forward: Pass) -> Losses:
        """The objective of each player."""
