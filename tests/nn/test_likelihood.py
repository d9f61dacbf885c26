"""Likelihoods against densities of torch, by numerical integration, and at extreme logits."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import integrate
from torch import Tensor
from torch.distributions import Bernoulli, ContinuousBernoulli, Distribution, Laplace, Normal

from unweave.errors import UnweaveError
from unweave.nn.distributions.likelihood import (
    LIKELIHOODS,
    LOWEST_LOG_VARIANCE,
    likelihood_named,
    reconstruction_loss,
)
from unweave.streams import Stream

SHAPE = (2, 3, 2, 4, 5)  # runs, images, channels, height, width
LOGITS = 4 * torch.from_numpy(Stream.of(0).normal(2 * 3, 2 * 4 * 5)).view(SHAPE)
IMAGES = torch.from_numpy(Stream.of(1).uniform(2 * 3, 2 * 4 * 5)).view(SHAPE)
NEAR_HALF = [-30.0, -3.0, -0.51, -0.5, -0.49, -1e-3, 0.0, 1e-6, 1e-2, 0.4999, 0.5, 0.7, 12.0, 30.0]

DENSITIES: dict[str, tuple[Callable[[Tensor], Distribution], float]] = {
    # The constant by which -log p exceeds the loss, for each pixel.
    "gaussian": (lambda logits: Normal(logits.sigmoid(), 0.5**0.5), 0.5 * np.log(np.pi)),
    "gaussian_unit": (lambda logits: Normal(logits.sigmoid(), torch.ones_like(logits)), 0.0),
    "laplace": (lambda logits: Laplace(logits.sigmoid(), torch.ones_like(logits)), 0.0),
    "continuous_bernoulli": (lambda logits: ContinuousBernoulli(logits=logits), 0.0),
}


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_are_those_of_torch(name: str) -> None:
    density, constant = DENSITIES[name]
    expected = -density(LOGITS).log_prob(IMAGES) - constant
    torch.testing.assert_close(LIKELIHOODS[name].negative_log(LOGITS, IMAGES), expected)


def test_bernoulli_of_black_and_white_images() -> None:
    images = IMAGES.round()
    expected = -Bernoulli(logits=LOGITS).log_prob(images)
    torch.testing.assert_close(LIKELIHOODS["bernoulli"].negative_log(LOGITS, images), expected)


def test_learned_variance_is_that_of_the_second_half_of_the_channels() -> None:
    spread = LOGITS.flip(-1)
    log_var = LOWEST_LOG_VARIANCE + torch.nn.functional.softplus(spread - LOWEST_LOG_VARIANCE)
    expected = -Normal(LOGITS.sigmoid(), (log_var / 2).exp()).log_prob(IMAGES)
    output, likelihood = torch.cat([LOGITS, spread], dim=-3), LIKELIHOODS["gaussian_learned"]
    torch.testing.assert_close(likelihood.negative_log(output, IMAGES), expected)
    torch.testing.assert_close(likelihood.mean(output), LOGITS.sigmoid())
    assert float(log_var.min()) > LOWEST_LOG_VARIANCE
    torch.testing.assert_close(likelihood.loss(output, IMAGES), expected.sum((2, 3, 4)).mean(1).float())


@pytest.mark.parametrize("logit", NEAR_HALF)
def test_continuous_bernoulli_is_normalised_and_has_its_mean(logit: float) -> None:
    likelihood, t = LIKELIHOODS["continuous_bernoulli"], torch.tensor(logit, dtype=torch.float64)

    def density(x: float) -> float:
        return float(torch.exp(-likelihood.negative_log(t, torch.tensor(x, dtype=torch.float64))))

    # The tolerance is that of the power series next to 0.
    assert integrate.quad(density, 0, 1)[0] == pytest.approx(1, abs=2e-7)
    assert integrate.quad(lambda x: x * density(x), 0, 1)[0] == pytest.approx(
        float(likelihood.mean(t)), abs=2e-7
    )


def test_laplace_is_normalised() -> None:
    logit = torch.tensor(0.7, dtype=torch.float64)
    middle = float(logit.sigmoid())

    def density(x: float) -> float:
        return float(torch.exp(-LIKELIHOODS["laplace"].negative_log(logit, torch.tensor(x))))

    halves = [integrate.quad(density, *ends)[0] for ends in ((-np.inf, middle), (middle, np.inf))]
    assert halves == pytest.approx([0.5, 0.5], abs=1e-7)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_losses_gradients_and_means_are_finite_at_extreme_outputs(name: str) -> None:
    likelihood = LIKELIHOODS[name]
    values = torch.tensor([-1e4, -90.0, -1.0, -0.5, -1e-8, 0.0, 1e-8, 0.5, 90.0, 1e4])
    output = values.view(1, 1, 1, -1).expand(3, likelihood.outputs, 1, -1).clone().requires_grad_()
    images = torch.tensor([0.0, 0.3, 1.0]).view(3, 1, 1, 1).expand(-1, -1, -1, len(values))
    loss = likelihood.loss(output, images)
    loss.backward()
    mean = likelihood.mean(output.detach())
    assert output.grad is not None
    assert bool(torch.isfinite(loss))
    assert bool(torch.isfinite(output.grad).all())
    assert mean.shape == images.shape
    assert 0 <= float(mean.min()) <= float(mean.max()) <= 1
    assert bool((mean.diff(dim=-1) >= 0).all())


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_gradients_are_those_of_the_losses(name: str) -> None:
    output = torch.cat([LOGITS[0, :1], -LOGITS[0, 1:2]], dim=-3)[:, : 2 * LIKELIHOODS[name].outputs]
    torch.autograd.gradcheck(
        lambda values: LIKELIHOODS[name].negative_log(values, IMAGES[0, :1]), output.clone().requires_grad_()
    )


@pytest.mark.parametrize("name", ["laplac", "", None, ["gaussian"]])
def test_unknown_likelihoods_are_refused(name: str) -> None:
    with pytest.raises(UnweaveError, match="there is no likelihood"):
        reconstruction_loss(LOGITS, IMAGES, name)
    with pytest.raises(UnweaveError, match="there is no likelihood"):
        likelihood_named(name)
