"""How the learning rate changes over the steps of a run."""

from __future__ import annotations

import math
from collections.abc import Callable
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


def rate_share(schedule: str, step: Tensor, steps: Tensor, warmup: float = 0.0) -> Tensor:
    """Share of the learning rate at a step (from 0).

    During the first share `warmup` of the steps it rises linearly from 0 to 1. The schedule then runs over
    the remaining steps.
    """
    curve, t = schedule_named(schedule), step / steps
    if warmup == 0:
        return curve(t)
    return (t / warmup).clamp_max(1) * curve(((t - warmup) / (1 - warmup)).clamp_min(0))
