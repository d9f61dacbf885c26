"""Likelihoods p(x|z): the density of images under the output of a decoder, and its mean image.

A likelihood is one entry of LIKELIHOODS. With s = sigmoid(output) and x in [0, 1], each pixel and channel has
the negative log-density

    bernoulli              -x log s - (1 - x) log(1 - s); images need not be black and white
    gaussian               (s - x)^2: variance 1/2, without the constant log(pi) / 2, as in the published code
    gaussian_unit          (s - x)^2 / 2 + log(2 pi) / 2: variance 1
    gaussian_learned       (s - x)^2 exp(-v) / 2 + v / 2 + log(2 pi) / 2: a log-variance v for each pixel
    laplace                |s - x| + log 2: scale 1
    continuous_bernoulli   -x log s - (1 - x) log(1 - s) - log C, C = 2 artanh(1 - 2 s) / (1 - 2 s) [1]

[1] Loaiza-Ganem, Cunningham: The continuous Bernoulli: fixing a pervasive error in variational autoencoders,
NeurIPS 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unweave.plugins.loading import record_named

# gaussian_learned: v = LOWEST + softplus(output - LOWEST), so deviations are at least exp(LOWEST / 2) = 0.05.
# Without a bound, pixels that never change would let the density grow without limit.
LOWEST_LOG_VARIANCE = -6.0
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
SERIES_RANGE = 0.5  # continuous_bernoulli: logits closer to 0 are computed by a power series


@dataclass(frozen=True)
class Likelihood:
    """The distribution of images given the output of a decoder.

    `negative_log(output, images)` is -log p of each pixel and channel. `output` is (..., B, k C, H, W) for
    images (..., B, C, H, W) in [0, 1], where k is `outputs`. `mean(output)` is the mean image, in [0, 1].
    """

    name: str
    description: str
    negative_log: Callable[[Tensor, Tensor], Tensor]
    mean: Callable[[Tensor], Tensor] = torch.sigmoid
    outputs: int = 1  # channels that the decoder makes for each channel of the image
    has_kernel: bool = False  # whether nn/kernels/edge.py computes it together with the last layer

    def loss(self, output: Tensor, images: Tensor) -> Tensor:
        """(...): -log p(x|z), summed over pixels and channels, mean over the batch."""
        negative_log = self.negative_log(output.float(), images.float())
        return negative_log.sum(dim=(-3, -2, -1)).mean(dim=-1)


def likelihood_named(name: str) -> Likelihood:
    """The likelihood of that name, built in or of a plug-in; every lookup goes through this function."""
    return record_named("likelihood", name, Likelihood, LIKELIHOODS)


def reconstruction_loss(output: Tensor, images: Tensor, likelihood: str) -> Tensor:
    """(..., B, k C, H, W) output of a decoder and images (..., B, C, H, W) in [0, 1] -> (...)."""
    return likelihood_named(likelihood).loss(output, images)


def _bernoulli(logits: Tensor, images: Tensor) -> Tensor:
    return F.softplus(logits) - images * logits


def _published_gaussian(logits: Tensor, images: Tensor) -> Tensor:
    return (logits.sigmoid() - images).square()


def _unit_gaussian(logits: Tensor, images: Tensor) -> Tensor:
    return 0.5 * (logits.sigmoid() - images).square() + HALF_LOG_TWO_PI


def _learned_gaussian(output: Tensor, images: Tensor) -> Tensor:
    logits, spread = output.chunk(2, dim=-3)
    log_var = LOWEST_LOG_VARIANCE + F.softplus(spread - LOWEST_LOG_VARIANCE)
    return 0.5 * ((logits.sigmoid() - images).square() * (-log_var).exp() + log_var) + HALF_LOG_TWO_PI


def _first_half_mean(output: Tensor) -> Tensor:
    return output.chunk(2, dim=-3)[0].sigmoid()


def _laplace(logits: Tensor, images: Tensor) -> Tensor:
    return (logits.sigmoid() - images).abs() + math.log(2)


def _continuous_bernoulli(logits: Tensor, images: Tensor) -> Tensor:
    """log((exp(t) - 1) / t) - x t, with t the logit: the density is exp(x t) over its integral from 0 to 1.

    With a = |t|, log((exp(t) - 1) / t) = t / 2 + a / 2 + log(1 - exp(-a)) - log a. Its terms cancel near 0;
    there it is computed as t / 2 + a^2 / 24 - a^4 / 2880 + a^6 / 181440. One of the two parts is constant at
    each logit, so gradients are finite everywhere.
    """
    squared = logits.clamp(-SERIES_RANGE, SERIES_RANGE).square()
    near = squared * (1 / 24 - squared * (1 / 2880 - squared / 181440))
    size = logits.abs().clamp(min=SERIES_RANGE)
    far = 0.5 * size + torch.log(-torch.expm1(-size)) - torch.log(size)
    edge = 0.5 * SERIES_RANGE + math.log(-math.expm1(-SERIES_RANGE)) - math.log(SERIES_RANGE)
    return (0.5 - images) * logits + near + (far - edge)


def _continuous_bernoulli_mean(logits: Tensor) -> Tensor:
    """1 / (1 - exp(-t)) - 1 / t, with t the logit; 1/2 + t / 12 - t^3 / 720 + t^5 / 30240 near 0."""
    small = logits.clamp(-SERIES_RANGE, SERIES_RANGE)
    squared = small * small
    near = small * (1 / 12 - squared * (1 / 720 - squared / 30240))
    size = logits.abs().clamp(min=SERIES_RANGE)
    far = 0.5 / torch.tanh(0.5 * size) - 1 / size
    edge = 0.5 / math.tanh(0.5 * SERIES_RANGE) - 1 / SERIES_RANGE
    return 0.5 + near + (far - edge) * (small / SERIES_RANGE)


_BUILT_IN = (
    Likelihood("bernoulli", "cross-entropy of sigmoid and image", _bernoulli, has_kernel=True),
    Likelihood(
        "gaussian",
        "squared distance of sigmoid and image, as published",
        _published_gaussian,
        has_kernel=True,
    ),
    Likelihood("gaussian_unit", "normal density of variance 1", _unit_gaussian),
    Likelihood(
        "gaussian_learned",
        "normal density; the decoder also makes the variance of each pixel",
        _learned_gaussian,
        _first_half_mean,
        outputs=2,
    ),
    Likelihood("laplace", "Laplace density of scale 1", _laplace),
    Likelihood(
        "continuous_bernoulli",
        "Bernoulli density normalised for numbers between 0 and 1",
        _continuous_bernoulli,
        _continuous_bernoulli_mean,
    ),
)
LIKELIHOODS: Mapping[str, Likelihood] = {entry.name: entry for entry in _BUILT_IN}
