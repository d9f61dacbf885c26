"""A method with networks of its own, ready to play one step on the tiny ground truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from training.tiny import TINY
from unweave.methods.method import Batch, Losses, Moment, OwnNetworks
from unweave.runs.spec import RunSpec
from unweave.training.batches import HostBatches
from unweave.training.population import Population


@dataclass(frozen=True)
class Played:
    """Some runs with their networks, and the first batch of each."""

    method: OwnNetworks
    networks: Mapping[str, nn.Module]
    batch: Batch
    moment: Moment

    @classmethod
    def of(
        cls,
        *methods: OwnNetworks,
        seeds: Sequence[int] = (0, 1),
        images: int = 6,
        latents: int = 4,
        step: int = 0,
        device: str = "cpu",
    ) -> Played:
        """One run for each seed, of one method or of one for each seed that differ in numbers only."""
        here = torch.device(device)
        each = methods if len(methods) == len(seeds) else methods * len(seeds)
        specs = [
            RunSpec(method, data=TINY.name, seed=seed, latents=latents, batch=images)
            for method, seed in zip(each, seeds, strict=True)
        ]
        source = HostBatches(TINY, here)
        supply = methods[0].supply
        population = Population(specs, TINY.shape, here, source.label_sizes(supply))
        batch = source.draw(population.draws, step, "batch", images, supply)
        population.step.fill_(step)
        (group,) = population.groups
        moment = Moment(population.step, len(TINY), population.draws, "bernoulli", population.steps)
        return cls(cast(OwnNetworks, group.method), group.networks, batch, moment)

    def losses(self) -> Losses:
        """Of this step."""
        return self.method.losses(self.batch, self.networks, self.moment)

    def parameters(self, player: str) -> list[Tensor]:
        """Of one network."""
        return list(self.networks[player].parameters())

    def gradients(self, player: str) -> list[Tensor]:
        """Of a player's objective for its own parameters."""
        loss = self.losses().players[player].sum()
        return list(torch.autograd.grad(loss, self.parameters(player)))
