"""GANs and autoencoders with classes in training: alone, in a population, resumed, loaded."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from training.stopping import check_resumed, mean_difference
from training.tiny import TINY
from unweave.methods import AAE, AAEClusters, AAEHeads, AAELabels, AAESupervised, InfoGAN, InfoGANCR
from unweave.methods.method import Method
from unweave.runs.run import Run
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.training.trainer import Plan, train_runs

STEPS = 6
METHODS: list[type[Method]] = [AAE, AAEClusters, AAEHeads, AAELabels, AAESupervised, InfoGAN, InfoGANCR]
# The gap of the second run changes on the way, which the contract test of all methods does not cover.
CHANGING: list[Method] = [
    InfoGANCR(),
    InfoGANCR(alpha=3.0, alpha_from=1 / 3, gap_start=1.9, gap_end=0.1, gap_until=2 / 3),
    InfoGANCR(alpha=1.0, alpha_from=0.0),
]


def specs_of(methods: list[Method], **more: Any) -> list[RunSpec]:
    return [
        RunSpec(method, data="tiny", seed=seed, steps=STEPS, batch=8, latents=3, **more)
        for seed, method in enumerate(methods)
    ]


def train(folder: Path, specs: list[RunSpec]) -> list[RunFolder]:
    plan = Plan(device="cpu", log_every=2, checkpoint_every=1000)
    return train_runs(specs, TINY, [folder / run.id for run in specs], plan)


def test_a_run_alone_equals_the_run_in_a_population(tmp_path: Path) -> None:
    specs = specs_of(CHANGING)
    together = train(tmp_path / "together", specs)
    [alone] = train(tmp_path / "alone", [specs[1]])
    assert mean_difference(alone, together[1]) < 1e-3
    assert mean_difference(alone, together[0]) > 1e-2
    for mine, theirs in zip(alone.log(), together[1].log(), strict=True):
        assert mine == pytest.approx(theirs, rel=2e-3, abs=2e-3)


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    check_resumed(train, tmp_path, specs_of(CHANGING)[1:], step=3)


@pytest.mark.parametrize("kind", METHODS, ids=lambda kind: kind.name)
def test_a_trained_run_encodes_and_decodes(kind: type[Method], tmp_path: Path) -> None:
    [folder] = train(tmp_path, specs_of([kind()], precision="bf16"))
    run = Run(folder, data=TINY)
    assert run.result["outcome"] == "finished"
    images = TINY.observe(TINY.sample_factors(7, 0))
    codes = run.encode(images)
    assert codes.shape == (7, 3)
    assert np.isfinite(codes).all()
    assert run.posterior(images).log_var.shape == (7, 3)
    made = run.decode(codes)
    assert made.shape == (7, 1, 32, 32)
    assert 0 <= made.min() <= made.max() <= 1
    np.testing.assert_allclose(run.decode(codes[2:4]), made[2:4], rtol=1e-3, atol=1e-4)
    assert run.sample(3).shape == (3, 1, 32, 32)
