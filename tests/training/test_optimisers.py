"""AdamW, schedules and warm-up: known numbers, players with own optimisers, resumed runs, populations."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from training.stopping import largest_difference, stopped_after
from training.test_trainer import spec, train
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.methods import VAE, BetaVAE, FactorVAE, InfoGANCR, info_gan_cr
from unweave.methods.factor_vae import DISCRIMINATOR
from unweave.methods.info_gan_cr import PAIR_JUDGE
from unweave.methods.method import AUTOENCODER, Adam, AdamW, Player
from unweave.nn.optimiser import OPTIMISERS, PopulationOptimiser, optimiser_named
from unweave.nn.schedule import SCHEDULES, is_always_one, rate_share, schedule_named
from unweave.runs.spec import RunSpec
from unweave.training.batches import HostBatches
from unweave.training.population import (
    MAY_DIFFER,
    PlayerState,
    Population,
    has_compact_moments,
    shared_by,
)
from unweave.training.update import Update

CPU = torch.device("cpu")


def noise(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("decay", [0.0, 0.01, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_adamw_is_that_of_torch(decay: float, dtype: torch.dtype) -> None:
    """Two runs with different learning rates, each compared with torch.optim.AdamW.

    torch adds epsilon after bias correction. Its epsilon is set at each step so that both forms are equal.
    """
    settings, rates = AdamW(weight_decay=decay, epsilon=1e-4), (0.01, 0.03)
    ours = PopulationOptimiser([noise(0, 2, 3, 4), noise(1, 2, 5)], settings)
    theirs = [[master[run].clone().to(dtype).requires_grad_() for master in ours.masters] for run in range(2)]
    options: dict[str, Any] = {"weight_decay": decay, "betas": (settings.beta1, settings.beta2)}
    optimisers = [
        torch.optim.AdamW(parameters, lr=rate, **options)
        for parameters, rate in zip(theirs, rates, strict=True)
    ]
    for step in range(10):
        share = 1 - step / 10  # the decay follows the schedule too
        gradients = [noise(10 * step + i, *master.shape) for i, master in enumerate(ours.masters)]
        ours.update(gradients, torch.tensor(step), share * torch.tensor(rates))
        for run, optimiser in enumerate(optimisers):
            for parameter, gradient in zip(theirs[run], gradients, strict=True):
                parameter.grad = gradient[run].to(dtype)
            [group] = optimiser.param_groups
            group["lr"] = share * rates[run]
            group["eps"] = settings.epsilon / math.sqrt(1 - settings.beta2 ** (step + 1))
            optimiser.step()
    for i, master in enumerate(ours.masters):
        expected = torch.stack([theirs[run][i].detach() for run in range(2)])
        torch.testing.assert_close(master.to(dtype), expected, rtol=1e-6, atol=1e-6)


def test_decay_applies_to_biases_and_follows_the_rate() -> None:
    """Without gradients weights and biases shrink by rate * decay; where the rate is 0, not at all."""
    start = [torch.ones(2, 3, 4), torch.ones(2, 3)]
    optimiser = PopulationOptimiser([tensor.clone() for tensor in start], AdamW(weight_decay=0.1))
    optimiser.update([torch.zeros_like(tensor) for tensor in start], torch.tensor(0), torch.tensor([0, 0.5]))
    for master in optimiser.masters:
        assert torch.equal(master[0], torch.ones_like(master[0]))
        torch.testing.assert_close(master[1], torch.full_like(master[1], 0.95))


def test_a_decay_below_the_rounding_error_is_not_lost() -> None:
    """1 - 1e-8 is 1 in float32. Decay and Adam's change are summed before they are rounded."""
    start, rate, moved = torch.linspace(1, 2, 1000)[None], torch.full((1,), 1e-4), {}
    for decay in (0.0, 1e-4):
        optimiser = PopulationOptimiser([start.clone()], AdamW(weight_decay=decay))
        for step in range(100):
            optimiser.update([noise(step, 1, 1000)], torch.tensor(step), rate)
        moved[decay] = float((start - optimiser.masters[0]).double().mean())
    assert moved[1e-4] - moved[0.0] == pytest.approx(1.5e-6, rel=0.2)


def test_optimisers_and_schedules_are_found_by_name() -> None:
    assert list(OPTIMISERS) == ["adam", "adamw", "compact_adam"]
    assert optimiser_named("adam") == Adam()
    assert optimiser_named("compact_adam") == Adam(compact=True)
    assert optimiser_named("adamw", 0.3) == AdamW(weight_decay=0.3)
    assert {name: schedule_named(name) for name in SCHEDULES} == SCHEDULES
    with pytest.raises(
        UnweaveError, match=r'there is no optimiser "sgd"\. Known: adam, adamw, compact_adam.'
    ):
        optimiser_named("sgd")
    with pytest.raises(UnweaveError, match=r'there is no schedule "step"\. Known: constant, linear'):
        schedule_named("step")


def test_schedules_have_known_values() -> None:
    step, steps = torch.tensor([0.0, 25, 50, 75, 100]), torch.tensor(100.0)
    root = math.sqrt(0.5)
    expected = {
        "constant": [1.0] * 5,
        "linear": [1, 0.75, 0.5, 0.25, 0],
        "cosine": [1, (1 + root) / 2, 0.5, (1 - root) / 2, 0],
    }
    assert expected.keys() == SCHEDULES.keys()
    for name, shares in expected.items():
        torch.testing.assert_close(rate_share(name, step, steps), torch.tensor(shares))
        assert is_always_one(name) == (set(shares) == {1.0})
        assert not is_always_one(name, 0.2), "the rate rises first"


def test_the_rate_rises_from_0_and_then_follows_the_schedule() -> None:
    step, steps = torch.tensor([0.0, 10, 20, 60, 100]), torch.tensor(100.0)
    expected = {
        "constant": [0, 0.5, 1, 1, 1],
        "linear": [0, 0.5, 1, 0.5, 0],
        "cosine": [0, 0.5, 1, 0.5, 0],
    }
    for name, shares in expected.items():
        torch.testing.assert_close(rate_share(name, step, steps, 0.2), torch.tensor(shares))


def test_a_resumed_run_with_adamw_and_warmup_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    more: dict[str, Any] = {"optimiser": "adamw", "weight_decay": 0.1, "warmup": 0.4, "schedule": "cosine"}
    specs = [spec(BetaVAE(2.0), seed, steps=14, **more) for seed in (0, 1)]
    whole = train(tmp_path / "whole", specs)
    with stopped_after(3):  # within the warm-up
        train(tmp_path / "parts", specs)
    parts = train(tmp_path / "parts", specs)
    for one, other in zip(whole, parts, strict=True):
        assert largest_difference(one, other) == 0
        assert one.log() == other.log()


def test_optimiser_decay_and_warmup_change_training(tmp_path: Path) -> None:
    adamw: dict[str, Any] = {"optimiser": "adamw", "learning_rate": 1e-3}
    runs = train(
        tmp_path,
        [
            spec(VAE(), steps=10, learning_rate=1e-3),
            spec(VAE(), steps=10, weight_decay=1e-12, **adamw),
            spec(VAE(), steps=10, weight_decay=5.0, **adamw),
            spec(VAE(), steps=10, learning_rate=1e-3, warmup=0.5),
        ],
    )
    plain, undecayed, decayed, warmed = runs
    assert largest_difference(plain, undecayed) < 1e-6
    assert largest_difference(plain, decayed) > 1e-4
    assert largest_difference(plain, warmed) > 1e-4


def player_of(population: Population, name: str) -> PlayerState:
    (matching,) = [player for player in population.players if player.name == name]
    return matching


def test_the_run_decides_for_the_players_that_do_not() -> None:
    run = spec(FactorVAE(), optimiser="adamw", weight_decay=0.1, schedule="linear")
    population = Population([run], TINY.shape, CPU)
    assert player_of(population, AUTOENCODER).optimiser.settings == AdamW(weight_decay=0.1)
    judge = player_of(population, DISCRIMINATOR)
    assert judge.optimiser.settings == Adam(1e-4, 0.5, 0.9, 1e-8)
    assert judge.schedule == "linear"


def test_compact_moments_are_for_adam_in_bf16_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unweave.training.population.has_triton", lambda: True)
    cuda = torch.device("cuda")
    compact: dict[str, Any] = {"optimiser": "compact_adam", "precision": "bf16"}
    run, plain = spec(FactorVAE(), **compact), spec(FactorVAE(), precision="bf16")
    (judge,) = run.method.players
    assert isinstance(judge.optimiser, Adam)
    assert has_compact_moments(run, Adam(), cuda)
    assert has_compact_moments(run, judge.optimiser, cuda)  # the discriminator follows the run
    assert not has_compact_moments(run, AdamW(), cuda)
    assert not has_compact_moments(run, Adam(), CPU)
    assert not has_compact_moments(spec(FactorVAE(), optimiser="compact_adam"), Adam(), cuda)
    assert not has_compact_moments(plain, Adam(), cuda)


def test_compact_adam_is_adam_on_a_cpu(tmp_path: Path) -> None:
    plain, compact = train(
        tmp_path, [spec(VAE(), steps=10, optimiser=name) for name in ("adam", "compact_adam")]
    )
    assert largest_difference(plain, compact) == 0


def with_own(optimiser: AdamW, schedule: str | None = None) -> property:
    """The players of FactorVAE with another optimiser."""
    [player] = FactorVAE().players
    own: Player = dataclasses.replace(player, optimiser=optimiser, schedule=schedule)
    return property(lambda _: (own,))


def test_a_player_may_have_an_optimiser_and_a_schedule_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the last step of a linear schedule the autoencoder hardly moves, a constant player as always."""
    own = AdamW(learning_rate=1e-2, weight_decay=0.5)
    monkeypatch.setattr(FactorVAE, "players", with_own(own, "constant"))
    population = Population([spec(FactorVAE(), steps=1000, schedule="linear")], TINY.shape, CPU)
    judge, autoencoder = player_of(population, DISCRIMINATOR), player_of(population, AUTOENCODER)
    assert judge.optimiser.settings == own
    moves = {}
    population.step.fill_(999)
    before = {id(p): [m.clone() for m in p.optimiser.masters] for p in (judge, autoencoder)}
    Update(population, HostBatches(TINY, CPU), len(TINY)).run(1)
    for player in (judge, autoencoder):
        pairs = zip(player.optimiser.masters, before[id(player)], strict=True)
        moves[player.name] = max(float((after - was).abs().max()) for after, was in pairs)
    assert moves[AUTOENCODER] < 1e-6
    assert moves[DISCRIMINATOR] > 1e-3


def test_an_unknown_schedule_of_a_player_is_an_error_before_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FactorVAE, "players", with_own(AdamW(), "cosin"))
    with pytest.raises(UnweaveError, match=r'there is no schedule "cosin"\. Did you mean'):
        Population([spec(FactorVAE())], TINY.shape, CPU)


def test_runs_whose_players_are_optimised_otherwise_form_groups_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A decay that is a number of the method must not be taken from the first run of a group."""
    [player] = FactorVAE().players

    def players(method: FactorVAE) -> tuple[Player, ...]:
        return (dataclasses.replace(player, optimiser=AdamW(weight_decay=float(method.gamma))),)

    monkeypatch.setattr(FactorVAE, "players", property(players))
    runs = [spec(FactorVAE(gamma), seed) for seed, gamma in enumerate((1.0, 2.0, 1.0))]
    population = Population(runs, TINY.shape, CPU)
    decays = [group.players[0].optimiser.settings for group in population.groups]
    assert decays == [AdamW(weight_decay=1.0), AdamW(weight_decay=2.0)]


def test_weights_do_not_decay_before_a_player_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(info_gan_cr, "adam", lambda rate: AdamW(rate, beta1=0.5, weight_decay=1.0))
    methods = InfoGANCR(alpha_from=0.75), InfoGANCR(alpha_from=0.25)
    runs = [
        RunSpec(method, TINY.name, seed=seed, steps=4, latents=3, batch=6)
        for seed, method in enumerate(methods)
    ]
    population = Population(runs, TINY.shape, CPU)
    judge = player_of(population, PAIR_JUDGE)
    before = [master.clone() for master in judge.optimiser.masters]
    Update(population, HostBatches(TINY, CPU), len(TINY)).run(2)
    for master, was in zip(judge.optimiser.masters, before, strict=True):
        assert torch.equal(master[0], was[0])
    assert any(
        not torch.equal(master[1], was[1])
        for master, was in zip(judge.optimiser.masters, before, strict=True)
    )


# Another value of each field in which the runs of a population must agree.
OTHER: dict[str, dict[str, Any]] = {
    "data": {"data": "rooms"},
    "batch": {"batch": 16},
    "latents": {"latents": 5},
    "architecture": {"architecture": "mlp"},
    "likelihood": {"likelihood": "gaussian"},
    "player_rate": {"player_rate": 2.0},
    "optimiser": {"optimiser": "adamw", "weight_decay": 0.1},
    "weight_decay": {"optimiser": "adamw", "weight_decay": 0.2},
    "schedule": {"schedule": "linear"},
    "warmup": {"warmup": 0.1},
    "gradient_clip": {"gradient_clip": 1.0},
    "precision": {"precision": "tf32"},
}


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(RunSpec)])
def test_each_field_may_differ_in_a_population_or_splits_it(field: str) -> None:
    if field in MAY_DIFFER:
        assert field not in OTHER
        return
    assert field in OTHER, f"add another value of {field} to OTHER, or the field to MAY_DIFFER"
    one, other = RunSpec(VAE()), RunSpec(VAE(), **OTHER[field])
    assert shared_by(one) != shared_by(other)
    with pytest.raises(UnweaveError, match=rf"must agree in .*\b{field}\b"):
        Population([one, other], TINY.shape, CPU)


def test_runs_that_differ_in_weight_decay_alone_train_apart() -> None:
    one, other = (RunSpec(VAE(), optimiser="adamw", weight_decay=decay) for decay in (0.1, 0.2))
    assert shared_by(one) != shared_by(other)


def test_what_may_differ_does_not_split_a_population() -> None:
    one = spec(VAE())
    other = spec(BetaVAE(4.0), seed=1, steps=7, learning_rate=1e-2)
    assert shared_by(one) == shared_by(other)
