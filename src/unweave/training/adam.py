"""Adam for a population, in TensorFlow's form, with the step on the device."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unweave.methods.method import Adam


class PopulationAdam:
    """Moments of all parameters of a player; a parameter is (P, ...).

    m <- beta1 m + (1 - beta1) g,  v <- beta2 v + (1 - beta2) g^2,
    p <- p - lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)

    Differs from torch.optim.Adam in where epsilon stands, which shows in the first steps only.
    """

    def __init__(self, parameters: Sequence[Tensor], settings: Adam) -> None:
        self.parameters = list(parameters)
        self.settings = settings
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]

    @torch.no_grad()
    def update(self, gradients: list[Tensor], step: Tensor, rate: Tensor) -> None:
        """One update; step counts from 0, rate is (P,)."""
        s, t = self.settings, (step + 1).float()
        torch._foreach_lerp_(self.first, gradients, 1 - s.beta1)
        torch._foreach_mul_(self.second, s.beta2)
        torch._foreach_addcmul_(self.second, gradients, gradients, 1 - s.beta2)
        change = torch._foreach_sqrt(self.second)
        torch._foreach_add_(change, s.epsilon)
        change = torch._foreach_div(self.first, change)
        size = -rate * torch.sqrt(1 - s.beta2**t) / (1 - s.beta1**t)
        for p, c in zip(self.parameters, change, strict=True):
            p.addcmul_(c, size.view(-1, *[1] * (p.dim() - 1)))

    def select(self, index: Tensor) -> None:
        """Keep the moments of some runs only; the parameters are those that the networks have kept."""
        self.first = [m[index].clone() for m in self.first]
        self.second = [v[index].clone() for v in self.second]


def clip(gradients: Sequence[Tensor], largest: float) -> list[Tensor]:
    """Scale the gradient of each run to a norm of at most `largest`, over all parameters together."""
    square = sum(g.square().flatten(1).sum(dim=1) for g in gradients)
    share = (largest / torch.as_tensor(square).sqrt().clamp_min(1e-12)).clamp_max(1)
    return [g * share.view(-1, *[1] * (g.dim() - 1)) for g in gradients]
