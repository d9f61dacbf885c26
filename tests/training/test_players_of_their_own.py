"""GANs and autoencoders with classes in training: alone, in a population, resumed, loaded."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from training.stopping import check_resumed, largest_difference, mean_difference
from training.tiny import TINY
from unweave.methods import AAE, AAEClusters, AAEHeads, AAELabels, AAESupervised, InfoGAN, InfoGANCR
from unweave.methods.method import Method
from unweave.runs.run import Run
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.training.trainer import Plan, train_runs

STEPS = 6
# Three runs of each that differ in numbers; the gap of one changes on the way.
RUNS: dict[str, list[Method]] = {
    "info_gan": [InfoGAN(), InfoGAN(lambda_=1.0), InfoGAN()],
    "info_gan_cr": [
        InfoGANCR(),
        InfoGANCR(alpha=3.0, alpha_from=1 / 3, gap_start=1.9, gap_end=0.1, gap_until=2 / 3),
        InfoGANCR(alpha=1.0, alpha_from=0.0),
    ],
    "aae": [AAE(), AAE(adversarial_rate=2.0), AAE()],
    "aae_labels": [AAELabels(), AAELabels(label_rate=2.0), AAELabels()],
    "aae_supervised": [AAESupervised(), AAESupervised(label_rate=2.0), AAESupervised()],
    "aae_clusters": [AAEClusters(), AAEClusters(adversarial_rate=2.0), AAEClusters()],
    "aae_heads": [AAEHeads(), AAEHeads(eta=2.0), AAEHeads()],
}
each_method = pytest.mark.parametrize("name", RUNS)


def specs_of(name: str, **more: Any) -> list[RunSpec]:
    return [
        RunSpec(method, data="tiny", seed=seed, steps=STEPS, batch=8, latents=3, **more)
        for seed, method in enumerate(RUNS[name])
    ]


def train(folder: Path, specs: list[RunSpec]) -> list[RunFolder]:
    plan = Plan(device="cpu", log_every=2, checkpoint_every=1000)
    return train_runs(specs, TINY, [folder / run.id for run in specs], plan)


@each_method
def test_a_run_alone_equals_the_run_in_a_population(name: str, tmp_path: Path) -> None:
    specs = specs_of(name)
    together = train(tmp_path / "together", specs)
    [alone] = train(tmp_path / "alone", [specs[1]])
    if name.startswith("info_gan"):
        assert mean_difference(alone, together[1]) < 1e-3
        assert mean_difference(alone, together[0]) > 1e-2
    else:
        assert largest_difference(alone, together[1]) < 1e-4
        assert largest_difference(alone, together[0]) > 1e-3
    for mine, theirs in zip(alone.log(), together[1].log(), strict=True):
        assert mine == pytest.approx(theirs, rel=2e-3, abs=2e-3)


@each_method
def test_a_resumed_run_equals_an_uninterrupted_one(name: str, tmp_path: Path) -> None:
    specs = specs_of(name)[1:]
    check_resumed(train, tmp_path, specs, step=3)


@each_method
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_a_trained_run_encodes_and_decodes(name: str, precision: str, tmp_path: Path) -> None:
    [folder] = train(tmp_path, specs_of(name, precision=precision)[:1])
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
