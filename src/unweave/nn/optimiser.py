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
from unweave.nn.cpu_adam import adam_in_one_pass, is_large
from unweave.nn.kernels.dispatch import has_triton
from unweave.nn.layers import chosen, rounded_copy

FIRST_MOMENT, SECOND_MOMENT, AVERAGE = "first_moment", "second_moment", "average"


class Optimiser(Protocol):
    """Settings of an optimiser, and its update rule."""

    moments: ClassVar[tuple[str, ...]]  # tensors kept for each parameter, by their names in checkpoints

    @property
    def learning_rate(self) -> float | None:
        """The learning rate of a player that has its own optimiser; None: that of the run."""

    def update(
        self, state: PopulationOptimiser, gradients: Sequence[Tensor], step: Tensor, rate: Tensor
    ) -> None:
        """Update the masters and moments of `state` in place, then its rounded parameters.

        step counts from 0, () or (P,); rate is (P,), after the schedule.
        """


class PopulationOptimiser:
    """Parameters of a player, (P, ...) each, with the state of its optimiser.

    Updates apply to the masters, which are float32. If a network holds a parameter in bfloat16, the master is
    a separate tensor; otherwise it is the parameter itself, of which there may be a rounded copy
    (`layers.keep_rounded_copies`).

    With a `decay`, the moments also hold an exponential moving average of the masters. After t updates it is
    d average + (1 - d) master with d = min(decay, (1 + t) / (10 + t)), so that initial weights are soon
    forgotten. `skipped` counts the updates that a run did not make; None if none may be skipped.

    The optimiser's own moments are float32, or, if they are `compact`, bfloat16, which only the kernels of a
    GPU can update.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        settings: Optimiser,
        names: Sequence[str] = (),
        decay: float = 0.0,
        may_skip: bool = False,
        compact: bool = False,
    ) -> None:
        self.parameters = list(parameters)
        self.names = tuple(names)  # of the parameters, where the optimiser treats them differently
        self.masters = [parameter.detach() for parameter in self.parameters]
        self.settings, self.decay = settings, decay
        dtype = torch.bfloat16 if compact else torch.float32
        self.moments = {
            name: [torch.zeros_like(p, dtype=dtype) for p in self.masters] for name in settings.moments
        }
        if decay:
            self.moments[AVERAGE] = [master.clone() for master in self.masters]
        runs, device = len(self.masters[0]), self.masters[0].device
        self.skipped = torch.zeros(runs, dtype=torch.int64, device=device) if may_skip else None

    def attach(self, parameters: Sequence[Tensor]) -> None:
        """Continue with these parameters, which may be rounded copies of the masters."""
        self.parameters = list(parameters)

    @torch.no_grad()
    def update(
        self, gradients: Sequence[Tensor], step: Tensor, rate: Tensor, skip: Tensor | None = None
    ) -> None:
        """Make one update; step counts from 0, rate is (P,).

        Runs in which `skip`, (P,), is true stay as they are: weights, moments and average.
        """
        if self.skipped is not None:
            step = step - self.skipped
        if skip is None:
            self.settings.update(self, gradients, step, rate)
        else:
            self._update_others(gradients, step, rate, skip)
        if self.decay:
            self._follow(step + 1, skip)

    def _update_others(self, gradients: Sequence[Tensor], step: Tensor, rate: Tensor, skip: Tensor) -> None:
        """Update all runs, then restore those that skip: this holds for the update rule of any optimiser."""
        state = [*self.masters, *(m for name in self.settings.moments for m in self.moments[name])]
        before = torch._foreach_mul(state, 1.0)  # copies all of them in a few launches
        self.settings.update(self, gradients, step, rate)
        for tensor, old in zip(state, before, strict=True):
            torch.where(_for_each_run(skip, tensor), old, tensor, out=tensor)
        self.round()
        if self.skipped is not None:
            self.skipped += skip

    def _follow(self, updates: Tensor, skip: Tensor | None) -> None:
        """Move the averages towards the masters, after so many updates, () or (P,)."""
        share = 1 - ((1 + updates) / (10 + updates)).clamp(max=self.decay)
        if skip is not None:
            share = torch.where(skip, 0.0, share)
        for average, master in zip(self.moments[AVERAGE], self.masters, strict=True):
            average.lerp_(master, _for_each_run(share, master))

    @property
    def used(self) -> list[Tensor]:
        """What the networks compute with: rounded copies of the masters, or the masters."""
        return [
            parameter if (copy := rounded_copy(parameter)) is None else copy for parameter in self.parameters
        ]

    @torch.no_grad()
    def round(self) -> None:
        """Copy the masters into the networks' rounded parameters and copies."""
        for used, master in zip(self.used, self.masters, strict=True):
            if used.dtype != master.dtype:
                used.copy_(master)

    @torch.no_grad()
    def select(self, index: Tensor, parameters: Sequence[Tensor]) -> None:
        """Keep some runs only; `parameters` are the networks' parameters of these runs."""
        self.masters = [
            chosen(master, index) if parameter.dtype != master.dtype else parameter.detach()
            for parameter, master in zip(parameters, self.masters, strict=True)
        ]
        self.moments = {name: [chosen(m, index) for m in tensors] for name, tensors in self.moments.items()}
        self.skipped = None if self.skipped is None else chosen(self.skipped, index)
        self.attach(parameters)


@dataclass(frozen=True)
class Adam:
    """Settings of Adam (Kingma and Ba, 2015); as in TensorFlow, epsilon is not bias-corrected.

    m <- beta1 m + (1 - beta1) g,  v <- beta2 v + (1 - beta2) g^2,
    p <- p - lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)

    Differs from torch.optim.Adam in where epsilon is added, which matters in the first steps only.

    With `compact`, a bf16 run on a GPU keeps m and v in bfloat16, rounded up or down at random, because
    updates of large networks are limited by memory. It also applies to players with an Adam of their own.
    """

    moments: ClassVar[tuple[str, ...]] = (FIRST_MOMENT, SECOND_MOMENT)
    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    compact: bool = False

    def update(
        self, state: PopulationOptimiser, gradients: Sequence[Tensor], step: Tensor, rate: Tensor
    ) -> None:
        """One update without weight decay."""
        _update_by_adam(self, state, gradients, step, rate, [None] * len(state.masters))


@dataclass(frozen=True)
class AdamW:
    """Settings of Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    In each update p also changes by -lr weight_decay p; lr follows the schedule. A learning rate of None is
    that of the run. `decayed` says which parameters of a player decay: all of them, biases included, as in
    torch.optim.AdamW, or only those whose name ends with "weight".
    """

    moments: ClassVar[tuple[str, ...]] = (FIRST_MOMENT, SECOND_MOMENT)
    learning_rate: float | None = 1e-4
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
    _check_no_decay("adam", weight_decay)
    return Adam()


def _compact_adam_of_run(weight_decay: float) -> Adam:
    _check_no_decay("compact_adam", weight_decay)
    return Adam(compact=True)


def _check_no_decay(name: str, weight_decay: float) -> None:
    if weight_decay != 0:
        raise UnweaveError(f"{name} has no weight decay; got weight_decay {weight_decay:g}. Use adamw.")


def _adamw_of_run(weight_decay: float) -> AdamW:
    if weight_decay == 0:
        raise UnweaveError(
            "adamw needs a weight_decay greater than 0, such as 0.01; got 0. Without decay use adam."
        )
    return AdamW(weight_decay=weight_decay)


# Each makes the optimiser of a run from its weight decay. The learning rate is the run's.
OPTIMISERS: dict[str, Callable[[float], Optimiser]] = {
    "adam": _adam_of_run,
    "adamw": _adamw_of_run,
    "compact_adam": _compact_adam_of_run,
}


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
    if rate.is_cuda and has_triton():
        _update_by_kernel(settings, state, gradients, step, rate, decays)
        return
    s, t = settings, (step + 1).float()
    size = -rate * torch.sqrt(1 - s.beta2**t) / (1 - s.beta1**t)
    moments = state.moments[FIRST_MOMENT], state.moments[SECOND_MOMENT]
    others = []
    for master, m, v, g, decay in zip(state.masters, *moments, gradients, decays, strict=True):
        if decay is None and is_large(master):
            adam_in_one_pass(master, m, v, g.float(), size, (s.beta1, s.beta2), s.epsilon)
        else:
            others.append((master, m, v, g.float(), decay))
    if others:
        _update_by_operations(settings, others, size)
    state.round()


def _update_by_operations(
    settings: Adam | AdamW,
    tensors: Sequence[tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]],
    size: Tensor,
) -> None:
    """Adam's update of masters with their moments, gradients and decays, one operation after another."""
    s, (masters, first, second, gradients, decays) = settings, zip(*tensors, strict=True)
    torch._foreach_lerp_(first, gradients, 1 - s.beta1)
    torch._foreach_mul_(second, s.beta2)
    torch._foreach_addcmul_(second, gradients, gradients, 1 - s.beta2)
    change = torch._foreach_sqrt(second)
    torch._foreach_add_(change, s.epsilon)
    change = torch._foreach_div(first, change)
    for master, c, decay in zip(masters, change, decays, strict=True):
        if decay is None:
            master.addcmul_(c, _for_each_run(size, master))
        else:
            c.mul_(_for_each_run(size, master)).addcmul_(master, _for_each_run(decay, master), value=-1)
            master.add_(c)


def _for_each_run(values: Tensor, parameter: Tensor) -> Tensor:
    """(P,) -> (P, 1, ...), to multiply a parameter with."""
    return values.view(-1, *[1] * (parameter.dim() - 1))


def _update_by_kernel(
    settings: Adam | AdamW,
    state: PopulationOptimiser,
    gradients: Sequence[Tensor],
    step: Tensor,
    rate: Tensor,
    decays: Sequence[Tensor | None],
) -> None:
    from unweave.nn.kernels.adam import Updated, adam

    s = settings
    moments = state.moments[FIRST_MOMENT], state.moments[SECOND_MOMENT]
    updated = [
        Updated(master, used.detach(), m, v, _laid_out_as(master, g), decay)
        for used, master, m, v, g, decay in zip(
            state.used, state.masters, *moments, gradients, decays, strict=True
        )
    ]
    adam(updated, step.contiguous(), rate.contiguous(), s.beta1, s.beta2, s.epsilon)


def _laid_out_as(master: Tensor, gradient: Tensor) -> Tensor:
    """The gradient with the memory layout of the master, at an address that is a multiple of 16 bytes."""
    if gradient.stride() == master.stride() and gradient.data_ptr() % 16 == 0:
        return gradient
    return torch.empty_like(master).copy_(gradient)
