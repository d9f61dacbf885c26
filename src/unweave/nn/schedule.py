"""How the learning rate changes over the steps of a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor

from unweave.errors import UnweaveError, did_you_mean

Schedule: TypeAlias = Callable[[Tensor], Tensor]


def constant(t: Tensor) -> Tensor:
    """1 at all times."""
    return torch.ones_like(t)


def linear(t: Tensor) -> Tensor:
    """1 - t."""
    return 1 - t


def cosine(t: Tensor) -> Tensor:
    """(1 + cos(pi t)) / 2."""
    return (1 + torch.cos(math.pi * t)) / 2


# Each maps t, the elapsed share of the steps from 0 to 1, to the share of the learning rate.
SCHEDULES: dict[str, Schedule] = {"constant": constant, "linear": linear, "cosine": cosine}


def schedule_named(name: str) -> Schedule:
    """The schedule of that name."""
    if name not in list(SCHEDULES):
        raise UnweaveError(f'there is no schedule "{name}". {did_you_mean(str(name), SCHEDULES)}')
    return SCHEDULES[name]


@dataclass(frozen=True)
class CosineStages:
    """Two cosines, one for each stage of a training; the second stage begins at the share `boundary`.

    In a stage the share goes from its first to its last number as (1 + cos(pi u)) / 2 goes from 1 to 0, u
    being the elapsed share of the stage. `boundary` is a number, or a tensor with one for each run.
    """

    boundary: float | Tensor = field(repr=False)  # runs of one population may differ in it
    first: tuple[float, float]
    second: tuple[float, float]

    def __call__(self, t: Tensor) -> Tensor:
        """The share of the learning rate at the elapsed share t of all steps."""
        early = _between(self.first, t / self.boundary)
        late = _between(self.second, (t - self.boundary) / (1 - self.boundary))
        return torch.where(t < self.boundary, early, late)


def _between(ends: tuple[float, float], u: Tensor) -> Tensor:
    """From the first of both ends at u = 0 to the second one at u = 1."""
    return ends[1] + (ends[0] - ends[1]) * cosine(u)


def curve_of(schedule: str | Schedule) -> Schedule:
    """The schedule of that name, or the schedule itself."""
    return schedule_named(schedule) if isinstance(schedule, str) else schedule


def rate_share(schedule: str | Schedule, step: Tensor, steps: Tensor, warmup: float = 0.0) -> Tensor:
    """Share of the learning rate at a step (from 0).

    During the first share `warmup` of the steps it rises linearly from 0 to 1. A schedule with a name then
    runs over the remaining steps. A schedule that is a function always runs over all steps, because its
    stages are those of the method.
    """
    curve, t = curve_of(schedule), step / steps
    if warmup == 0:
        return curve(t)
    elapsed = ((t - warmup) / (1 - warmup)).clamp_min(0) if isinstance(schedule, str) else t
    return (t / warmup).clamp_max(1) * curve(elapsed)


def is_always_one(schedule: str | Schedule, warmup: float = 0.0) -> bool:
    """Whether `rate_share` is 1 at all steps."""
    return warmup == 0 and curve_of(schedule) is constant
