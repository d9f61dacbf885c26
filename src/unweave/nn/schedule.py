"""How the learning rate changes over the steps of a run."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

Schedule: TypeAlias = Literal["constant", "linear", "cosine"]
SCHEDULES: tuple[str, ...] = get_args(Schedule)


def scale(schedule: Schedule, step: Tensor, steps: Tensor) -> Tensor:
    """Share of the learning rate at a step (from 0): 1, 1 - t or (1 + cos(pi t)) / 2, t = step / steps."""
    t = step / steps
    if schedule == "linear":
        return 1 - t
    if schedule == "cosine":
        return (1 + torch.cos(math.pi * t)) / 2
    return torch.ones_like(t)
