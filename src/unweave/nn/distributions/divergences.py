"""Divergences of the codes of a batch from the prior N(0, I): by kernels, or by a discriminator.

Codes are (..., B, D) with any leading axes; all functions reduce the last two. The kernel is
k(x, y) = exp(-|x - y|^2 / h). Distances are sums of squared differences and not matrix products, which
cancel for codes that are close and whose precision a GPU may lower. No function synchronises with the device.

[1] Gretton, Borgwardt, Rasch, Schölkopf, Smola: A kernel two-sample test, JMLR 13, 2012.
[2] Liu, Wang: Stein variational gradient descent, NeurIPS 2016.
[3] Liu, Lee, Jordan: A kernelized Stein discrepancy for goodness-of-fit tests, ICML 2016.
[4] Tolstikhin, Bousquet, Gelly, Schölkopf: Wasserstein auto-encoders, ICLR 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, softplus

Bandwidth: TypeAlias = Literal["squared_dimension", "prior", "median"]


def kernel_bandwidth(points: Tensor, rule: Bandwidth) -> Tensor:
    """The h of the kernel for points (..., n, D): (...), or a single number for all.

    squared_dimension: h = D^2. The authors of InfoVAE use the mean of the squared differences over the
    dimensions and divide it by D once more. Wide: two draws from the prior have k = 0.82 for D = 10.
    prior: h = 2 D, the mean squared distance of two draws from the prior; the scale of [4].
    median: the median squared distance of the points themselves, a common heuristic [1]; [2] divides it by
    log n. It is a constant in the gradient, and at least 1e-6, in case all codes are equal.
    """
    latents = points.shape[-1]
    if rule == "squared_dimension":
        return points.new_full((), float(latents**2))
    if rule == "prior":
        return points.new_full((), 2.0 * latents)
    first, second = torch.triu_indices(points.shape[-2], points.shape[-2], 1, device=points.device)
    detached = points.detach()
    distances = (detached[..., first, :] - detached[..., second, :]).square().sum(-1)
    return distances.sort(-1).values[..., distances.shape[-1] // 2].clamp(min=1e-6)


def mmd(codes: Tensor, prior: Tensor, bandwidth: Tensor) -> Tensor:
    """(...): the squared maximum mean discrepancy of codes (..., B, D) and draws from the prior (..., n, D).

    E k(z, z') + E k(y, y') - 2 E k(z, y), from 0 to 2, with means over all pairs, those of a point with
    itself included: the biased estimate of [1]. It is never negative and, where codes follow the prior and
    n = B, not 0 but about 2 (1 - E k(y, y')) / B.
    """
    within_codes = _kernel(codes, codes, bandwidth).mean((-2, -1))
    within_prior = _kernel(prior, prior, bandwidth).mean((-2, -1))
    return within_codes + within_prior - 2 * _kernel(codes, prior, bandwidth).mean((-2, -1))


def stein_direction(codes: Tensor, bandwidth: Tensor) -> Tensor:
    """(..., B, D): where to move each code so that KL(q(z) || N(0, I)) falls fastest; [2].

    phi(z_i) = 1/B sum_j k(z_i, z_j) (-z_j) + 2/h (z_i - z_j) k(z_i, z_j): towards where the prior is dense,
    and away from each other. No gradient flows through it.
    """
    points = codes.detach()
    differences = points.unsqueeze(-2) - points.unsqueeze(-3)
    towards = 2 * differences / bandwidth[..., None, None, None] - points.unsqueeze(-3)
    return (_kernel(points, points, bandwidth).unsqueeze(-1) * towards).mean(-2)


def stein_surrogate(codes: Tensor, bandwidth: Tensor) -> Tensor:
    """(...): -1/B sum_i z_i . phi(z_i) with phi held fixed: codes move along phi. The value is arbitrary."""
    return -(codes * stein_direction(codes, bandwidth)).sum(-1).mean(-1)


def stein_discrepancy(codes: Tensor, bandwidth: Tensor) -> Tensor:
    """(...): how fast KL(q(z) || N(0, I)) falls along the Stein direction; 0 where codes follow the prior.

    The squared kernelized Stein discrepancy: the mean over i != j of
    k(z_i, z_j) (z_i . z_j + 2 D/h - (2/h + 4/h^2) |z_i - z_j|^2), the U-statistic of [3]. It is
    unbiased, hence sometimes negative.
    """
    batch, latents = codes.shape[-2:]
    width = bandwidth[..., None, None]
    products = (codes.unsqueeze(-2) * codes.unsqueeze(-3)).sum(-1)
    distances = _squared_distances(codes, codes)
    terms = torch.exp(-distances / width) * (
        products + 2 * latents / width - (2 / width + 4 / width.square()) * distances
    )
    diagonal = terms.diagonal(dim1=-2, dim2=-1).sum(-1)
    return (terms.sum((-2, -1)) - diagonal) / (batch * (batch - 1))


@dataclass(frozen=True)
class Verdict:
    """The output of a discriminator for codes and for draws from the prior: log D / (1 - D), (..., B) each.

    D is the probability that a point is a code. The optimal D has D / (1 - D) = q(z) / p(z).
    """

    codes: Tensor
    prior: Tensor

    @property
    def loss(self) -> Tensor:
        """(...): what the discriminator minimises, -(mean log D(z) + mean log(1 - D(y))) / 2."""
        return -0.5 * (logsigmoid(self.codes).mean(-1) + logsigmoid(-self.prior).mean(-1))

    @property
    def kl(self) -> Tensor:
        """(...): KL(q(z) || p(z)) as the discriminator estimates it, the mean log ratio of codes."""
        return self.codes.mean(-1)

    @property
    def exposure(self) -> Tensor:
        """(...): -mean log(1 - D(z)), small if codes are taken for draws from the prior."""
        return softplus(self.codes).mean(-1)

    @property
    def accuracy(self) -> Tensor:
        """(...): the share of points that it classifies correctly; 0.5 is chance."""
        return accuracy(self.codes, self.prior)


def accuracy(positive: Tensor, negative: Tensor) -> Tensor:
    """(...): the share of logits (..., B) with the right sign, mean over both classes; 0.5 is chance."""
    right = [(logits > 0).to(logits.dtype).mean(-1) for logits in (positive, -negative)]
    return 0.5 * (right[0] + right[1])


def judge(discriminator: nn.Module, codes: Tensor, prior: Tensor) -> Verdict:
    """Apply a discriminator with two logits, "a code" and "from the prior", to codes and draws.

    Both are one batch: on a GPU reading the weights takes the time, not the number of points.
    """
    logits = discriminator(torch.cat([codes, prior], dim=-2))
    return Verdict(*(logits[..., 0] - logits[..., 1]).chunk(2, dim=-1))


def _squared_distances(one: Tensor, other: Tensor) -> Tensor:
    """(..., n, m): squared distances of points (..., n, D) and (..., m, D)."""
    return (one.unsqueeze(-2) - other.unsqueeze(-3)).square().sum(-1)


def _kernel(one: Tensor, other: Tensor, bandwidth: Tensor) -> Tensor:
    """(..., n, m): k of points (..., n, D) and (..., m, D)."""
    return torch.exp(-_squared_distances(one, other) / bandwidth[..., None, None])
