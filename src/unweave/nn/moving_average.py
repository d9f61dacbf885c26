"""Parameters that follow other tensors instead of a gradient: moving averages, and copies of weights.

They are the parameters of a player, so that checkpoints hold them like all other weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unweave.nn.optimiser import PopulationOptimiser


@dataclass(frozen=True)
class MovingAverage:
    """Update rule p <- p + share (target - p), for a player whose loss is `half_squared_distance`.

    The share is `learning_rate`, and 1 / t at update t where that is more: the first updates average all
    targets so far. Learning rate, schedule and warm-up of the run have no effect, and its gradients are not
    clipped.
    """

    moments: ClassVar[tuple[str, ...]] = ()
    learning_rate: float = 0.01

    def update(
        self,
        state: PopulationOptimiser,
        gradients: Sequence[Tensor],
        step: Tensor,
        rate: Tensor,
    ) -> None:
        """Move the masters along the gradients, which are the differences p - target."""
        share = (1 / (step + 1)).clamp(min=self.learning_rate).expand_as(rate)
        for master, gradient in zip(state.masters, gradients, strict=True):
            master.sub_(gradient.to(master.dtype) * share.view(-1, *[1] * (master.dim() - 1)))
        state.round()


def half_squared_distance(parameters: Iterable[Tensor], targets: Iterable[Tensor]) -> Tensor:
    """(P,): sum (p - target)^2 / 2 over all parameters (P, ...); its gradient is p - target."""
    distances = [
        0.5 * (parameter - target.detach().to(parameter.dtype)).square().flatten(1).sum(-1)
        for parameter, target in zip(parameters, targets, strict=True)
    ]
    return torch.stack(distances).sum(0)
