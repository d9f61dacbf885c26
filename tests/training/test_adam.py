"""Adam keeps unrounded float32 masters of bfloat16 parameters."""

import pytest
import torch
from torch import Tensor

from training.tiny import TINY
from unweave.methods import BetaVAE, FactorVAE
from unweave.methods.method import Adam
from unweave.nn.networks.vae import Encoder
from unweave.nn.optimiser import PopulationOptimiser
from unweave.runs.spec import RunSpec
from unweave.training.population import Population

RATE = 1e-5


def rounded_adam(start: Tensor) -> PopulationOptimiser:
    """Of networks that hold their parameters in bfloat16."""
    adam = PopulationOptimiser([start], Adam())
    adam.attach([start.bfloat16()])
    return adam


def updated(adam: PopulationOptimiser, steps: int) -> None:
    """Under a gradient that does not change Adam moves by its rate, whatever the gradient's size."""
    gradient = torch.full_like(adam.parameters[0], 3.0)
    for step in range(steps):
        adam.update([gradient], torch.tensor(step), torch.full((len(gradient),), RATE))


def test_updates_that_bfloat16_would_lose_add_up() -> None:
    start = torch.ones(2, 3)
    assert float(torch.tensor(1.0).bfloat16() - RATE) == 1.0, "one update alone is lost in bfloat16"
    adam = rounded_adam(start.clone())
    updated(adam, 1000)
    [master], [used] = adam.masters, adam.parameters
    torch.testing.assert_close(master, torch.full((2, 3), 1 - 1000 * RATE), rtol=0, atol=5e-5)
    assert used.dtype == torch.bfloat16
    assert torch.equal(used, master.bfloat16())
    assert float(used[0, 0]) == pytest.approx(0.99, abs=0.002)  # the spacing of bfloat16 numbers is 1/256


def test_of_float32_parameters_there_is_no_second_copy() -> None:
    start = torch.ones(2, 3)
    adam = PopulationOptimiser([start], Adam())
    updated(adam, 10)
    assert adam.masters[0].data_ptr() == adam.parameters[0].data_ptr() == start.data_ptr()
    torch.testing.assert_close(start, torch.full((2, 3), 1 - 10 * RATE), rtol=0, atol=1e-6)


def test_selected_runs_keep_their_masters_and_continue() -> None:
    start = torch.linspace(0.5, 2.0, 12).view(4, 3)
    adam, whole = rounded_adam(start.clone()), rounded_adam(start.clone())
    updated(adam, 100)
    updated(whole, 100)
    keep = torch.tensor([3, 1])
    adam.select(keep, [adam.parameters[0][keep]])
    assert torch.equal(adam.masters[0], whole.masters[0][keep])
    assert not torch.equal(adam.masters[0], adam.masters[0].bfloat16().float())
    for optimiser in (adam, whole):
        optimiser.update(
            [torch.ones_like(optimiser.parameters[0])], torch.tensor(100), torch.full((1,), RATE)
        )
    assert torch.equal(adam.masters[0], whole.masters[0][keep])
    assert torch.equal(adam.parameters[0], whole.parameters[0][keep])


def bf16_population() -> Population:
    """Three runs, two of them with a discriminator."""
    specs = [
        RunSpec(method, data="tiny", seed=seed, batch=4, latents=2, precision="bf16")
        for seed, method in enumerate((BetaVAE(2.0), FactorVAE(5.0), FactorVAE(9.0)))
    ]
    return Population(specs, TINY.shape, torch.device("cpu"))


def encoder_of(population: Population) -> Encoder:
    assert population.autoencoder is not None
    encoder = population.autoencoder.networks["encoder"]
    assert isinstance(encoder, Encoder)
    return encoder


def moved(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """A run's state after updates that bfloat16 has no numbers for."""
    return {
        name: tensor + torch.linspace(1e-7, 1e-6, tensor.numel()).view_as(tensor)
        for name, tensor in state.items()
    }


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_the_state_of_a_bf16_run_is_its_masters() -> None:
    population = bf16_population()
    states = [moved(population.run_state(run)) for run in range(3)]
    for state in states:
        assert {tensor.dtype for tensor in state.values()} == {torch.float32}
        assert any(not torch.equal(t, t.bfloat16().float()) for t in state.values())
    for run, state in enumerate(states):
        population.load_run_state(run, state)
    assert all(same(population.run_state(run), states[run]) for run in range(3))
    dense = encoder_of(population).heads.weight
    assert dense.dtype == torch.bfloat16
    name = "weights.encoder.heads.weight"
    assert torch.equal(dense, torch.stack([state[name] for state in states]).bfloat16())


def test_a_bf16_population_keeps_the_masters_of_the_runs_that_stay() -> None:
    population = bf16_population()
    states = [moved(population.run_state(run)) for run in range(3)]
    for run, state in enumerate(states):
        population.load_run_state(run, state)
    population.select([0, 2])
    assert same(population.run_state(0), states[0])
    assert same(population.run_state(1), states[2])
    population.select([1])
    assert same(population.run_state(0), states[2])
    fresh = Population([population.specs[0]], TINY.shape, torch.device("cpu"))
    fresh.load_run_state(0, population.run_state(0))
    assert same(fresh.run_state(0), states[2])
    parameters = encoder_of(fresh).parameters(), encoder_of(population).parameters()
    assert all(torch.equal(one, other) for one, other in zip(*parameters, strict=True))
