"""How strongly codes interact in a decoder: the normalised Hessian penalty [1] of its layers.

For a function f of codes with Hessian H and random directions v, Var(v' H v) is 2 sum_(i != j) H_ij^2 if the
entries of v are -1 or 1 with equal probability [2], and 2 sum_ij H_ij^2 if they are standard normal. The
ratio of both is the share of the off-diagonal entries. It is 0 for a sum of functions of single codes.

[1] Hsu, Hamid, Burns, Finn, Wu: Tripod: three complementary inductive biases for disentangled representation
learning, ICML 2024.
[2] Peebles, Peebles, Zhu, Efros, Torralba: The Hessian penalty: a weak prior for unsupervised
disentanglement, ECCV 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

LEAST = 1e-10  # added to denominators


@dataclass(frozen=True)
class Directions:
    """K random directions for each of B codes, (P, K B, D) each; the first B rows are one for each code."""

    signs: Tensor  # -1 or 1
    normals: Tensor


def second_differences(
    layers: Callable[[Tensor], Sequence[Tensor]], z: Tensor, shifts: Tensor
) -> list[Tensor]:
    """(P, K, B, F) for each layer: f(z + h) - 2 f(z) + f(z - h) for codes (P, B, D), shifts h (P, K B, D)."""
    batch, count = z.shape[1], shifts.shape[1] // z.shape[1]
    centres = z.repeat(1, count, 1)
    results = []
    for values in layers(torch.cat([z, centres + shifts, centres - shifts], dim=1)):
        centre, forward, backward = values.flatten(2).split((batch, count * batch, count * batch), dim=1)
        both = (forward + backward).unflatten(1, (count, batch))
        results.append(both - 2 * centre.unsqueeze(1))
    return results


def normalised_hessian_penalty(
    layers: Callable[[Tensor], Sequence[Tensor]],
    z: Tensor,
    deviation: Tensor,
    directions: Directions,
    epsilon: float | Tensor,
) -> Tensor:
    """(P,): the sum over layers of the ratio above, mean over the batch; codes (P, B, D), deviations (P, D).

    Both variances are estimated from K second differences with steps of `epsilon` deviations, and averaged
    over the features of a layer. With few directions the ratio is noisy, and its mean above the share.
    `epsilon` is a number, or one for each run, (P,).
    """
    step = (epsilon * z.new_ones(len(z))).reshape(-1, 1, 1)
    every = torch.cat([directions.signs, directions.normals], dim=1)
    ratios = []
    for differences in second_differences(layers, z, step * deviation.unsqueeze(1) * every):
        curvatures = (differences / step.unsqueeze(-1).square()).unflatten(1, (2, -1))
        off_diagonal, whole = curvatures.var(dim=2, correction=0).mean(-1).unbind(1)
        ratios.append((off_diagonal / (whole + LEAST)).mean(-1))
    return torch.stack(ratios).sum(0)
