"""Diffusion [1]: how images become noise in many small steps, and noise becomes images again.

After t + 1 steps, an image x_0 is

    x_t = sqrt(a_t) x_0 + sqrt(1 - a_t) noise,    a_t = (1 - beta_0) (1 - beta_1) ... (1 - beta_t),

with standard normal noise. An image of variance 1 keeps this variance at all times. A network that predicts
the noise of x_t also predicts the image. DDIM [2] follows these predictions from noise to an image. It draws
nothing on the way, so that the image is a function of the noise it starts from.

Where a_t is small, a small error of the noise is a large error of the image, and where it is large the other
way round. A prediction of the velocity [4], v_t = sqrt(a_t) noise - sqrt(1 - a_t) x_0, is good for both.

[1] Ho, Jain, Abbeel: Denoising diffusion probabilistic models, NeurIPS 2020.
[2] Song, Meng, Ermon: Denoising diffusion implicit models, ICLR 2021.
[3] Rombach, Blattmann, Lorenz, Esser, Ommer: High-resolution image synthesis with latent diffusion models,
CVPR 2022.
[4] Salimans, Ho: Progressive distillation for fast sampling of diffusion models, ICLR 2022.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

TIMESTEPS = 1000
# The square root of beta grows linearly between those of these numbers, as in the program of [3].
FIRST_BETA, LAST_BETA = 0.0015, 0.0155

Number = TypeVar("Number", float, Tensor)


@cache
def signal_shares() -> NDArray[np.float64]:
    """(TIMESTEPS,): a_t, the share of the image in the variance of x_t."""
    betas = np.linspace(math.sqrt(FIRST_BETA), math.sqrt(LAST_BETA), TIMESTEPS) ** 2
    shares = np.asarray(np.cumprod(1 - betas), np.float64)
    shares.flags.writeable = False
    return shares


def with_noise(images: Tensor, noise: Tensor, share: Number) -> Tensor:
    """x_t of images x_0; `share` is a_t."""
    x: Tensor = share**0.5 * images + (1 - share) ** 0.5 * noise
    return x


def without_noise(x: Tensor, noise: Tensor, share: Number) -> Tensor:
    """x_0 of x_t and its noise; `share` is a_t."""
    images: Tensor = (x - (1 - share) ** 0.5 * noise) / share**0.5
    return images


def velocity(images: Tensor, noise: Tensor, share: Number) -> Tensor:
    """v_t of images x_0 and noise; `share` is a_t."""
    v: Tensor = share**0.5 * noise - (1 - share) ** 0.5 * images
    return v


def noise_of_velocity(x: Tensor, v: Tensor, share: Number) -> Tensor:
    """The noise of x_t and its velocity v_t; `share` is a_t."""
    noise: Tensor = share**0.5 * v + (1 - share) ** 0.5 * x
    return noise


def ddim_times(steps: int) -> list[int]:
    """Evenly spaced times from the last one down to 0.

    >>> ddim_times(4)
    [999, 666, 333, 0]
    """
    return [round(time) for time in np.linspace(TIMESTEPS - 1, 0, steps)]


def ddim(
    predicted_noise: Callable[[Tensor, int], Tensor], x: Tensor, steps: int, limit: float | None = None
) -> Tensor:
    """Images x_0 from noise x at the last time, in so many steps; [2], equation 12 with sigma = 0.

    `predicted_noise(x, t)` is the noise in x at time t. Predicted images are clipped to [-limit, limit].
    """
    shares, times = signal_shares(), ddim_times(steps)
    targets = [float(shares[time]) for time in times[1:]] + [1.0]
    for time, target in zip(times, targets, strict=True):
        share, noise = float(shares[time]), predicted_noise(x, time)
        images = without_noise(x, noise, share)
        if limit is not None:
            images = images.clamp(-limit, limit)
            noise = (x - share**0.5 * images) / (1 - share) ** 0.5
        x = with_noise(images, noise, target)
    return x
