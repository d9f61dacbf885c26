"""Skipped updates and averages of weights: their closed forms, what a skip leaves alone, checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from training.stopping import check_resumed
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.methods import VDVAE
from unweave.methods.method import AUTOENCODER, AdamW
from unweave.methods.vd_vae import USE
from unweave.nn.optimiser import AVERAGE, PopulationOptimiser
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder, weights_in
from unweave.training.batches import HostBatches
from unweave.training.gradients import gradient_norms
from unweave.training.population import PlayerState, Population
from unweave.training.trainer import Plan, train_runs
from unweave.training.update import SKIPPED, Update

CPU = torch.device("cpu")
RATES = torch.tensor([0.01, 0.01])


def noise(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def optimiser_of(decay: float = 0.0, may_skip: bool = False) -> PopulationOptimiser:
    parameters = [noise(0, 2, 3, 4), noise(1, 2, 5)]
    return PopulationOptimiser(parameters, AdamW(), decay=decay, may_skip=may_skip)


def tensors_of(optimiser: PopulationOptimiser) -> list[Tensor]:
    """Weights, moments and averages."""
    return [*optimiser.masters, *(tensor for tensors in optimiser.moments.values() for tensor in tensors)]


def test_the_average_is_an_exponential_one_that_soon_forgets_the_initial_weights() -> None:
    """sum_t (1 - d_t) p_t prod_{s > t} d_s, with d_t = min(decay, (1 + t) / (10 + t))."""
    optimiser = optimiser_of(decay=0.4)
    weights, decays = [optimiser.masters[0].clone()], []
    for step in range(12):
        optimiser.update(
            [noise(9 * step + i, *p.shape) for i, p in enumerate(optimiser.masters)],
            torch.tensor(step),
            RATES,
        )
        weights.append(optimiser.masters[0].clone())
        decays.append(min(0.4, (2 + step) / (11 + step)))
    assert decays[0] < 0.2
    assert decays[-1] == 0.4
    expected = weights[0] * torch.tensor(decays).prod()
    for t, weight in enumerate(weights[1:]):
        expected += (1 - decays[t]) * weight * torch.tensor(decays[t + 1 :]).prod()
    torch.testing.assert_close(optimiser.moments[AVERAGE][0], expected)


def test_a_skipped_update_leaves_weights_moments_and_average_untouched() -> None:
    """The other run, and the skipped one later on, move as if there had been no such update."""
    skipping = optimiser_of(0.9, may_skip=True)
    steps = [noise(step, 2, 17) for step in range(4)]
    for step, flat in enumerate(steps):
        gradients = [flat[:, :12].view(2, 3, 4), flat[:, 12:]]
        before = [tensor.clone() for tensor in tensors_of(skipping)]
        if step == 1:
            gradients = [g * torch.tensor([1.0, torch.nan]).view(2, *[1] * (g.dim() - 1)) for g in gradients]
        skipping.update(gradients, torch.tensor(step), RATES, torch.tensor([False, step == 1]))
        for tensor, old in zip(tensors_of(skipping), before, strict=True):
            assert torch.equal(tensor[1], old[1]) == (step == 1)
            assert not torch.equal(tensor[0], old[0])
    for run, updates in enumerate(([0, 1, 2, 3], [0, 2, 3])):
        alone = optimiser_of(0.9)
        for number, step in enumerate(updates):
            alone.update(
                [steps[step][:, :12].view(2, 3, 4), steps[step][:, 12:]], torch.tensor(number), RATES
            )
        for tensor, expected in zip(tensors_of(skipping), tensors_of(alone), strict=True):
            torch.testing.assert_close(tensor[run], expected[run], rtol=0, atol=1e-7)
    assert skipping.skipped is not None
    assert skipping.skipped.tolist() == [0, 1]


def population_of(method: VDVAE, **more: Any) -> tuple[Population, Update, PlayerState]:
    specs = [RunSpec(method, TINY.name, seed=s, batch=4, latents=2, steps=50, **more) for s in (0, 1)]
    population = Population(specs, TINY.shape, CPU)
    [player] = [player for player in population.players if player.name == AUTOENCODER]
    return population, Update(population, HostBatches(TINY, CPU), len(TINY)), player


SMALL: dict[str, Any] = {"layers": 2, "width": 4, "zdim": 2}


def test_updates_with_large_gradients_are_skipped_before_they_are_clipped() -> None:
    _, update, player = population_of(VDVAE(**SMALL))
    [norms] = [gradient_norms(gradients) for owner, gradients in update.gradients() if owner is player]
    low, high = sorted(norms.tolist())
    method = VDVAE(**SMALL, skip_threshold=(low + high) / 2)
    population, update, player = population_of(method, gradient_clip=low / 10)
    before = [{name: tensor.clone() for name, tensor in population.run_state(run).items()} for run in (0, 1)]
    update.run(1)
    skips = [norm == high for norm in norms.tolist()]
    assert update.take_terms()[0][SKIPPED].tolist() == [float(skip) for skip in skips]
    for run, skip in enumerate(skips):
        after = population.run_state(run)
        same = {name: torch.equal(before[run][name], after[name]) for name in after}
        assert all(equal for name, equal in same.items() if f".{AUTOENCODER}." in name) == skip
        assert same[f"weights.{USE}.kl"] == skip  # the average divergence does not see the outlier either
    assert player.optimiser.skipped is not None
    assert player.optimiser.skipped.tolist() == [int(skip) for skip in skips]


def test_trained_weights_are_the_average_and_losses_get_the_last_ones() -> None:
    population, update, player = population_of(VDVAE(**SMALL), learning_rate=1e-2)
    update.run(3)
    state = {name: tensor.clone() for name, tensor in population.run_state(1).items()}
    trained = weights_in(state)
    assert trained.keys() == population.trained_weights(1).keys()
    name = f"{AUTOENCODER}.last.weight"
    assert torch.equal(trained[name], state[f"{AVERAGE}.{name}"])
    assert not torch.equal(trained[name], state[f"weights.{name}"])
    network = player.networks[AUTOENCODER]
    assert torch.equal(network.get_parameter("last.weight")[1], state[f"weights.{name}"])
    population.select([1])
    assert all(torch.equal(population.run_state(0)[key], tensor) for key, tensor in state.items())


def train(folder: Path, specs: list[RunSpec]) -> list[RunFolder]:
    plan = Plan(device="cpu", log_every=2, checkpoint_every=1000)
    return train_runs(specs, TINY, [folder / run.id for run in specs], plan)


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    """Some updates before and after the stop are skipped, so that the count of updates made matters."""
    method = VDVAE(**SMALL, skip_threshold=1.35)
    specs = [RunSpec(method, TINY.name, seed=s, steps=6, batch=4, latents=2) for s in (0, 1)]
    check_resumed(train, tmp_path, specs, step=3)
    shares = [line[SKIPPED] for run in train(tmp_path / "whole", specs) for line in run.log()]
    assert 0 < sum(shares) < len(shares)


def test_runs_with_other_limits_train_apart() -> None:
    specs = [RunSpec(VDVAE(**SMALL, ema_rate=rate), TINY.name, latents=2) for rate in (0.9, 0.99)]
    with pytest.raises(UnweaveError, match="runs of one population must agree"):
        Population(specs, TINY.shape, CPU)
