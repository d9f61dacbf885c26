"""The kernels of samples and divergences against torch's automatic differentiation in float64."""

from __future__ import annotations

import pytest
import torch

from nn.triton_device import DEVICE, distance, numbers, poison  # noqa: F401

from unweave.nn.kernels import latent  # isort: skip
from unweave.nn.distributions.gaussian import Gaussian


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 5, 10), (3, 64, 33)])
@pytest.mark.parametrize("spread", [1.0, 1e-3], ids=["wide", "close to the prior"])
def test_values_and_gradients_are_those_of_float64(shape: tuple[int, int, int], spread: float) -> None:
    runs, images, codes = shape
    both = (spread * numbers(1, runs, images, 2 * codes)).requires_grad_()
    noise, scale = numbers(2, *shape), torch.arange(float(runs)).view(-1, 1, 1).double()
    exact_mean, exact_log_var = both.chunk(2, dim=-1)
    posterior = Gaussian(exact_mean, exact_log_var)
    sample, divergence = posterior.sample(noise * scale), posterior.kl().mean(-1)
    weights = numbers(3, *shape), numbers(4, runs)
    ((sample * weights[0]).sum() + (divergence * weights[1]).sum()).backward()
    assert both.grad is not None

    ours = both.detach().float().to(DEVICE).requires_grad_()
    mean, log_var = ours.chunk(2, dim=-1)
    result = latent.sample_and_divergence(mean, log_var, noise.float().to(DEVICE), scale.float().to(DEVICE))
    assert distance(result[0].detach(), sample.detach()) < 1e-6
    assert distance(result[1].detach(), divergence.detach()) < 2e-6
    on_device = [weight.float().to(DEVICE) for weight in weights]
    (((result[0] * on_device[0]).sum()) + (result[1] * on_device[1]).sum()).backward()
    assert ours.grad is not None
    assert distance(ours.grad, both.grad) < 2e-6


def test_a_posterior_equal_to_the_prior_has_no_divergence() -> None:
    zeros = torch.zeros(2, 4, 3, device=DEVICE)
    sample, divergence = latent.sample_and_divergence(zeros, zeros, zeros + 0.5, zeros[:, :1, :1] + 1)
    assert torch.equal(divergence.cpu(), torch.zeros(2))
    assert torch.equal(sample.cpu(), torch.full((2, 4, 3), 0.5))
