"""Diagonal Gaussian posteriors: samples, divergences, and the aggregate posterior estimated from a batch.

The aggregate posterior q(z) = 1/N sum_n q(z|x_n) mixes the posteriors of all N images, of which a batch
holds only M. This module has two estimates of its density and of the densities of its dimensions: minibatch
weighted and minibatch stratified sampling [1]. All functions take any leading axes and reduce the last ones.

[1] Chen, Li, Grosse, Duvenaud: Isolating sources of disentanglement in VAEs, NeurIPS 2018.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from unweave.errors import UnweaveError
from unweave.nn.kernels.dispatch import has_triton

Estimator: TypeAlias = Literal["weighted", "stratified"]

LOG_2_PI = math.log(2 * math.pi)

# The log variance of a deterministic code: a standard deviation of 0.01, so that densities exist.
CERTAIN_LOG_VAR = 2 * math.log(0.01)


@dataclass(frozen=True)
class Gaussian:
    """N(mean, diag(exp(log_var))) for each image of a batch; both are (..., B, D)."""

    mean: Tensor
    log_var: Tensor

    def __getitem__(self, index: Any) -> Gaussian:
        """The same part of mean and log_var, such as some runs of a population."""
        return Gaussian(self.mean[index], self.log_var[index])

    def sample(self, noise: Tensor) -> Tensor:
        """(..., B, D): z = mean + exp(log_var / 2) noise, for standard normal noise."""
        return self.mean + torch.exp(0.5 * self.log_var) * noise

    def kl_per_dimension(self) -> Tensor:
        """(..., B, D): KL(q(z_d|x) || N(0, 1)) = (mean^2 + exp(log_var) - log_var - 1) / 2."""
        # expm1(v) - v keeps its digits where the posterior is close to the prior.
        return 0.5 * (self.mean.square() + torch.expm1(self.log_var) - self.log_var)

    def kl(self) -> Tensor:
        """(..., B): KL(q(z|x) || N(0, I))."""
        return self.kl_per_dimension().sum(-1)

    def log_density(self, z: Tensor) -> Tensor:
        """(..., B, D): log q(z_d|x), each dimension by itself."""
        distance = (z - self.mean).square() * torch.exp(-self.log_var)
        return -0.5 * (distance + self.log_var + LOG_2_PI)

    def pairwise_log_density(self, z: Tensor) -> Tensor:
        """(..., B, B, D): log q(z_d(i)|x_j), of each code i under the posterior of each image j."""
        each_image = Gaussian(self.mean.unsqueeze(-3), self.log_var.unsqueeze(-3))
        return each_image.log_density(z.unsqueeze(-2))


def sample_and_divergence(posterior: Gaussian, noise: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Samples (P, B, D), and their mean KL divergence from N(0, I), (P,).

    Standard normal noise (P, B, D) is multiplied by scale (P, 1, 1). On CUDA both are one kernel.
    """
    mean, log_var = posterior.mean, posterior.log_var
    if mean.is_cuda and mean.dtype == log_var.dtype == torch.float32 and has_triton():
        from unweave.nn.kernels import latent

        return latent.sample_and_divergence(mean, log_var, noise, scale)
    return posterior.sample(noise * scale), posterior.kl().mean(-1)


def certain(codes: Tensor) -> Gaussian:
    """Deterministic codes (..., B, D) as posteriors with a negligible variance."""
    return Gaussian(codes, torch.full_like(codes, CERTAIN_LOG_VAR))


@dataclass(frozen=True)
class Aggregate:
    """Log densities of the codes of a batch under the aggregate posterior, (..., B) each."""

    joint: Tensor  # log q(z)
    product: Tensor  # log prod_d q(z_d)


@dataclass(frozen=True)
class Decomposition:
    """The three parts of the mean KL(q(z|x) || p(z)) over the data, (...) each; [1], equation 2."""

    mutual_information: Tensor  # I(z; n) = KL(q(z, n) || q(z) p(n)), n the number of the image
    total_correlation: Tensor  # KL(q(z) || prod_d q(z_d))
    dimension_wise_kl: Tensor  # sum_d KL(q(z_d) || p(z_d))


def aggregate(posterior: Gaussian, z: Tensor, data_size: int, estimator: Estimator) -> Aggregate:
    """Estimate log q(z) and log prod_d q(z_d) at codes z (..., B, D), row i drawn from posterior i.

    q(z(i)) ~ sum_j w_ij q(z(i)|x_j), and likewise for each dimension, with M images in the batch:

    weighted: w_ij = 1 / (N M) ([1], equation 3). Its expectation is below q(z), by a factor between M,
    where posteriors do not overlap, and N, where all are alike. A total correlation made from it is
    therefore too large, by (D - 1) log N where all are alike: compare it between runs, not with zero.

    stratified: w_ii = 1 / N and w_ij = (N - 1) / (N (M - 1)) ([1], appendix C.2), whose expectation is
    q(z) over batches drawn without replacement; exact when the batch is the data set.
    Differs from [1]: the other images share their weight equally. In the paper one of them, which the
    order of the batch chooses, weighs less than the rest; this is the mean over all orders.
    """
    log_weights = _log_weights(z, data_size, estimator)
    pairs = posterior.pairwise_log_density(z)
    return Aggregate(
        joint=torch.logsumexp(pairs.sum(-1) + log_weights, dim=-1),
        product=torch.logsumexp(pairs + log_weights.unsqueeze(-1), dim=-2).sum(-1),
    )


def decomposition(posterior: Gaussian, z: Tensor, data_size: int, estimator: Estimator) -> Decomposition:
    """Estimate the three parts of the KL divergence from one z (..., B, D) for each image of a batch.

    Their sum is the mean of log q(z|x) - log p(z), free of the estimate of q(z).
    """
    q = aggregate(posterior, z, data_size, estimator)
    log_posterior = posterior.log_density(z).sum(-1)
    log_prior = -0.5 * (z.square() + LOG_2_PI).sum(-1)
    return Decomposition(
        mutual_information=(log_posterior - q.joint).mean(-1),
        total_correlation=(q.joint - q.product).mean(-1),
        dimension_wise_kl=(q.product - log_prior).mean(-1),
    )


def _log_weights(z: Tensor, data_size: int, estimator: Estimator) -> Tensor:
    """(B, B): log w_ij, the weight of the posterior of image j at the code of image i."""
    batch = z.shape[-2]
    if estimator == "weighted":
        return z.new_full((batch, batch), -math.log(data_size * batch))
    if min(batch, data_size) < 2:
        raise UnweaveError(
            f"stratified sampling needs batches and data of at least 2 images; got a batch of {batch} from "
            f'{data_size}. Take larger batches, or estimator="weighted".'
        )
    diagonal = torch.eye(batch, dtype=torch.bool, device=z.device)
    others = math.log((data_size - 1) / (data_size * (batch - 1)))
    return z.new_full((batch, batch), others).masked_fill(diagonal, -math.log(data_size))
