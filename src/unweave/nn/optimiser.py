"""Optimisers: their settings, their names, and the update of all runs of a population at once.

An optimiser is a frozen dataclass of settings with an update rule, and a line in OPTIMISERS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import torch
from torch import Tensor

from unweave.errors import UnweaveError
from unweave.nn.kernels.dispatch import has_triton
from unweave.nn.layers import chosen


class Optimiser(Protocol):
    """Settings of an optimiser, and its update rule."""

    moments: ClassVar[tuple[str, ...]]  # tensors kept for each parameter, by their names in checkpoints

    @property
    def learning_rate(self) -> float:
        """The learning rate of a player that has its own optimiser."""

    def update(
        self, state: PopulationOptimiser, gradients: Sequence[Tensor], step: Tensor, rate: Tensor
    ) -> None:
        """Update the masters and moments of `state` in place, then its rounded parameters.

        step counts from 0, () or (P,); rate is (P,), after the schedule.
        """


class PopulationOptimiser:
    """Parameters of a player, (P, ...) each, with the state of its optimiser.

    Updates apply to the masters, which are float32. If a network holds a parameter in bfloat16, the master is
    a separate tensor; otherwise it is the parameter itself.
    """

    def __init__(self, parameters: Sequence[Tensor], settings: Optimiser, names: Sequence[str] = ()) -> None:
        self.parameters = list(parameters)
        self.names = tuple(names)  # of the parameters, where the optimiser treats them differently
        self.masters = [parameter.detach() for parameter in self.parameters]
        self.settings = settings
        self.moments = {name: [torch.zeros_like(p) for p in self.masters] for name in settings.moments}

    def attach(self, parameters: Sequence[Tensor]) -> None:
        """Continue with these parameters, which may be rounded copies of the masters."""
        self.parameters = list(parameters)

    @torch.no_grad()
    def update(self, gradients: Sequence[Tensor], step: Tensor, rate: Tensor) -> None:
        """Make one update; step counts from 0, rate is (P,)."""
        self.settings.update(self, gradients, step, rate)

    @torch.no_grad()
    def round(self) -> None:
        """Copy the masters into the networks' rounded parameters."""
        for parameter, master in self._rounded():
            parameter.copy_(master)

    @torch.no_grad()
    def select(self, index: Tensor, parameters: Sequence[Tensor]) -> None:
        """Keep some runs only; `parameters` are the networks' parameters of these runs."""
        rounded = {id(master) for _, master in self._rounded()}
        self.masters = [
            chosen(master, index) if id(master) in rounded else parameter.detach()
            for parameter, master in zip(parameters, self.masters, strict=True)
        ]
        self.moments = {name: [chosen(m, index) for m in tensors] for name, tensors in self.moments.items()}
        self.attach(parameters)

    def _rounded(self) -> list[tuple[Tensor, Tensor]]:
        pairs = zip(self.parameters, self.masters, strict=True)
        return [(parameter, master) for parameter, master in pairs if parameter.dtype != master.dtype]


FIRST_MOMENT, SECOND_MOMENT = "first_moment", "second_moment"


@dataclass(frozen=True)
class Adam:
    """Settings of Adam (Kingma and Ba, 2015); as in TensorFlow, epsilon is not bias-corrected.

    m <- beta1 m + (1 - beta1) g,  v <- beta2 v + (1 - beta2) g^2,
    p <- p - lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)

    Differs from torch.optim.Adam in where epsilon is added, which matters in the first steps only.
    """

    moments: ClassVar[tuple[str, ...]] = (FIRST_MOMENT, SECOND_MOMENT)
    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def update(
        self, state: PopulationOptimiser, gradients: Sequence[Tensor], step: Tensor, rate: Tensor
    ) -> None:
        """One update without weight decay."""
        _update_by_adam(self, state, gradients, step, rate, [None] * len(state.masters))


@dataclass(frozen=True)
class AdamW:
    """Settings of Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    In each update p also changes by -lr weight_decay p; lr follows the schedule. `decayed` says which
    parameters of a player decay: all of them, biases included, as in torch.optim.AdamW, or only those whose
    name ends with "weight".
    """

    moments: ClassVar[tuple[str, ...]] = (FIRST_MOMENT, SECOND_MOMENT)
    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float | Tensor = 0.01  # a tensor (P,) in a method that stands for several runs
    decayed: Literal["all", "weights"] = "all"

    def update(
        self, state: PopulationOptimiser, gradients: Sequence[Tensor], step: Tensor, rate: Tensor
    ) -> None:
        """One update with weight decay."""
        decay = self.weight_decay * rate
        decays: list[Tensor | None] = [decay] * len(state.masters)
        if self.decayed == "weights":
            decays = [decay if name.endswith("weight") else None for name in state.names]
        _update_by_adam(self, state, gradients, step, rate, decays)


def _adam_of_run(weight_decay: float) -> Adam:
    if weight_decay != 0:
        raise UnweaveError(f"adam has no weight decay; got weight_decay {weight_decay:g}. Use adamw.")
    return Adam()


def _adamw_of_run(weight_decay: float) -> AdamW:
    if weight_decay == 0:
        raise UnweaveError(
            "adamw needs a weight_decay greater than 0, such as 0.01; got 0. Without decay use adam."
        )
    return AdamW(weight_decay=weight_decay)


# Each makes the optimiser of a run from its weight decay. The learning rate is the run's.
OPTIMISERS: dict[str, Callable[[float], Optimiser]] = {"adam": _adam_of_run, "adamw": _adamw_of_run}


def optimiser_named(name: str, weight_decay: float = 0.0) -> Optimiser:
    """The optimiser of that name for a run with this weight decay.

    >>> optimiser_named("adamw", 0.1)
    AdamW(learning_rate=0.0001, beta1=0.9, beta2=0.999, epsilon=1e-08, weight_decay=0.1, decayed='all')
    """
    if name not in list(OPTIMISERS):
        raise UnweaveError(f'there is no optimiser "{name}". Known: {", ".join(OPTIMISERS)}.')
    return OPTIMISERS[name](weight_decay)


def _update_by_adam(
    settings: Adam | AdamW,
    state: PopulationOptimiser,
    gradients: Sequence[Tensor],
    step: Tensor,
    rate: Tensor,
    decays: Sequence[Tensor | None],
) -> None:
    """Adam's update; from each master its share in `decays`, (P,), is subtracted too, if it has one.

    Both changes are summed first: a decay below the rounding error of a weight would be lost otherwise.
    """
    s, t = settings, (step + 1).float()
    size = -rate * torch.sqrt(1 - s.beta2**t) / (1 - s.beta1**t)
    if size.is_cuda and has_triton():
        _update_by_kernel(settings, state, gradients, size, decays)
        return
    first, second = state.moments[FIRST_MOMENT], state.moments[SECOND_MOMENT]
    gradients = [gradient.float() for gradient in gradients]
    torch._foreach_lerp_(first, gradients, 1 - s.beta1)
    torch._foreach_mul_(second, s.beta2)
    torch._foreach_addcmul_(second, gradients, gradients, 1 - s.beta2)
    change = torch._foreach_sqrt(second)
    torch._foreach_add_(change, s.epsilon)
    change = torch._foreach_div(first, change)
    for master, c, decay in zip(state.masters, change, decays, strict=True):
        if decay is None:
            master.addcmul_(c, _for_each_run(size, master))
        else:
            c.mul_(_for_each_run(size, master)).addcmul_(master, _for_each_run(decay, master), value=-1)
            master.add_(c)
    state.round()


def _for_each_run(values: Tensor, parameter: Tensor) -> Tensor:
    """(P,) -> (P, 1, ...), to multiply a parameter with."""
    return values.view(-1, *[1] * (parameter.dim() - 1))


def _update_by_kernel(
    settings: Adam | AdamW,
    state: PopulationOptimiser,
    gradients: Sequence[Tensor],
    size: Tensor,
    decays: Sequence[Tensor | None],
) -> None:
    from unweave.nn.kernels.adam import adam

    s = settings
    moments = state.moments[FIRST_MOMENT], state.moments[SECOND_MOMENT]
    tensors = zip(state.parameters, state.masters, *moments, gradients, decays, strict=True)
    for used, master, m, v, g, decay in tensors:
        if g.stride() != master.stride():
            g = torch.empty_like(master).copy_(g)
        adam(master, used.detach(), m, v, g, size, s.beta1, s.beta2, s.epsilon, decay)
