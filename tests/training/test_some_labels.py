"""Methods that learn from some labels: alone, in a population, resumed, with batches from host and device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from methods.played import on_meta, own_step
from training.tiny import TINY
from unweave.methods import (
    M1,
    M2,
    S2DIPVAE1,
    FStatistic,
    GeneralizedM2,
    S2BetaTCVAE,
    S2BetaVAE,
)
from unweave.methods.method import Method
from unweave.runs.run import Run
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.training.batches import HostBatches, ResidentBatches
from unweave.training.population import Population
from unweave.training.trainer import Plan, train_runs
from unweave.training.update import Update

CPU = torch.device("cpu")
TRIPLES: dict[str, list[Method]] = {
    "s2": [
        S2BetaVAE(gamma_sup=4.0, labels=20),
        S2BetaTCVAE(labels=20, supervised_loss="embed", annealing="anneal", annealing_steps=5.0),
        S2DIPVAE1(labels=20, supervised_loss="l2"),
    ],
    "m1": [M1(labels=20), S2BetaVAE(supervised_loss="cov", labels=20), M1(labels=20)],
    "m2": [M2(), M2(alpha=2.0), M2(alpha=0.5)],
    "generalized_m2": [
        GeneralizedM2(samples=2),
        GeneralizedM2(samples=2, gamma=2.0),
        GeneralizedM2(samples=2, temperature=1.0),
    ],
    "f_statistic": [FStatistic(), FStatistic(), FStatistic()],
}
each_method = pytest.mark.parametrize("methods", TRIPLES.values(), ids=TRIPLES)


def spec(method: Method, seed: int = 0, steps: int = 10, **more: Any) -> RunSpec:
    return RunSpec(method, data="tiny", seed=seed, steps=steps, batch=8, latents=4, **more)


def train(folder: Path, specs: list[RunSpec]) -> list[RunFolder]:
    plan = Plan(device="cpu", log_every=5, checkpoint_every=1000)
    return train_runs(specs, TINY, [folder / run.id for run in specs], plan)


@each_method
def test_batches_from_a_table_train_the_same(methods: list[Method]) -> None:
    """The path that draws batches on the device, tested on the CPU."""
    results = []
    for source in (HostBatches(TINY, CPU), ResidentBatches(TINY, CPU)):
        one = spec(methods[0])
        population = Population([one], TINY.shape, CPU, source.label_sizes(one.method.sampling))
        update = Update(population, source, len(TINY))
        update.run(2)
        results.append({name: term.item() for name, term in update.take_terms()[0].items()})
    assert results[0] == pytest.approx(results[1], rel=1e-5)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("name", ["m2", "generalized_m2", "f_statistic"])
def test_nothing_waits_for_the_device(name: str, precision: Any) -> None:
    """Tensors of the meta device have no values: an update that reads one fails."""
    one = spec(TRIPLES[name][0], precision=precision)
    sizes = HostBatches(TINY, CPU).label_sizes(one.method.sampling)
    specs = [one, replace(one, seed=1)]
    on_cpu, runs = (Population(specs, TINY.shape, torch.device(name), sizes) for name in ("cpu", "meta"))
    batch = HostBatches(TINY, CPU).draw(on_cpu.draws, 0, "batch", 4, on_cpu.sampling)
    meta = on_meta(batch)
    method = runs.groups[0].method
    at_step = own_step(runs.step, 60, runs.draws, "bernoulli", runs.steps)
    losses = method.losses(at_step(meta, runs.groups[0].networks))
    for value in [*losses.players.values(), *losses.terms.values()]:
        assert value.device.type == "meta"
        assert value.shape == (2,)
        assert value.dtype == torch.float32


def test_labels_teach_the_first_dimensions_of_the_code(tmp_path: Path) -> None:
    """With enough weight each of them follows its factor, and the same method without labels does not."""
    few = {"batch": 16, "learning_rate": 1e-3}
    taught, alone = (
        RunSpec(S2BetaVAE(beta=1.0, gamma_sup=gamma), "tiny", steps=120, latents=4, **few)  # type: ignore[arg-type]
        for gamma in (10.0, 0.0)
    )
    factors = TINY.sample_factors(200, 1)
    own = []
    for folder in train(tmp_path, [taught, alone]):
        codes = Run(folder, data=TINY).encode(TINY.observe(factors))
        own.append(min(np.corrcoef(codes[:, j], factors[:, j])[0, 1] for j in range(3)))
    assert own[0] > 0.8
    assert own[1] < 0.5
