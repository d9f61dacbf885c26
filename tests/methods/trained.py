"""One run of a method, trained for some steps on the tiny ground truth, with rates that suit few steps.

Small networks and narrow discriminators show the same effects as the usual ones, and cost less.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from methods.marks import use_small_networks
from training.tiny import TINY
from unweave.data.grid import Factors
from unweave.methods import aae, aae_classes
from unweave.methods.method import Method
from unweave.nn.networks.vae import Discriminator
from unweave.runs.spec import RunSpec
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.update import Update

WIDTH = 100  # of the hidden layers of discriminators, instead of 1,000


@pytest.fixture
def cheap_adversaries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adversarial autoencoders with narrow discriminators, and the architecture "small"."""
    use_small_networks(monkeypatch)
    for module in (aae, aae_classes):
        monkeypatch.setattr(module, "Discriminator", partial(Discriminator, width=WIDTH))


@dataclass(frozen=True)
class Trained:
    """The population of one run, and the means of its terms over the last fifth of the steps."""

    population: Population
    terms: dict[str, float]

    @classmethod
    def of(cls, method: Method, steps: int, architecture: str = "small", latents: int = 3) -> Trained:
        """Train with ten times the usual learning rates."""
        spec = RunSpec(
            method,
            data=TINY.name,
            seed=0,
            architecture=architecture,
            batch=16,
            latents=latents,
            steps=steps,
            learning_rate=1e-3,
            player_rate=10.0,
        )
        cpu = torch.device("cpu")
        source = HostBatches(TINY, cpu)
        population = Population([spec], TINY.shape, cpu, source.label_sizes(method.sampling))
        update = Update(population, source, len(TINY))
        update.run(steps - steps // 5)
        update.take_terms()
        update.run(steps // 5)
        (terms,) = update.take_terms()
        return cls(population, {name: term.item() for name, term in terms.items()})

    @property
    def factors(self) -> Factors:
        """All factors, (60, 3)."""
        return TINY.factors_at(np.arange(len(TINY)))

    def codes(self) -> Tensor:
        """(60, D): the codes of all images."""
        (group,), shared = self.population.groups, self.population.autoencoder
        networks = group.networks if shared is None else shared.networks
        images = torch.from_numpy(TINY.observe(self.factors))[None]
        with torch.no_grad():
            return group.method.encode(networks, images).mean[0]
