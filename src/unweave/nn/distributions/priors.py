"""Priors of codes besides N(0, I): a mixture of Gaussians and a Swiss roll, whose parts can be classes.

Both lie in the first two dimensions, where all parts together have about the variance of N(0, I). The other
dimensions are standard normal.

[1] Makhzani, Shlens, Jaitly, Goodfellow, Frey: Adversarial autoencoders, 2015; section 2.3 and figure 4.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import torch
from torch import Tensor

Prior: TypeAlias = Literal["normal", "mixture", "swiss_roll"]

DISTANCE, LENGTH, WIDTH = 1.4, 0.5, 0.1  # of a Gaussian from 0, and its standard deviations
TURNS, RADIUS = 2, 2.0  # of the Swiss roll


def petals(normal: Tensor, parts: Tensor, count: int) -> Tensor:
    """(..., n, D): draws from a mixture of Gaussians around 0, made of standard normal draws (..., n, D).

    Draw i is from Gaussian parts[i], 0 to count - 1. Gaussian k points from 0 at the angle 2 pi k / count.
    """
    angle = 2 * math.pi * parts / count
    out, across = DISTANCE + LENGTH * normal[..., 0], WIDTH * normal[..., 1]
    cos, sin = angle.cos(), angle.sin()
    first = torch.stack([out * cos - across * sin, out * sin + across * cos], dim=-1)
    return torch.cat([first, normal[..., 2:]], dim=-1)


def swiss_roll(normal: Tensor, places: Tensor, count: int) -> Tensor:
    """(..., n, D): draws from a Swiss roll, a spiral with equal numbers of draws for equal areas.

    Its places (..., n) run from 0, in the middle, to count, at the end; places k to k + 1 are part k. The
    dimensions after the second are those of standard normal draws (..., n, D).
    """
    radius = RADIUS * (places / count).sqrt()
    angle = 2 * math.pi * TURNS * radius / RADIUS
    first = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=-1)
    return torch.cat([first, normal[..., 2:]], dim=-1)
