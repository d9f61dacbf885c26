"""Diffusion: the noise schedule, the steps between images and noise, and DDIM on data with known answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from unweave.nn.diffusion import (
    TIMESTEPS,
    ddim,
    ddim_times,
    noise_of_velocity,
    signal_shares,
    velocity,
    with_noise,
    without_noise,
)


def test_the_schedule_is_that_of_the_authors() -> None:
    """beta_t = (sqrt(0.0015) + t / 999 (sqrt(0.0155) - sqrt(0.0015)))^2, by a loop over all times."""
    low, high = math.sqrt(0.0015), math.sqrt(0.0155)
    product, expected = 1.0, []
    for t in range(1000):
        product *= 1 - (low + t / 999 * (high - low)) ** 2
        expected.append(product)
    assert signal_shares() == pytest.approx(expected, rel=1e-12)
    assert signal_shares()[0] == 1 - 0.0015


def test_single_steps_of_noise_add_up_to_the_closed_form() -> None:
    """x <- sqrt(1 - beta) x + sqrt(beta) noise keeps variance 1, and the mean shrinks by sqrt(a_t)."""
    shares = np.concatenate([[1.0], signal_shares()])
    mean, variance = 3.0, 0.0
    for t in range(TIMESTEPS):
        keep = shares[t + 1] / shares[t]
        mean, variance = math.sqrt(keep) * mean, keep * variance + 1 - keep
        assert mean == pytest.approx(3 * math.sqrt(shares[t + 1]))
        assert variance == pytest.approx(1 - shares[t + 1])
    images, noise = torch.tensor([3.0]), torch.tensor([1.0])
    share = float(shares[400])
    assert float(with_noise(images, noise, share)) == pytest.approx(
        3 * share**0.5 + (1 - share) ** 0.5, rel=1e-6
    )


def test_images_noise_and_velocity_determine_each_other() -> None:
    drawn = torch.randn(2, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    images, noise = drawn
    for share in (float(signal_shares()[0]), 0.5, float(signal_shares()[-1])):
        x, v = with_noise(images, noise, share), velocity(images, noise, share)
        torch.testing.assert_close(without_noise(x, noise, share), images)
        torch.testing.assert_close(noise_of_velocity(x, v, share), noise)
        # A rotation: the squared lengths of (x_0, noise) and (x_t, v_t) are the same.
        torch.testing.assert_close(x**2 + v**2, images**2 + noise**2)
        tensor = torch.full((5, 1), share, dtype=torch.float64)
        torch.testing.assert_close(with_noise(images, noise, tensor), x)


def test_ddim_lands_on_the_only_image_there_is() -> None:
    """If all data is one image m, the noise of x_t is (x_t - sqrt(a_t) m) / sqrt(1 - a_t)."""
    image, start = torch.linspace(-0.9, 0.9, 7, dtype=torch.float64), torch.arange(7.0, dtype=torch.float64)

    def exact(x: Tensor, time: int) -> Tensor:
        share = float(signal_shares()[time])
        noise: Tensor = (x - share**0.5 * image) / (1 - share) ** 0.5
        return noise

    for steps in (1, 2, 50):
        for limit in (None, 1.0):
            torch.testing.assert_close(ddim(exact, start, steps, limit), image)
    clipped = ddim(exact, start, 3, 0.5)
    torch.testing.assert_close(clipped, image.clamp(-0.5, 0.5))


def test_ddim_maps_normal_noise_to_normal_data() -> None:
    """Of data N(m, s^2), the expected noise of x_t is sqrt(1 - a) (x_t - sqrt(a) m) / (a s^2 + 1 - a).

    The flow keeps the number z of deviations from the mean: a start at z deviations becomes m + s z.
    """
    mean, deviation = 0.4, 0.8
    z = torch.linspace(-2, 2, 9, dtype=torch.float64)

    def moments(share: float) -> tuple[float, float]:
        return share**0.5 * mean, share * deviation**2 + 1 - share

    def expected(x: Tensor, time: int) -> Tensor:
        share = float(signal_shares()[time])
        centre, variance = moments(share)
        noise: Tensor = (1 - share) ** 0.5 * (x - centre) / variance
        return noise

    centre, variance = moments(float(signal_shares()[-1]))
    start, images = centre + variance**0.5 * z, mean + deviation * z
    errors = [float((ddim(expected, start, steps) - images).abs().max()) for steps in (10, 100, 1000)]
    # A method of first order: ten times as many steps have about a tenth of the error.
    assert errors[2] < errors[1] / 5 < errors[0] / 25
    assert errors[2] < 0.01


def test_times_go_from_the_last_to_the_first() -> None:
    assert ddim_times(1) == [999]
    assert ddim_times(3) == [999, 500, 0]
    assert ddim_times(1000) == list(range(999, -1, -1))
