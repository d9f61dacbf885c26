"""What a method's losses are computed from at one step, and what they return.

Tensors carry leading axes for the runs of a population, (P, B, ...), or none at all, (B, ...).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.nn.distributions.gaussian import Gaussian

Part = TypeVar("Part")
Network = TypeVar("Network", bound=nn.Module)


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
class LabelledBatch:
    """A batch from a fixed set of labelled images."""

    images: Tensor  # (..., B, c, h, w) bytes
    labels: Tensor  # (..., B, k) int64
    index: Tensor  # (..., B) int64: row numbers in the labelled set

    def tensors(self) -> list[Tensor]:
        """All its tensors, in a fixed order."""
        return [self.images, self.labels, self.index]

    def of_runs(self, runs: slice) -> LabelledBatch:
        """The part of some runs of a population."""
        return LabelledBatch(self.images[runs], self.labels[runs], self.index[runs])


@dataclass(frozen=True)
class Batch:
    """The data of one step; see sampling.py for the order of images. Images are bytes, (..., B, c, h, w)."""

    images: Tensor
    labels: Tensor | None = None  # (..., B, k) int64, where the images have labels
    labelled: LabelledBatch | None = None

    def tensors(self) -> list[Tensor]:
        """All its tensors, in a fixed order."""
        labels = [] if self.labels is None else [self.labels]
        labelled = [] if self.labelled is None else self.labelled.tensors()
        return [self.images, *labels, *labelled]

    def of_runs(self, runs: slice) -> Batch:
        """The part of some runs of a population."""
        labels = None if self.labels is None else self.labels[runs]
        labelled = None if self.labelled is None else self.labelled.of_runs(runs)
        return Batch(self.images[runs], labels, labelled)


@dataclass(frozen=True)
class LabelledCodes:
    """Posteriors of labelled images, by the shared encoder."""

    posterior: Gaussian  # q(z|x), (..., B, D)
    labels: Tensor  # (..., B, k) int64
    sizes: tuple[int, ...]  # (k): how many values each label has

    def of_runs(self, runs: slice) -> LabelledCodes:
        """The part of some runs of a population."""
        return replace(self, posterior=self.posterior[runs], labels=self.labels[runs])


@dataclass(frozen=True)
class Forward:
    """One pass through the shared encoder and decoder.

    On a GPU the decoder may still be at work when a method computes its losses: `decoded` is then the event
    at which it is done, and `reconstruction` waits for it. Methods that use it last gain by that.
    """

    reconstruction_loss: Tensor  # `reconstruction`, perhaps not computed yet
    posterior: Gaussian  # q(z|x), (..., B, D)
    sample: Tensor  # (..., B, D): one z for each x
    # (..., B, D): codes of a second batch, where the method asks for one; no gradient flows through them.
    second_sample: Tensor | None = None
    labelled: LabelledCodes | None = None  # of the batch of labelled images, where there is one
    known_kl: Tensor | None = None  # `kl`, where it has been computed already
    decoded: torch.cuda.Event | None = None

    @property
    def reconstruction(self) -> Tensor:
        """(...): -E log p(x|z), summed over pixels, mean over the batch."""
        if self.decoded is not None:
            torch.cuda.current_stream().wait_event(self.decoded)
        return self.reconstruction_loss

    @property
    def kl(self) -> Tensor:
        """(...): KL(q(z|x) || N(0, I)), mean over the batch."""
        return self.posterior.kl().mean(-1) if self.known_kl is None else self.known_kl


@dataclass(frozen=True)
class StepContext:
    """Everything that the losses of one step may use."""

    batch: Batch
    networks: Mapping[
        str, nn.Module
    ]  # of the method's players, by name; those that have not started are absent
    draws: Draws
    step: Tensor | int = 0  # how many updates were made before this one
    steps: Tensor | int = 1  # the total number of updates: one number, or one per run, (P,)
    data_size: int = 1  # N, the number of images in the data set
    likelihood: str = "bernoulli"
    turn: tuple[str, ...] | None = None  # the players to update now; None: all of them
    shared_pass: Forward | None = field(default=None, repr=False)

    def is_turn_of(self, player: str) -> bool:
        """Whether the player's objective is needed now."""
        return self.turn is None or player in self.turn

    @property
    def forward(self) -> Forward:
        """The pass through the shared encoder and decoder."""
        return _required(self.shared_pass, "a pass through the shared encoder and decoder")

    @property
    def labels(self) -> Tensor:
        """(..., B, k): the labels of the batch's images."""
        return _required(self.batch.labels, "labels of the images")

    @property
    def labelled(self) -> LabelledBatch:
        """The batch of labelled images."""
        return _required(self.batch.labelled, "a batch of labelled images")

    @property
    def labelled_codes(self) -> LabelledCodes:
        """The posteriors of the batch of labelled images."""
        return _required(self.forward.labelled, "a batch of labelled images")

    @property
    def second_sample(self) -> Tensor:
        """(..., B, D): the codes of a second, independent batch."""
        return _required(self.forward.second_sample, "the codes of a second batch")

    def network(self, name: str, kind: type[Network]) -> Network:
        """The network of a player, which must be of this class."""
        return network_of(self.networks, name, kind)


def growth(step: StepContext, updates: float | Tensor, share: float, like: Tensor) -> Tensor:
    """How far a schedule of so many updates is before this update: from 0 to 1, () or (P,).

    A run that is shorter than the schedule would never complete it. There the schedule takes a share of the
    run's steps. `like` has the type and device of the result.
    """
    step_number, steps = (
        torch.as_tensor(number, dtype=like.dtype, device=like.device) for number in (step.step, step.steps)
    )
    growing = torch.where(steps < updates, step_number / (share * steps), step_number / updates)
    return growing.clamp(max=1)


@dataclass(frozen=True)
class Losses:
    """The objective of each player, (...), one number per run, and the terms to log."""

    players: Mapping[str, Tensor]
    terms: Mapping[str, Tensor]


def network_of(networks: Mapping[str, nn.Module], name: str, kind: type[Network]) -> Network:
    """The network of that name, which must be of this class."""
    network = networks[name]
    if not isinstance(network, kind):
        raise UnweaveError(
            f'the network "{name}" must be made from {kind.__name__}; got {type(network).__name__}.'
        )
    return network


def elbo_terms(forward: Forward) -> dict[str, Tensor]:
    """The terms that every variational autoencoder logs; elbo = -(reconstruction + kl)."""
    kl = forward.kl
    return {"reconstruction": forward.reconstruction, "kl": kl, "elbo": -(forward.reconstruction + kl)}


def _required(value: Part | None, what: str) -> Part:
    if value is None:
        raise UnweaveError(f"the losses of this method need {what}; got none.")
    return value
