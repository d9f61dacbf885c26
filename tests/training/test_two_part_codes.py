"""Adversarial split, LORD and DrNet in training: alone, in a population, resumed; and their runs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from methods.played import on_meta, own_step
from training.tiny import TINY
from unweave.methods import LORD, AdversarialSplit, DrNet
from unweave.methods.method import Method
from unweave.runs.run import Run
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.training.batches import HostBatches, ResidentBatches
from unweave.training.population import Population
from unweave.training.trainer import Plan, train_runs
from unweave.training.update import Update

TRIPLES: list[list[Method]] = [
    [
        AdversarialSplit(),
        AdversarialSplit(swap_weight=2.0, beta=4.0),
        AdversarialSplit(adversarial_weight=50.0),
    ],
    [
        LORD(points=20),
        LORD(points=20, content_std=0.1, encoder_weight=50.0),
        LORD(points=20, second_stage=0.3),
    ],
    [DrNet(), DrNet(alpha=10.0), DrNet(beta=5.0)],
]
each_method = pytest.mark.parametrize("methods", TRIPLES, ids=["adversarial_split", "lord", "drnet"])
CPU = torch.device("cpu")


def spec(method: Method, seed: int = 0, steps: int = 10, **more: Any) -> RunSpec:
    return RunSpec(method, data="tiny", seed=seed, steps=steps, batch=4, latents=5, **more)


def train(folder: Path, specs: list[RunSpec]) -> list[RunFolder]:
    plan = Plan(device="cpu", log_every=5, checkpoint_every=1000)
    return train_runs(specs, TINY, [folder / run.id for run in specs], plan)


@each_method
def test_a_trained_run_encodes_decodes_and_swaps(tmp_path: Path, methods: list[Method]) -> None:
    [folder] = train(tmp_path, [spec(methods[0], steps=3)])
    run = Run(folder, data=TINY)
    images = TINY.observe(TINY.sample_factors(6, 0))
    codes = run.encode(images)
    assert codes.shape == (6, 5)
    assert run.decode(codes).shape == (6, *TINY.shape)
    content = run.spec.method.content_dimensions(run.spec.latents)
    assert content == 2
    swapped = np.concatenate([codes[::-1, :content], codes[:, content:]], axis=1)
    assert not np.allclose(run.decode(swapped), run.decode(codes))
    drawn = run.posterior(images).sample(torch.ones(6, 5))
    assert (np.abs(drawn.numpy() - codes)[:, :content] < 0.011).all(), "the first part is not drawn"


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
@each_method
def test_nothing_waits_for_the_device(methods: list[Method], precision: Any) -> None:
    """Tensors of the meta device have no values: an update that reads one fails."""
    one = spec(methods[0], precision=precision)
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


def test_the_second_stage_of_lord_begins_half_way(tmp_path: Path) -> None:
    method = LORD(points=20)
    [folder] = train(tmp_path, [spec(method, steps=20)])
    assert [line["stage"] for line in folder.log()] == [1, 1, 2, 2]
    codes = {name for name in folder.weights() if name.startswith("codes.")}
    assert codes == {"codes.classes.rows", "codes.images.rows"}
