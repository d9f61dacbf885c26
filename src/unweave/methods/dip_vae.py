"""DIP-VAE [1]: the covariance of the codes is pulled towards the identity.

[1] Kumar, Sattigeri, Balakrishnan: Variational inference of disentangled latent concepts from unlabeled
observations, ICLR 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unweave.methods.method import AUTOENCODER, Forward, Losses, Method, Setting, StepContext, elbo_terms

CITATION = """@inproceedings{kumar2018dip,
  author = {Abhishek Kumar and Prasanna Sattigeri and Avinash Balakrishnan},
  title = {Variational Inference of Disentangled Latent Concepts from Unlabeled Observations},
  booktitle = {International Conference on Learning Representations},
  year = {2018}
}"""


@dataclass(frozen=True)
class DIPVAE1(Method):
    """DIP-VAE-I: pulls the covariance of the posterior means to the identity.

    rec + KL + lambda_od sum_{i != j} Cov_ij^2 + lambda_d sum_i (Cov_ii - 1)^2; [1], equation 6.

    Cov = Cov[mean], the covariance over the batch of the means of q(z|x), divided by B and not by B - 1.
    lambda_d = lambda_d_factor lambda_od, so lambda_od = 0 is the VAE.
    """

    lambda_od: Setting = 10.0
    """Weight of the covariances."""
    lambda_d_factor: Setting = 10.0
    """Weight of the variances, in units of lambda_od."""

    name: ClassVar[str] = "dip_vae_i"
    strength: ClassVar[str | None] = "lambda_od"
    citation: ClassVar[str] = CITATION

    def losses(self, step: StepContext) -> Losses:
        """The objective of [1], negated."""
        forward = step.forward
        return _losses(forward, covariance(forward.posterior.mean), self.lambda_od, self.lambda_d_factor)


@dataclass(frozen=True)
class DIPVAE2(Method):
    """DIP-VAE-II: pulls the covariance of the sampled codes to the identity.

    rec + KL + lambda_od sum_{i != j} Cov_ij^2 + lambda_d sum_i (Cov_ii - 1)^2; [1], equation 7.

    Cov = Cov[mean] + E diag(exp(log_var)), the covariance of the codes themselves: that of `DIPVAE1` and the
    mean variance of q(z|x). lambda_d = lambda_d_factor lambda_od.
    """

    lambda_od: Setting = 10.0
    """Weight of the covariances."""
    lambda_d_factor: Setting = 1.0
    """Weight of the variances, in units of lambda_od."""

    name: ClassVar[str] = "dip_vae_ii"
    strength: ClassVar[str | None] = "lambda_od"
    citation: ClassVar[str] = CITATION

    def losses(self, step: StepContext) -> Losses:
        """The objective of [1], negated."""
        forward = step.forward
        variance = forward.posterior.log_var.exp().mean(-2)
        code_covariance = covariance(forward.posterior.mean) + torch.diag_embed(variance)
        return _losses(forward, code_covariance, self.lambda_od, self.lambda_d_factor)


def covariance(codes: Tensor) -> Tensor:
    """(..., D, D): the biased covariance over the batch of codes (..., B, D)."""
    centred = codes - codes.mean(-2, keepdim=True)
    # No matrix product: a GPU may compute it in the lower precision of the networks.
    return (centred.unsqueeze(-1) * centred.unsqueeze(-2)).mean(-3)


def _losses(forward: Forward, covariance: Tensor, lambda_od: Setting, lambda_d_factor: Setting) -> Losses:
    variances = covariance.diagonal(dim1=-2, dim2=-1)
    off_diagonal = (covariance - torch.diag_embed(variances)).square().sum((-2, -1))
    diagonal = (variances - 1).square().sum(-1)
    lambda_d = lambda_d_factor * lambda_od
    loss = forward.reconstruction + forward.kl + lambda_od * off_diagonal + lambda_d * diagonal
    return Losses(
        {AUTOENCODER: loss}, elbo_terms(forward) | {"off_diagonal": off_diagonal, "diagonal": diagonal}
    )
