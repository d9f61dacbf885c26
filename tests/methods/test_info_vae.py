"""InfoVAE: the terms of its formula, what is held fixed, and which loss trains what."""

import math
from dataclasses import replace
from typing import get_args

import pytest
import torch
from torch import Tensor, nn

from methods.no_draws import NoDraws
from methods.played import autoencoder_step, with_pass
from unweave.errors import UnweaveError
from unweave.methods import VAE, InfoVAE
from unweave.methods.info_vae import DISCRIMINATOR, Divergence
from unweave.methods.method import AUTOENCODER, Blueprint, Losses, StepContext
from unweave.nn.distributions.divergences import (
    Bandwidth,
    kernel_bandwidth,
    mmd,
    stein_direction,
    stein_discrepancy,
)
from unweave.nn.distributions.gaussian import Gaussian
from unweave.runs.spec import RunSpec, method_with
from unweave.streams import Stream

DIVERGENCES: tuple[Divergence, ...] = get_args(Divergence)
every_divergence = pytest.mark.parametrize("divergence", DIVERGENCES)


class Prior(NoDraws):
    """Draws from the prior that are known; nothing else may be drawn."""

    def __init__(self, numbers: Tensor) -> None:
        self.numbers = numbers

    def normal(self, purpose: str, rows: int, columns: int) -> Tensor:
        assert purpose == "prior"
        assert self.numbers.shape[-2:] == (rows, columns)
        return self.numbers


class Recorder(nn.Module):
    """A discriminator that records its inputs and returns known logits, of codes and of the prior."""

    def __init__(self, codes: Tensor, prior: Tensor) -> None:
        super().__init__()
        self.logits = torch.cat([codes, prior])
        self.inputs: list[Tensor] = []

    def forward(self, z: Tensor) -> Tensor:
        self.inputs.append(z)
        return self.logits


def numbers(purpose: str) -> Tensor:
    return torch.from_numpy(Stream.of(0).child(purpose).normal(8, 3)).double()


def logits(*first_minus_second: float) -> Tensor:
    first = torch.tensor(first_minus_second, dtype=torch.float64)
    return torch.stack([first + 0.25, torch.full_like(first, 0.25)], dim=-1)


def forward(discriminator: nn.Module | None = None) -> StepContext:
    posterior = Gaussian(numbers("mean").requires_grad_(), numbers("log_var").requires_grad_())
    sample = posterior.sample(numbers("noise"))
    return autoencoder_step(
        reconstruction=(sample.sin() + 2).sum(-1).mean(-1),
        posterior=posterior,
        sample=sample,
        step=0,
        data_size=100,
        draws=Prior(numbers("prior")),
        networks={} if discriminator is None else {DISCRIMINATOR: discriminator},
    )


def small_discriminator() -> nn.Module:
    layer = nn.Linear(3, 2, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(numbers("weights")[:2])
        layer.bias.zero_()
    return nn.Sequential(layer, nn.Tanh())


def gradients(losses: Losses, context: StepContext) -> tuple[Tensor, ...]:
    inputs = (context.forward.posterior.mean, context.forward.posterior.log_var)
    return torch.autograd.grad(losses.players[AUTOENCODER], inputs, retain_graph=True)


@every_divergence
def test_at_alpha_0_and_lambda_1_it_is_the_vae_to_the_last_bit(divergence: Divergence) -> None:
    context = forward(small_discriminator())
    losses = InfoVAE(alpha=0, lambda_=1, divergence=divergence).losses(context)
    expected = VAE().losses(context)
    assert torch.equal(losses.players[AUTOENCODER], expected.players[AUTOENCODER])
    for mine, theirs in zip(gradients(losses, context), gradients(expected, context), strict=True):
        assert torch.equal(mine, theirs)
    assert {name: losses.terms[name] for name in expected.terms} == dict(expected.terms)


# (alpha, lambda, weight of KL, weight of the divergence)
WEIGHTS = [(0.0, 1000.0, 1.0, 999.0), (1.0, 50.0, 0.0, 50.0), (0.25, 1.5, 0.75, 0.75)]


@pytest.mark.parametrize(("alpha", "lambda_", "of_kl", "of_divergence"), WEIGHTS)
def test_weights_of_the_formula(alpha: float, lambda_: float, of_kl: float, of_divergence: float) -> None:
    context = forward()
    losses = InfoVAE(alpha=alpha, lambda_=lambda_).losses(context)
    divergence = mmd(context.forward.sample, numbers("prior"), torch.tensor(9.0)).item()
    vae = context.forward.reconstruction.item() + of_kl * context.forward.kl.item()
    expected = vae + of_divergence * divergence
    assert losses.players[AUTOENCODER].item() == pytest.approx(expected)
    assert losses.terms["divergence"].item() == pytest.approx(divergence)
    assert divergence > 0.01


def test_the_divergence_of_known_codes() -> None:
    """Two codes 0 and 2, prior 0 and 1, D = 1, so h = 1; the posterior has KL = 0."""
    one, four = math.exp(-1), math.exp(-4)
    expected = (2 + 2 * four) / 4 + (2 + 2 * one) / 4 - 2 * (1 + 2 * one + four) / 4
    zeros = torch.zeros(2, 1, dtype=torch.float64)
    context = with_pass(
        forward(),
        reconstruction_loss=torch.tensor(5.0, dtype=torch.float64),
        posterior=Gaussian(zeros, zeros),
        sample=torch.tensor([[0.0], [2.0]], dtype=torch.float64),
    )
    draws = Prior(torch.tensor([[0.0], [1.0]], dtype=torch.float64))
    losses = InfoVAE(alpha=0.5, lambda_=10).losses(replace(context, draws=draws))
    assert losses.players[AUTOENCODER].item() == pytest.approx(5 + 9.5 * expected)


@pytest.mark.parametrize("bandwidth", get_args(Bandwidth))
def test_the_stein_gradient_is_the_direction(bandwidth: Bandwidth) -> None:
    context = forward()
    width = kernel_bandwidth(context.forward.sample, bandwidth)
    method = InfoVAE(alpha=1, lambda_=2, divergence="stein", bandwidth=bandwidth)
    losses = method.losses(context)
    (gradient,) = torch.autograd.grad(losses.players[AUTOENCODER], context.forward.sample, retain_graph=True)
    (of_reconstruction,) = torch.autograd.grad(context.forward.reconstruction, context.forward.sample)
    expected = of_reconstruction - 2 * stein_direction(context.forward.sample, width) / 8
    torch.testing.assert_close(gradient, expected)
    assert losses.terms["divergence"].item() == pytest.approx(
        stein_discrepancy(context.forward.sample, width).item()
    )


def test_the_median_is_that_of_codes_and_prior_and_is_held_fixed() -> None:
    context = forward()
    method = InfoVAE(alpha=1, lambda_=1, bandwidth="median")
    losses = method.losses(context)
    points = torch.cat([context.forward.sample, numbers("prior")]).detach()
    distances = sorted((a - b).square().sum().item() for i, a in enumerate(points) for b in points[:i])
    width = torch.tensor(distances[len(distances) // 2], dtype=torch.float64)
    divergence = mmd(context.forward.sample, numbers("prior"), width)
    assert losses.terms["divergence"].item() == pytest.approx(divergence.item())
    expected = torch.autograd.grad(
        context.forward.reconstruction + divergence, context.forward.sample, retain_graph=True
    )
    gradients = torch.autograd.grad(losses.players[AUTOENCODER], context.forward.sample)
    torch.testing.assert_close(gradients, expected)


def test_the_discriminator_sees_codes_and_the_prior() -> None:
    recorder = Recorder(logits(*[0.0] * 8), logits(*[0.0] * 8))
    context = forward(recorder)
    InfoVAE(divergence="adversarial").losses(context)
    (inputs,) = recorder.inputs
    assert torch.equal(inputs, torch.cat([context.forward.sample, numbers("prior")]))
    (gradient,) = torch.autograd.grad(inputs.sum(), context.forward.sample)
    assert (gradient == 1).all()


def test_losses_of_known_logits() -> None:
    """D = 3/4 for all codes and 1/5 for all draws from the prior."""
    three, four = math.log(3), math.log(4)
    context = forward(Recorder(logits(*[three] * 8), logits(*[-four] * 8)))
    losses = InfoVAE(alpha=0.5, lambda_=7, divergence="adversarial").losses(context)
    expected = context.forward.reconstruction.item() + 0.5 * context.forward.kl.item() + 6.5 * three
    assert losses.players[AUTOENCODER].item() == pytest.approx(expected)
    assert losses.players[DISCRIMINATOR].item() == pytest.approx(-(math.log(3 / 4) + math.log(4 / 5)) / 2)
    assert losses.terms["divergence"].item() == pytest.approx(three)
    assert losses.terms["discriminator_accuracy"].item() == 1


def test_a_better_discriminator_and_a_better_encoder_pull_in_opposite_directions() -> None:
    """A step of the encoder down its loss raises the discriminator's: it is a game, and each has its side."""
    network = small_discriminator()
    context = with_pass(forward(network), reconstruction_loss=torch.zeros((), dtype=torch.float64))
    method = InfoVAE(alpha=1, lambda_=1, divergence="adversarial")
    before = method.losses(context)
    (gradient,) = torch.autograd.grad(before.players[AUTOENCODER], context.forward.sample)
    after = method.losses(with_pass(context, sample=context.forward.sample - 0.5 * gradient))
    assert after.players[AUTOENCODER] < before.players[AUTOENCODER]
    assert after.players[DISCRIMINATOR] > before.players[DISCRIMINATOR]


def test_only_the_adversarial_one_has_another_player() -> None:
    assert [player.name for player in InfoVAE(divergence="adversarial").players] == [DISCRIMINATOR]
    changed = replace(InfoVAE(divergence="adversarial"), divergence="mmd")
    for method in (InfoVAE(), InfoVAE(divergence="stein"), changed):
        assert method.players == ()
        assert set(method.losses(forward()).players) == {AUTOENCODER}
    assert len(replace(InfoVAE(), divergence="adversarial").players) == 1


def test_the_discriminator_is_built_for_a_population() -> None:
    (player,) = InfoVAE(divergence="adversarial").players
    network = player.build(Blueprint([Stream.of(seed) for seed in (0, 1)], (1, 64, 64), 3))
    assert network(torch.zeros(2, 5, 3)).shape == (2, 5, 2)
    size = 3 * 1000 + 1000 + 1000 * 1000 + 1000 + 1000 * 2 + 2  # two hidden layers, two logits
    assert sum(weights.numel() for weights in network.parameters()) == 2 * size


def test_lambda_is_that_of_the_divergence_unless_it_is_chosen() -> None:
    """1000 is the paper's value for MMD; the others are in nats, where 1000 leaves nothing of the codes."""
    defaults = {divergence: InfoVAE(divergence=divergence).lambda_ for divergence in DIVERGENCES}
    assert defaults == {"mmd": 1000.0, "stein": 20.0, "adversarial": 10.0}
    assert InfoVAE(divergence="stein", lambda_=3).lambda_ == 3
    assert RunSpec(InfoVAE(divergence="stein")).to_dict()["method"]["lambda_"] == 20.0
    assert method_with("info_vae", {"lambda_": "auto", "divergence": "stein"}) == InfoVAE(divergence="stein")


def test_alpha_above_1_rewards_the_kl_of_each_image() -> None:
    context = forward()
    losses = InfoVAE(alpha=3.0, lambda_=50.0).losses(context)
    divergence = mmd(context.forward.sample, numbers("prior"), torch.tensor(9.0)).item()
    expected = context.forward.reconstruction.item() - 2 * context.forward.kl.item() + 52 * divergence
    assert losses.players[AUTOENCODER].item() == pytest.approx(expected)


def test_a_reward_for_leaving_the_prior_is_refused() -> None:
    with pytest.raises(UnweaveError, match=r"at least 1; got alpha 0.25 and lambda 0.5, .* Increase lambda"):
        InfoVAE(alpha=0.25, lambda_=0.5)
    assert InfoVAE(alpha=1.0, lambda_=0.0).prior_weight == 0
