"""The F distribution for two groups: the probability of a smaller difference of means.

torch has no incomplete beta function. For two groups it is the integral of a power of a cosine, which is
smooth for all arguments, so that a fixed quadrature rule of few points is exact to rounding.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

POINTS = 24  # the rule is exact to 1e-6 for up to 126 degrees of freedom, and to 4e-5 for 500


def log_f_cdf(between: Tensor, within: Tensor, freedom: Tensor) -> Tensor:
    """log Pr(S < s) of an F statistic s = freedom between / within, of 1 and `freedom` >= 1 degrees.

    It is log I_x(1/2, freedom / 2), the regularised incomplete beta function at x = between / (between +
    within). With x = sin^2 a it becomes 2 / B(1/2, freedom / 2) times the integral of cos^(freedom - 1) from
    0 to a. Sums of squares between and within groups must be positive.
    """
    angle = torch.atan2(between.sqrt(), within.sqrt())
    nodes, weights = _fejer(angle)
    cosines = torch.cos(angle.unsqueeze(-1) * (0.5 + 0.5 * nodes))
    powers = cosines.clamp(min=torch.finfo(angle.dtype).tiny) ** (freedom - 1).unsqueeze(-1)
    integral = 0.5 * angle * (weights * powers).sum(-1)
    half = freedom / 2
    log_beta = math.lgamma(0.5) + torch.lgamma(half) - torch.lgamma(half + 0.5)
    return math.log(2) + integral.log() - log_beta


def _fejer(like: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes in (-1, 1) and weights of Fejér's first rule, computed on the device: nothing is sent there."""
    angles = (torch.arange(POINTS, device=like.device, dtype=like.dtype) + 0.5) * (math.pi / POINTS)
    terms = torch.arange(1, POINTS // 2 + 1, device=like.device, dtype=like.dtype)
    sums = (torch.cos(2 * terms * angles.unsqueeze(-1)) / (4 * terms.square() - 1)).sum(-1)
    return torch.cos(angles), (1 - 2 * sums) * (2 / POINTS)
