"""Quantised methods with all their settings and learning rates as they are: codes describe images soon."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from methods.marks import use_small_networks
from methods.test_tripod import SQUARES
from training.tiny import narrow_discriminators
from unweave.methods import FactorQVAE, Tripod
from unweave.methods.method import AUTOENCODER, Method
from unweave.nn.networks.quantised import QuantisedAutoencoder
from unweave.nn.networks.scalar_grid import GridAutoencoder
from unweave.runs.spec import spec_of
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.update import Update


@pytest.mark.parametrize(
    ("method", "steps", "batch"),
    [(Tripod(), 100, 16), (FactorQVAE(), 800, 64)],
    ids=["tripod", "factor_qvae"],
)
def test_values_of_codes_describe_images(
    method: Method, steps: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nearly all images have values of their own, and decoding these is closer than the mean image."""
    use_small_networks(monkeypatch)
    spec = replace(
        spec_of(method, data=SQUARES.name, latents=4), steps=steps, batch=batch, architecture="small"
    )
    with narrow_discriminators(40):
        population = Population([spec], SQUARES.shape, torch.device("cpu"))
    Update(population, HostBatches(SQUARES, torch.device("cpu")), len(SQUARES)).run(steps)
    network = population.groups[0].networks[AUTOENCODER]
    assert isinstance(network, GridAutoencoder | QuantisedAutoencoder)
    images = torch.from_numpy(SQUARES.observe(SQUARES.factors_at(np.arange(len(SQUARES)))))
    with torch.no_grad():
        codes = network.encode(images[None]).mean
        decoded = network.decode(codes)[0].sigmoid()
    assert len(codes[0].unique(dim=0)) > 30, "of 36 images"
    shown = images.float() / 255
    mean_error = (shown - shown.mean(0)).square().mean()
    assert (decoded - shown).square().mean() < 0.3 * mean_error
