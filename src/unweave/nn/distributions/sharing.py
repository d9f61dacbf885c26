"""Posteriors that several images share: products and averages of Gaussians, and which dimensions are shared.

The m images of a group have a separate axis: posteriors are (..., m, D).

[1] Bouchacourt, Tomioka, Nowozin: Multi-level variational autoencoder, AAAI 2018.
[2] Hosoya: Group-based learning of disentangled representations, IJCAI 2019.
[3] Locatello, Poole, Rätsch, Schölkopf, Bachem, Tschannen: Weakly-supervised disentanglement without
compromises, ICML 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from unweave.errors import UnweaveError
from unweave.nn.distributions.gaussian import Gaussian

# The shared posterior of m images: (..., m, D) -> (..., 1, D).
Rule: TypeAlias = Callable[[Gaussian], Gaussian]


def product(posterior: Gaussian) -> Gaussian:
    """The product of the m densities, normalised: 1/v = sum_i 1/v_i and mean = v sum_i mean_i / v_i; [1]."""
    weights = torch.softmax(-posterior.log_var, dim=-2)  # v / v_i
    mean = (weights * posterior.mean).sum(-2, keepdim=True)
    return Gaussian(mean, -torch.logsumexp(-posterior.log_var, dim=-2, keepdim=True))


def published_product(posterior: Gaussian) -> Gaussian:
    """The mean of `product` with m times its variance, the harmonic mean of the v_i.

    This is the rule of the code that was released with [3], for pairs: 2 v_1 v_2 / (v_1 + v_2).
    """
    exact = product(posterior)
    return Gaussian(exact.mean, exact.log_var + math.log(posterior.mean.shape[-2]))


def average(posterior: Gaussian) -> Gaussian:
    """The mean of the m means and the mean of the m variances; [2]."""
    log_sum = torch.logsumexp(posterior.log_var, dim=-2, keepdim=True)
    return Gaussian(posterior.mean.mean(-2, keepdim=True), log_sum - math.log(posterior.mean.shape[-2]))


def share(posterior: Gaussian, shared: Tensor, rule: Rule) -> Gaussian:
    """(..., m, D): one posterior for all m images in the marked dimensions; the others are unchanged.

    `shared` is a boolean mask that can be broadcast to (..., m, D).
    """
    merged = rule(posterior)
    return Gaussian(
        torch.where(shared, merged.mean, posterior.mean),
        torch.where(shared, merged.log_var, posterior.log_var),
    )


def share_content(posterior: Gaussian, content: int, rule: Rule) -> Gaussian:
    """(..., m, D): one posterior for all m in the first `content` dimensions; of any number of images m."""
    latents = posterior.mean.shape[-1]
    if content > latents:
        raise UnweaveError(
            f"{content} of {latents} dimensions cannot be content. Set content to {latents} or less."
        )
    return share(posterior, torch.arange(latents, device=posterior.mean.device) < content, rule)


def group_kl(posterior: Gaussian, content: int, size: int) -> tuple[Tensor, Tensor]:
    """(...), (...): the divergences of content and style from N(0, I), of a batch (..., n size, D).

    Means over the images. The content of a group is one code: it counts once, 1/size for each image.
    """
    kl = posterior.kl_per_dimension().mean(-2)
    return kl[..., :content].sum(-1) / size, kl[..., content:].sum(-1)


def in_groups(posterior: Gaussian, size: int) -> Gaussian:
    """(..., n size, D), where images of a group are neighbours -> (..., n, size, D)."""
    return Gaussian(*(part.unflatten(-2, (-1, size)) for part in (posterior.mean, posterior.log_var)))


def ungrouped(posterior: Gaussian) -> Gaussian:
    """(..., n, size, D) -> (..., n size, D)."""
    return Gaussian(posterior.mean.flatten(-3, -2), posterior.log_var.flatten(-3, -2))


def distance(pair: Gaussian) -> Tensor:
    """(..., 1, D): KL(q(z_d|x_1) || q(z_d|x_2)) in each dimension, of two posteriors (..., 2, D); [3]."""
    first, second = pair[..., :1, :], pair[..., 1:, :]
    narrower = first.log_var - second.log_var
    apart = (second.mean - first.mean).square() * torch.exp(-second.log_var)
    return 0.5 * (torch.expm1(narrower) - narrower + apart)


def below_midpoint(distances: Tensor) -> Tensor:
    """Mark the dimensions whose distance is below (max + min) / 2 over all of them; [3], section 4."""
    midpoint = 0.5 * (distances.amax(-1, keepdim=True) + distances.amin(-1, keepdim=True))
    return distances < midpoint


def smallest(distances: Tensor, count: Tensor) -> Tensor:
    """Mark the `count` dimensions with the smallest distances; count (...) can be broadcast."""
    ranks = distances.argsort(dim=-1, stable=True).argsort(dim=-1)
    return ranks < count


def shared_dimensions(posterior: Gaussian, size: int) -> Tensor:
    """(...): in how many dimensions the images of a group have one posterior, mean over the groups."""
    means = in_groups(posterior, size).mean
    alike = (means == means[..., :1, :]).all(dim=-2)
    return alike.to(means.dtype).sum(-1).mean(-1)
