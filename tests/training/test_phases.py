"""Phases: further objectives of a network, each with optimiser moments of its own."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from training.tiny import TINY
from unweave.methods import AAE
from unweave.methods.aae import DECODER, DISCRIMINATOR, ENCODER, REGULARISER
from unweave.methods.step import StepContext
from unweave.nn.layers.precision import Precision
from unweave.runs.spec import RunSpec
from unweave.training.batches import HostBatches
from unweave.training.population import PlayerState, Population
from unweave.training.update import Update

CPU = torch.device("cpu")


def population(*methods: AAE, precision: Precision = "float32") -> tuple[Population, Update]:
    specs = [
        RunSpec(method, data=TINY.name, seed=0, batch=8, latents=3, learning_rate=2e-4, precision=precision)
        for method in methods
    ]
    source = HostBatches(TINY, CPU)
    runs = Population(specs, TINY.shape, CPU)
    return runs, Update(runs, source, len(TINY))


def player_of(runs: Population, name: str) -> PlayerState:
    return next(player for player in runs.players if player.name == name)


def first_adam_step(weight: Tensor, gradient: Tensor, rate: float, beta2: float) -> Tensor:
    """Adam's first update, whose moments are those of one gradient."""
    root = math.sqrt(1 - beta2)
    return weight - rate * root * gradient / (root * gradient.abs() + 1e-8)


def test_an_update_makes_one_adam_step_for_each_objective_in_turn() -> None:
    """The encoder moves by reconstruction, then against the updated discriminator; first steps by hand."""
    method = AAE(adversarial_rate=3.0)
    runs, update = population(method)
    reference, _ = population(method)
    batch = HostBatches(TINY, CPU).draw(reference.draws, 0, "batch", 8, method.sampling)
    networks = reference.groups[0].networks
    rates = {ENCODER: (2e-4, 0.999), DECODER: (2e-4, 0.999), DISCRIMINATOR: (3e-4, 0.9)}
    losses = method.losses(StepContext(batch, networks, reference.draws)).players
    moved = {}
    for name, (rate, beta2) in rates.items():
        weights = list(networks[name].parameters())
        gradients = torch.autograd.grad(losses[name].sum(), weights, retain_graph=True)
        moved[name] = [first_adam_step(w, g, rate, beta2) for w, g in zip(weights, gradients, strict=True)]
    with torch.no_grad():
        for name, values in moved.items():
            for weight, value in zip(networks[name].parameters(), values, strict=True):
                weight.copy_(value)
    weights = list(networks[ENCODER].parameters())
    loss = method.losses(StepContext(batch, networks, reference.draws)).players[REGULARISER]
    gradients = torch.autograd.grad(loss.sum(), weights)
    update.run(1)
    for actual, weight, gradient in zip(
        runs.groups[0].networks[ENCODER].parameters(), weights, gradients, strict=True
    ):
        expected = first_adam_step(weight, gradient, 3e-4, 0.9)
        # A gradient that is mere rounding may have another sign.
        assert ((actual - expected).abs() < 1e-6).float().mean() > 0.98
    for name in (DECODER, DISCRIMINATOR):
        for actual, weight in zip(
            runs.groups[0].networks[name].parameters(), networks[name].parameters(), strict=True
        ):
            assert ((actual - weight).abs() < 1e-6).float().mean() > 0.98


def test_rates_of_phases_may_differ_between_runs() -> None:
    runs, update = population(AAE(adversarial_rate=0.0), AAE(adversarial_rate=1.0))
    reconstruction_only, other = population(AAE(adversarial_rate=0.0))
    update.run(1)
    other.run(1)
    [alone] = [list(reconstruction_only.groups[0].networks[ENCODER].parameters())]
    for together, one in zip(runs.groups[0].networks[ENCODER].parameters(), alone, strict=True):
        torch.testing.assert_close(together[0], one[0], rtol=0, atol=1e-5)
    moved = [(p[0] - p[1]).abs().max() for p in runs.groups[0].networks[ENCODER].parameters()]
    assert max(moved) > 5e-5


def test_a_state_has_moments_of_phases_and_the_weights_once() -> None:
    runs, update = population(AAE())
    update.run(1)
    state = runs.run_state(0)
    first = player_of(runs, REGULARISER).optimiser.moments["first_moment"]
    names = [name for name in state if name.startswith("first_moment.regulariser.")]
    assert len(names) == len(first)
    assert not any(name.startswith("weights.regulariser") for name in state)
    again, _ = population(AAE())
    again.load_run_state(0, state)
    for one, other in zip(
        first, player_of(again, REGULARISER).optimiser.moments["first_moment"], strict=True
    ):
        assert torch.equal(one, other)


def test_phase_and_player_keep_one_copy_of_the_weights_in_bf16_also_after_runs_ended() -> None:
    runs, update = population(AAE(), AAE(adversarial_rate=2.0), precision="bf16")
    update.run(1)
    runs.select([1])
    update.run(1)
    owner, phase = player_of(runs, ENCODER), player_of(runs, REGULARISER)
    for one, other in zip(owner.optimiser.masters, phase.optimiser.masters, strict=True):
        assert one.data_ptr() == other.data_ptr()
        assert one.dtype == torch.float32
    for parameter, master in zip(owner.optimiser.parameters, owner.optimiser.masters, strict=True):
        torch.testing.assert_close(parameter, master.to(parameter.dtype), rtol=0, atol=0)
    assert all(moment.dtype == torch.float32 for moment in phase.optimiser.moments["second_moment"])
