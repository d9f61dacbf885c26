"""InfoVAE in training, where settings decide on the players."""

from pathlib import Path
from typing import Any

from training.stopping import largest_difference
from training.tiny import TINY
from unweave.methods import VAE, InfoVAE
from unweave.methods.method import Method
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.training.trainer import Plan, train_runs

METHODS: list[Method] = [
    InfoVAE(),
    InfoVAE(lambda_=500.0, bandwidth="median"),
    InfoVAE(alpha=0.5, lambda_=10.0, divergence="stein"),
    InfoVAE(alpha=0.5, lambda_=5.0, divergence="adversarial"),
    VAE(),
]


def spec(method: Method, seed: int = 0, steps: int = 20, **more: Any) -> RunSpec:
    return RunSpec(method, data="tiny", seed=seed, steps=steps, batch=8, latents=4, **more)


def train(folder: Path, specs: list[RunSpec]) -> list[RunFolder]:
    plan = Plan(device="cpu", log_every=10, checkpoint_every=1000)
    return train_runs(specs, TINY, [folder / run.id for run in specs], plan)


def test_a_run_alone_equals_the_run_in_a_mixed_population(tmp_path: Path) -> None:
    specs = [spec(method, seed=i) for i, method in enumerate(METHODS)]
    together = train(tmp_path / "together", specs)
    for one, in_company in zip(specs[:-1], together, strict=False):
        [alone] = train(tmp_path / "alone", [one])
        assert largest_difference(alone, in_company) < 2e-4, one.method
        assert [line["step"] for line in alone.log()] == [10, 20]


def test_a_discriminator_is_trained_and_kept_only_where_it_plays(tmp_path: Path) -> None:
    runs = train(tmp_path, [spec(method) for method in METHODS])
    plays = [any(name.startswith("discriminator.") for name in run.weights()) for run in runs]
    assert plays == [False, False, False, True, False]
