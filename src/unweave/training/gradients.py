"""Gradients of players: their norms, how they are clipped, and which updates are skipped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from unweave.nn.moving_average import MovingAverage
from unweave.training.population import Group, PlayerState


class Gradients(NamedTuple):
    """Gradients of a player's parameters, and in which runs its update is skipped, (P,), if it may be."""

    tensors: list[Tensor]
    skip: Tensor | None


def gradients_of(loss: Tensor, player: PlayerState, largest: float | None, keep: bool) -> Gradients:
    """Gradients of a loss with respect to the parameters of one player."""
    state, ones = player.optimiser, torch.ones_like(loss)  # of the sum over runs
    gradients = list(torch.autograd.grad(loss, state.parameters, ones, retain_graph=keep))
    # Written so that a norm that is not a number is not below the limit.
    skip = ~(gradient_norms(gradients) < player.skip_above) if player.skip_above else None
    if largest is None or isinstance(state.settings, MovingAverage):
        return Gradients(gradients, skip)
    return Gradients(clip(gradients, largest), skip)


def skipped_together(
    gradients: Sequence[Gradients], turn: Sequence[PlayerState], groups: Sequence[Group]
) -> list[Gradients]:
    """Gradients of the players of a turn; where one skips its update, the others of its method do, too.

    A moving average of what the losses computed would otherwise remember an outlier that no weight does.
    """
    together = list(gradients)
    for group in groups:
        own = [i for i, player in enumerate(turn) if any(player is one for one in group.players)]
        skips = [skip for i in own if (skip := gradients[i].skip) is not None]
        for i in own if skips else ():
            together[i] = gradients[i]._replace(skip=torch.stack(skips).any(0))
    return together


def gradient_norms(gradients: Sequence[Tensor]) -> Tensor:
    """(P,): the norm of the gradient of each run, over all parameters together."""
    return torch.as_tensor(sum(g.float().square().flatten(1).sum(dim=1) for g in gradients)).sqrt()


def clip(gradients: Sequence[Tensor], largest: float) -> list[Tensor]:
    """Scale the gradient of each run to a norm of at most `largest`, over all parameters together."""
    share = (largest / gradient_norms(gradients).clamp_min(1e-12)).clamp_max(1)
    return [g * share.view(-1, *[1] * (g.dim() - 1)) for g in gradients]
