"""Players that move one after another, and players that rest until it is their time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from methods.played import own_step
from training.tiny import TINY
from unweave.methods import InfoGAN, InfoGANCR
from unweave.methods.info_gan import DISCRIMINATOR, GENERATOR
from unweave.methods.info_gan_cr import PAIR_JUDGE
from unweave.methods.method import Method
from unweave.nn.layers import Layer
from unweave.nn.layers.precision import Precision
from unweave.runs.spec import RunSpec
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.update import BATCH, Update

CPU, IMAGES, STEPS = torch.device("cpu"), 6, 4


def population_of(*methods: Method) -> Population:
    specs = [
        RunSpec(method, TINY.name, seed=seed, steps=STEPS, latents=3, batch=IMAGES)
        for seed, method in enumerate(methods)
    ]
    return Population(specs, TINY.shape, CPU)


def trained(steps: int, *methods: Method) -> Population:
    population = population_of(*methods)
    Update(population, HostBatches(TINY, CPU), len(TINY)).run(steps)
    return population


def weights_of(population: Population, player: str) -> list[Tensor]:
    (found_player,) = [candidate for candidate in population.players if candidate.name == player]
    return [weight.clone() for weight in found_player.optimiser.masters]


class PlainAdam:
    """Of lists of numbers, as its paper has it, epsilon as in TensorFlow."""

    def __init__(self, weights: Sequence[Tensor], rate: float) -> None:
        self.weights, self.rate, self.count = weights, rate, 0
        self.steps = [(torch.zeros_like(weight), torch.zeros_like(weight)) for weight in weights]

    @torch.no_grad()
    def move(self, gradients: Sequence[Tensor]) -> None:
        self.count += 1
        size = self.rate * (1 - 0.999**self.count) ** 0.5 / (1 - 0.5**self.count)
        for weight, (first, second), gradient in zip(self.weights, self.steps, gradients, strict=True):
            first.mul_(0.5).add_(0.5 * gradient)
            second.mul_(0.999).add_(0.001 * gradient**2)
            weight -= size * first / (second.sqrt() + 1e-8)


def test_the_discriminator_moves_and_then_the_generator_twice() -> None:
    method, steps = InfoGAN(), 2
    population, plain = trained(steps, method, method), population_of(method, method)
    source, (group,) = HostBatches(TINY, CPU), plain.groups
    parameters = {name: list(network.parameters()) for name, network in group.networks.items()}
    adams = {
        DISCRIMINATOR: PlainAdam(parameters[DISCRIMINATOR], 2e-3),
        GENERATOR: PlainAdam(parameters[GENERATOR], 1e-3),
    }
    for step in range(steps):
        plain.step.fill_(step)
        batch = source.draw(plain.draws, step, BATCH, IMAGES, method.sampling)
        at_step = own_step(step, len(TINY), plain.draws, "bernoulli", STEPS)
        for player in (DISCRIMINATOR, GENERATOR, GENERATOR):
            loss = method.losses(at_step(batch, group.networks)).players[player].sum()
            adams[player].move(torch.autograd.grad(loss, parameters[player]))
    for player, expected in parameters.items():
        for ours, theirs in zip(weights_of(population, player), expected, strict=True):
            # Weights whose gradient is noise go where the noise does.
            assert float((ours - theirs.detach()).abs().median()) < 2e-5


def test_gradients_are_those_of_the_objectives_and_weights_stay() -> None:
    method = InfoGAN()
    population = population_of(method, method)
    before = [weight.clone() for player in population.players for weight in player.optimiser.masters]
    update = Update(population, HostBatches(TINY, CPU), len(TINY))
    player_gradients = list(update.gradients())
    assert [player.name for player, _ in player_gradients] == [DISCRIMINATOR, GENERATOR, GENERATOR]
    batch = HostBatches(TINY, CPU).draw(population.draws, 0, BATCH, IMAGES, method.sampling)
    at_step = own_step(0, len(TINY), population.draws, "bernoulli", STEPS)
    losses = method.losses(at_step(batch, population.groups[0].networks)).players
    for player, gradients in player_gradients:
        expected = torch.autograd.grad(losses[player.name].sum(), player.parameters(), retain_graph=True)
        torch.testing.assert_close(gradients, list(expected), rtol=1e-3, atol=1e-5)
    after = [weight for player in population.players for weight in player.optimiser.masters]
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_a_late_player_starts_from_its_initial_weights_and_step_0() -> None:
    late, early = InfoGANCR(alpha_from=0.5), InfoGANCR(alpha_from=0.25)
    before = weights_of(population_of(late, early), PAIR_JUDGE)
    for steps, moved in ((1, (False, False)), (2, (False, True)), (3, (True, True))):
        after = weights_of(trained(steps, late, early), PAIR_JUDGE)
        changes = [
            torch.stack([(b - a)[run].abs().max() for a, b in zip(before, after, strict=True)])
            for run in range(2)
        ]
        assert tuple(bool(change.any()) for change in changes) == moved
        if steps == 3:
            # The first step of Adam is as long as its rate.
            torch.testing.assert_close(changes[0].max(), torch.tensor(2e-3))
            assert float(changes[1].max()) > 2.1e-3


def test_before_the_judge_starts_the_others_train_as_in_info_gan() -> None:
    ours, theirs = trained(2, InfoGANCR(alpha_from=0.5)), trained(2, InfoGAN())
    for player in (GENERATOR, DISCRIMINATOR):
        for one, other in zip(weights_of(ours, player), weights_of(theirs, player), strict=True):
            assert torch.equal(one, other)
    ours, theirs = trained(3, InfoGANCR(alpha_from=0.5)), trained(3, InfoGAN())
    assert not torch.equal(weights_of(ours, GENERATOR)[0], weights_of(theirs, GENERATOR)[0])


def test_a_generator_computes_in_tf32_where_the_others_do_in_bf16() -> None:
    def precisions(precision: Precision) -> dict[str, set[str]]:
        spec = RunSpec(InfoGANCR(), TINY.name, latents=3, batch=IMAGES, precision=precision)
        networks = Population([spec], TINY.shape, CPU).groups[0].networks
        return {
            name: {part.precision for part in network.modules() if isinstance(part, Layer)}
            for name, network in networks.items()
        }

    assert precisions("bf16") == {GENERATOR: {"tf32"}, DISCRIMINATOR: {"bf16"}, PAIR_JUDGE: {"bf16"}}
    for same in ("float32", "tf32"):
        assert precisions(same) == {GENERATOR: {same}, DISCRIMINATOR: {same}, PAIR_JUDGE: {same}}


def test_players_of_other_turns_need_no_gradient_and_can_move_again() -> None:
    population = trained(1, InfoGAN())
    assert all(p.requires_grad for player in population.players for p in player.parameters())
