"""Categorical variables: indicators of their values, relaxed so that gradients pass, and numbers of a code.

An indicator is 1 at one of the K values and 0 at the others, (..., K); relaxed, it is a probability of each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from unweave.nn.distributions.gaussian import Gaussian

LEAST_VARIANCE = 1e-6  # of a deterministic value: its logarithm must be finite


@dataclass(frozen=True)
class Categorical:
    """Probabilities of K values, as logarithms (..., K)."""

    log_probabilities: Tensor

    def log_density(self, values: Tensor) -> Tensor:
        """(...): log q at indicators (..., K), and linear between them."""
        return (values * self.log_probabilities).sum(-1)

    def sample(self, uniform: Tensor, temperature: float | Tensor) -> Tensor:
        """(..., K): relaxed indicators, from numbers in (0, 1): the Gumbel softmax.

        Jang, Gu, Poole: Categorical reparameterization with Gumbel-softmax, ICLR 2017.
        """
        gumbel = -torch.log(-torch.log(uniform))
        return torch.softmax((self.log_probabilities + gumbel) / temperature, dim=-1)

    def kl_to_uniform(self) -> Tensor:
        """(...): the divergence from equal probabilities, log K minus the entropy."""
        surprise = self.log_probabilities + math.log(self.log_probabilities.shape[-1])
        return (self.log_probabilities.exp() * surprise).sum(-1)

    def as_code(self) -> Gaussian:
        """(..., 1): mean and variance of the value's number, which has mean 0 and variance 1 over all."""
        probabilities, numbers = self.log_probabilities.exp(), _numbers(self.log_probabilities)
        mean = (probabilities * numbers).sum(-1, keepdim=True)
        variance = (probabilities * (numbers - mean).square()).sum(-1, keepdim=True)
        return Gaussian(mean, variance.clamp(min=LEAST_VARIANCE).log())


def indicators(labels: Tensor, size: int, like: Tensor) -> Tensor:
    """(..., size): the indicators of whole numbers (...), in the precision of another tensor."""
    return (labels.unsqueeze(-1) == torch.arange(size, device=labels.device)).to(like.dtype)


def from_code(code: Tensor, size: int) -> Tensor:
    """(..., size): the indicator of a number (..., 1) of a code; interpolated between two values."""
    centre, spread = _scale(size)
    places = torch.arange(size, device=code.device, dtype=code.dtype)
    number = (code * spread + centre).clamp(0, size - 1)
    return (1 - (number - places).abs()).clamp(min=0)


def _numbers(like: Tensor) -> Tensor:
    """(K,): the values as numbers of mean 0 and variance 1, if all are equally likely."""
    centre, spread = _scale(like.shape[-1])
    return (torch.arange(like.shape[-1], device=like.device, dtype=like.dtype) - centre) / spread


def _scale(size: int) -> tuple[float, float]:
    """Mean and standard deviation of 0, 1, ..., size - 1."""
    return (size - 1) / 2, math.sqrt((size**2 - 1) / 12) if size > 1 else 1.0
