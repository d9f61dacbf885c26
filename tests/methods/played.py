"""A method with custom networks, set up for one step on the tiny ground truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from training.tiny import TINY
from unweave.methods.method import Batch, Draws, Forward, Losses, Method, StepContext
from unweave.methods.step import LabelledBatch
from unweave.nn.distributions.gaussian import Gaussian
from unweave.runs.spec import RunSpec
from unweave.training.batches import HostBatches
from unweave.training.population import Population


@dataclass(frozen=True)
class Played:
    """Some runs with their networks, and the first batch of each."""

    method: Method
    step: StepContext

    @classmethod
    def of(
        cls,
        *methods: Method,
        seeds: Sequence[int] = (0, 1),
        images: int = 6,
        latents: int = 4,
        step: int = 0,
        device: str = "cpu",
    ) -> Played:
        """One run for each seed, of one method or of one for each seed that differ in numbers only."""
        on = torch.device(device)
        run_methods = methods if len(methods) == len(seeds) else methods * len(seeds)
        specs = [
            RunSpec(method, data=TINY.name, seed=seed, latents=latents, batch=images)
            for method, seed in zip(run_methods, seeds, strict=True)
        ]
        source = HostBatches(TINY, on)
        sampling = methods[0].sampling
        population = Population(specs, TINY.shape, on, source.label_sizes(sampling))
        batch = source.draw(population.draws, step, "batch", images, sampling)
        population.step.fill_(step)
        (group,) = population.groups
        context = StepContext(
            batch, group.networks, population.draws, population.step, population.steps, len(TINY)
        )
        return cls(group.method, context)

    @property
    def networks(self) -> Mapping[str, nn.Module]:
        """The networks of the step."""
        return self.step.networks

    @property
    def batch(self) -> Batch:
        """The batch of the step."""
        return self.step.batch

    def losses(self) -> Losses:
        """Of this step."""
        return self.method.losses(self.step)

    def parameters(self, player: str) -> list[Tensor]:
        """Of one network."""
        return list(self.networks[player].parameters())

    def gradients(self, player: str) -> list[Tensor]:
        """Of a player's objective for its own parameters."""
        loss = self.losses().players[player].sum()
        return list(torch.autograd.grad(loss, self.parameters(player)))


def autoencoder_step(
    reconstruction: Tensor,
    posterior: Gaussian,
    sample: Tensor,
    step: Tensor | int = 0,
    data_size: int = 100,
    draws: Draws | None = None,
    networks: Mapping[str, nn.Module] | None = None,
    **parts: Any,
) -> StepContext:
    """A step of a method on the shared autoencoder, after this forward pass."""
    return StepContext(
        Batch(torch.empty(0)),
        networks or {},
        cast(Draws, draws),
        step=step,
        data_size=data_size,
        shared_pass=Forward(reconstruction, posterior, sample, **parts),
    )


def own_step(
    step: Tensor | int, data_size: int, draws: object, likelihood: str = "bernoulli", steps: Tensor | int = 1
) -> Callable[[Batch, Mapping[str, nn.Module]], StepContext]:
    """Steps of a method with custom networks, for any batch and networks."""
    return lambda batch, networks: StepContext(
        batch, networks, cast(Draws, draws), step, steps, data_size, likelihood
    )


def with_pass(step: StepContext, **parts: Any) -> StepContext:
    """The same step after another forward pass."""
    return replace(step, shared_pass=replace(step.forward, **parts))


def on_meta(batch: Batch) -> Batch:
    """A batch on the meta device, whose tensors have no values."""
    labels = None if batch.labels is None else batch.labels.to("meta")
    labelled = batch.labelled and LabelledBatch(*(tensor.to("meta") for tensor in batch.labelled.tensors()))
    return Batch(batch.images.to("meta"), labels, labelled)
