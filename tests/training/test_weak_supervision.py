"""Methods that learn from pairs and groups: alone, in a population, resumed, from host and device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from training.stopping import largest_difference
from training.tiny import TINY
from unweave.methods import GVAE, MLVAE, AdaGVAE, AdaMLVAE, BetaVAE, GVAELabels, MLVAELabels
from unweave.methods.method import Method
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.training.batches import Batches, HostBatches, ResidentBatches
from unweave.training.population import Population, shared_by
from unweave.training.trainer import Plan, train_runs
from unweave.training.update import Update

CPU = torch.device("cpu")
METHODS: list[Method] = [
    AdaGVAE(2.0),
    AdaMLVAE(2.0, changed=1),
    AdaGVAE(changed="published", k_known=True),
    GVAELabels(),
    MLVAELabels(changed=2),
    GVAE(group_size=3, shared="size"),
    MLVAE(content=1, shared=2),
]
every_method = pytest.mark.parametrize("method", METHODS, ids=repr)


def spec(method: Method, seed: int = 0, steps: int = 12) -> RunSpec:
    return RunSpec(method, data="tiny", seed=seed, steps=steps, batch=4, latents=4)


def train(folder: Path, specs: list[RunSpec], **plan: Any) -> list[RunFolder]:
    chosen = replace(Plan(device="cpu", log_every=5, checkpoint_every=1000), **plan)
    return train_runs(specs, TINY, [folder / run.id for run in specs], chosen)


def test_averages_and_products_train_in_one_population(tmp_path: Path) -> None:
    pairs = [spec(AdaGVAE(changed=1)), spec(AdaMLVAE(changed=1), 1), spec(AdaGVAE(4.0, changed=1), 2)]
    with_labels = [spec(GVAELabels(changed=1)), spec(AdaMLVAE(changed=1, k_known=True), 3)]
    assert len({shared_by(run) for run in pairs}) == 1
    assert len({shared_by(run) for run in with_labels}) == 1
    assert shared_by(pairs[0]) != shared_by(with_labels[0])
    together = train(tmp_path / "together", [*pairs, *with_labels])
    for which in (1, 3):
        [alone] = train(tmp_path / "alone", [[*pairs, *with_labels][which]])
        assert largest_difference(alone, together[which]) < 1e-4


@every_method
def test_batches_of_the_device_train_as_those_of_the_host(method: Method) -> None:
    ways: list[Batches] = [ResidentBatches(TINY, CPU), HostBatches(TINY, CPU)]
    terms = []
    for source in ways:
        sizes = source.label_sizes(method.sampling)
        population = Population([spec(method, seed) for seed in (0, 1)], TINY.shape, CPU, sizes)
        update = Update(population, source, len(TINY))
        update.run(3)
        terms.append(update.take_terms()[0])
    for name, values in terms[0].items():
        assert torch.equal(values, terms[1][name]), name


def test_pairs_teach_which_dimensions_change() -> None:
    """With labels dimension j is for factor j: soon those of the two places hold little else."""
    method = GVAELabels(beta=1.0, changed=1)
    run = replace(spec(method, seed=1), batch=8, learning_rate=2e-3)
    source = HostBatches(TINY, CPU)
    population = Population([run], TINY.shape, CPU, source.label_sizes(method.sampling))
    Update(population, source, len(TINY)).run(250)
    factors = TINY.factors_at(np.arange(len(TINY)))
    images = torch.from_numpy(TINY.observe(factors)).float()[None] / 255
    assert population.autoencoder is not None
    with torch.no_grad():
        codes = method.encode(population.autoencoder.networks, images).mean[0].numpy()
    for j in (1, 2):
        within = [codes[factors[:, j] == value].std(axis=0) for value in range(TINY.sizes[j])]
        left = np.mean(within, axis=0) / codes.std(
            axis=0
        )  # the part of each code that factor j does not explain
        assert left[j] < 0.4
        assert left[3 - j] > 0.9, "nor does the dimension of the other place know it"


def test_a_beta_vae_learns_from_single_images() -> None:
    assert shared_by(spec(BetaVAE(2.0))) != shared_by(spec(AdaGVAE(2.0)))
