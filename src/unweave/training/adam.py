"""Adam for a population, in TensorFlow's form, with the step on the device."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unweave.methods.method import Adam
from unweave.nn.kernels.dispatch import has_triton
from unweave.nn.layers import chosen


class PopulationAdam:
    """Moments of all parameters of a player; a parameter is (P, ...).

    m <- beta1 m + (1 - beta1) g,  v <- beta2 v + (1 - beta2) g^2,
    p <- p - lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)

    Differs from torch.optim.Adam in where epsilon stands, which shows in the first steps only.

    What is updated are the masters, in float32. Of a parameter that a network holds in bfloat16, the master
    is kept here; of all others it is the parameter itself.
    """

    def __init__(self, parameters: Sequence[Tensor], settings: Adam) -> None:
        self.parameters = list(parameters)
        self.masters = [parameter.detach() for parameter in self.parameters]
        self.settings = settings
        self.first = [torch.zeros_like(p) for p in self.masters]
        self.second = [torch.zeros_like(p) for p in self.masters]

    def attach(self, parameters: Sequence[Tensor]) -> None:
        """Go on with these parameters, which may be rounded copies of the masters."""
        self.parameters = list(parameters)

    @torch.no_grad()
    def update(self, gradients: Sequence[Tensor], step: Tensor, rate: Tensor) -> None:
        """One update; step counts from 0, rate is (P,)."""
        s, t = self.settings, (step + 1).float()
        size = -rate * torch.sqrt(1 - s.beta2**t) / (1 - s.beta1**t)
        if size.is_cuda and has_triton():
            self._update_by_kernel(gradients, size)
            return
        gradients = [gradient.float() for gradient in gradients]
        torch._foreach_lerp_(self.first, gradients, 1 - s.beta1)
        torch._foreach_mul_(self.second, s.beta2)
        torch._foreach_addcmul_(self.second, gradients, gradients, 1 - s.beta2)
        change = torch._foreach_sqrt(self.second)
        torch._foreach_add_(change, s.epsilon)
        change = torch._foreach_div(self.first, change)
        for p, c in zip(self.masters, change, strict=True):
            p.addcmul_(c, size.view(-1, *[1] * (p.dim() - 1)))
        self.round()

    @torch.no_grad()
    def round(self) -> None:
        """Bring the networks' parameters up to date with their masters."""
        for parameter, master in self._rounded():
            parameter.copy_(master)

    @torch.no_grad()
    def select(self, index: Tensor, parameters: Sequence[Tensor]) -> None:
        """Keep some runs only; the parameters are those that the networks have kept."""
        rounded = {id(master) for _, master in self._rounded()}
        self.masters = [
            chosen(master, index) if id(master) in rounded else parameter.detach()
            for parameter, master in zip(parameters, self.masters, strict=True)
        ]
        self.first = [chosen(m, index) for m in self.first]
        self.second = [chosen(v, index) for v in self.second]
        self.attach(parameters)

    def _rounded(self) -> list[tuple[Tensor, Tensor]]:
        pairs = zip(self.parameters, self.masters, strict=True)
        return [(parameter, master) for parameter, master in pairs if parameter.dtype != master.dtype]

    def _update_by_kernel(self, gradients: Sequence[Tensor], size: Tensor) -> None:
        from unweave.nn.kernels.adam import adam

        s = self.settings
        for used, master, m, v, g in zip(
            self.parameters, self.masters, self.first, self.second, gradients, strict=True
        ):
            if g.stride() != master.stride():
                g = torch.empty_like(master).copy_(g)
            adam(master, used.detach(), m, v, g, size, s.beta1, s.beta2, s.epsilon)


def clip(gradients: Sequence[Tensor], largest: float) -> list[Tensor]:
    """Scale the gradient of each run to a norm of at most `largest`, over all parameters together."""
    square = sum(g.float().square().flatten(1).sum(dim=1) for g in gradients)
    share = (largest / torch.as_tensor(square).sqrt().clamp_min(1e-12)).clamp_max(1)
    return [g * share.view(-1, *[1] * (g.dim() - 1)) for g in gradients]
