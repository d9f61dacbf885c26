"""The adversarial autoencoder: its two losses from known logits, and its two posteriors."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from methods.no_draws import NoDraws
from methods.played import autoencoder_step
from unweave.methods import AAE
from unweave.methods.aae import DISCRIMINATOR, Posterior
from unweave.methods.method import AUTOENCODER, Adam, Blueprint, StepContext
from unweave.nn.distributions.gaussian import Gaussian
from unweave.streams import Stream

CODES = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]], dtype=torch.float64)
PRIOR = torch.tensor([[0.1, -0.2], [0.3, 0.4], [-1.0, 2.0]], dtype=torch.float64)


class Prior(NoDraws):
    """Draws from the prior that are known; nothing else may be drawn."""

    def normal(self, purpose: str, rows: int, columns: int) -> Tensor:
        assert (purpose, rows, columns) == ("prior", 3, 2)
        return PRIOR


class Recorder(nn.Module):
    """A discriminator that records its inputs and returns known logits, of codes and of the prior."""

    def __init__(self, codes: Tensor, prior: Tensor) -> None:
        super().__init__()
        self.logits = torch.cat([codes, prior])
        self.inputs: list[Tensor] = []

    def forward(self, z: Tensor) -> Tensor:
        self.inputs.append(z)
        return self.logits


def logits(*first_minus_second: float) -> Tensor:
    first = torch.tensor(first_minus_second, dtype=torch.float64)
    return torch.stack([first + 0.25, torch.full_like(first, 0.25)], dim=-1)


def forward(discriminator: nn.Module, sample: Tensor = CODES) -> StepContext:
    return autoencoder_step(
        reconstruction=torch.tensor(5.0, dtype=torch.float64),
        posterior=Gaussian(CODES, torch.zeros_like(CODES)),
        sample=sample,
        step=0,
        data_size=100,
        draws=Prior(),
        networks={DISCRIMINATOR: discriminator},
    )


def test_the_discriminator_sees_codes_and_the_prior() -> None:
    recorder = Recorder(logits(0, 0, 0), logits(0, 0, 0))
    sample = CODES.clone().requires_grad_()
    AAE().losses(forward(recorder, sample))
    (inputs,) = recorder.inputs
    assert torch.equal(inputs, torch.cat([CODES, PRIOR]))
    (gradient,) = torch.autograd.grad(inputs.sum(), sample)
    assert (gradient == 1).all()


def test_losses_of_known_logits() -> None:
    """D = 9/10, 1/2, 1/4 for codes and 4/5, 1/2, 1/2 for draws from the prior; KL is no part of it."""
    three, four = math.log(3), math.log(4)
    recorder = Recorder(logits(2 * three, 0.0, -three), logits(four, 0.0, 0.0))
    losses = AAE(adversarial_weight=6).losses(forward(recorder))
    fooling = -(math.log(1 / 10) + math.log(1 / 2) + math.log(3 / 4)) / 3
    assert losses.terms["adversarial"].item() == pytest.approx(fooling)
    assert losses.players[AUTOENCODER].item() == pytest.approx(5 + 6 * fooling)
    log_codes = (math.log(9 / 10) + math.log(1 / 2) + math.log(1 / 4)) / 3
    log_prior = (math.log(1 / 5) + math.log(1 / 2) + math.log(1 / 2)) / 3
    assert losses.players[DISCRIMINATOR].item() == pytest.approx(-(log_codes + log_prior) / 2)
    assert losses.terms["discriminator_accuracy"].item() == pytest.approx((1 / 3 + 0) / 2)
    assert set(losses.terms) == {"reconstruction", "adversarial", "discriminator_accuracy"}


def test_losses_at_equilibrium() -> None:
    losses = AAE().losses(forward(Recorder(logits(0, 0, 0), logits(0, 0, 0))))
    assert losses.terms["adversarial"].item() == pytest.approx(math.log(2))
    assert losses.players[DISCRIMINATOR].item() == pytest.approx(math.log(2))


def test_the_encoder_still_learns_where_the_discriminator_is_sure() -> None:
    """-log(1 - D) has the gradient 1; log D, the saturating form, would have 0."""
    sure = logits(100, 100, 100).requires_grad_()
    losses = AAE(adversarial_weight=1).losses(forward(Recorder(sure, logits(0, 0, 0))))
    (gradient,) = torch.autograd.grad(losses.players[AUTOENCODER], sure)
    torch.testing.assert_close(gradient, torch.tensor([[1 / 3, -1 / 3]] * 3, dtype=torch.float64))


def test_the_encoder_moves_codes_towards_the_prior() -> None:
    """A discriminator that takes large numbers for codes: the encoder makes them smaller."""
    network = nn.Linear(2, 2, bias=False, dtype=torch.float64)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[0.01, 0.01], [-0.01, -0.01]]))
    sample = CODES.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(AAE().losses(forward(network, sample)).players[AUTOENCODER], sample)
    assert (gradient > 0).all()


@pytest.mark.parametrize(("posterior", "stochastic"), [("deterministic", False), ("gaussian", True)])
def test_only_the_gaussian_posterior_is_stochastic(posterior: Posterior, stochastic: bool) -> None:
    assert AAE(posterior=posterior).stochastic is stochastic
    assert replace(AAE(posterior="gaussian"), posterior=posterior).stochastic is stochastic
    assert replace(AAE(), posterior=posterior).stochastic is stochastic


def test_the_discriminator_is_built_for_a_population_with_its_own_adam() -> None:
    (player,) = AAE().players
    assert player.optimiser == Adam(learning_rate=1e-4, beta1=0.5, beta2=0.9, epsilon=1e-8)
    network = player.build(Blueprint([Stream.of(seed) for seed in (0, 1)], (1, 64, 64), 2))
    assert network(torch.zeros(2, 3, 2)).shape == (2, 3, 2)
    size = 2 * 1000 + 1000 + 1000 * 1000 + 1000 + 1000 * 2 + 2  # two hidden layers, two logits
    assert sum(weights.numel() for weights in network.parameters()) == 2 * size
