"""QLAE and the ladder VAE in training: alone, in a population, resumed; and what their runs can do."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.methods import QLAE, VAE, LadderVAE
from unweave.methods.method import Method
from unweave.runs.run import Run
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.training.trainer import Plan, train_runs

TRIPLES: list[list[Method]] = [
    [QLAE(), QLAE(lambda_commit=0.1), QLAE(lambda_quantize=0.0)],
    [LadderVAE(kl_warmup=10.0), LadderVAE(beta=4.0, kl_warmup=5.0), LadderVAE(beta=2.0, kl_warmup=0.0)],
]
both = pytest.mark.parametrize("methods", TRIPLES, ids=["qlae", "ladder_vae"])


def spec(method: Method, seed: int = 0, steps: int = 20, **more: Any) -> RunSpec:
    return RunSpec(method, data="tiny", seed=seed, steps=steps, batch=8, latents=5, **more)


def train(folder: Path, specs: list[RunSpec]) -> list[RunFolder]:
    plan = Plan(device="cpu", log_every=10, checkpoint_every=1000)
    return train_runs(specs, TINY, [folder / run.id for run in specs], plan)


@both
def test_training_lowers_the_loss_and_runs_encode_and_decode(tmp_path: Path, methods: list[Method]) -> None:
    [folder] = train(tmp_path, [spec(methods[0], steps=80, learning_rate=1e-3)])
    log = folder.log()
    assert log[-1]["reconstruction"] < log[0]["reconstruction"] - 100
    run = Run(folder, data=TINY)
    images = TINY.observe(TINY.sample_factors(9, 0))
    codes = run.encode(images)
    assert codes.shape == (9, 5)
    assert run.decode(codes).shape == images.shape
    if run.spec.method.has_prior:
        assert run.sample(4).shape == (4, 1, 32, 32)
    else:
        with pytest.raises(UnweaveError, match="qlae cannot draw images"):
            run.sample(4)
    again = Run(RunFolder(folder.path), data=TINY)
    assert np.array_equal(again.posterior(images).log_var, run.posterior(images).log_var)


def test_a_ladder_of_one_layer_trains_as_a_vae(tmp_path: Path) -> None:
    [ladder] = train(tmp_path, [spec(LadderVAE(layers=1, kl_warmup=0.0), seed=4)])
    [vae] = train(tmp_path, [spec(VAE(), seed=4)])
    same = {
        name.removeprefix("autoencoder.").removeprefix("bottom_up."): weight
        for name, weight in ladder.weights().items()
    }
    weights = vae.weights()
    assert same.keys() == weights.keys()
    for name, weight in weights.items():
        torch.testing.assert_close(same[name], weight, rtol=1e-4, atol=1e-5)
    for of_ladder, of_vae in zip(ladder.log(), vae.log(), strict=True):
        assert {name: of_ladder[name] for name in of_vae} == pytest.approx(of_vae, rel=1e-4)


def test_codes_of_a_qlae_are_few_values_of_each_dimension(tmp_path: Path) -> None:
    [folder] = train(tmp_path, [spec(QLAE(), steps=200, learning_rate=1e-3)])
    codes = Run(folder, data=TINY).encode(TINY.observe(TINY.factors_at(np.arange(len(TINY)))))
    assert folder.weights()["autoencoder.codebook.values"].shape == (5, 10)
    assert all(1 < len(np.unique(code)) <= 10 for code in codes.T)
    assert len(np.unique(codes, axis=0)) > 10
    assert np.abs(codes).max() <= 2


def test_decay_shrinks_all_layers_alike(tmp_path: Path) -> None:
    """Decoupled decay takes the same share of every layer, whatever the size of its gradients.

    A penalty in the loss, which Adam rescales, shrinks layers with small gradients far more than others.
    """
    specs = [spec(QLAE(decay=decay), steps=60, learning_rate=1e-3) for decay in (0.0, 2.0)]
    free, decayed = (folder.weights() for folder in train(tmp_path, specs))
    shares = {
        name: float(decayed[name].norm() / free[name].norm()) for name in free if name.endswith("weight")
    }
    # (1 - 1e-3 x 2)^60 = 0.887; gradients differ too, because the weights do.
    assert min(shares.values()) > 0.82
    assert max(shares.values()) < 0.95
