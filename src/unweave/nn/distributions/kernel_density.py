"""The dependence of the codes of a batch, by kernel density estimates [1].

[1] Hsu, Hamid, Burns, Finn, Wu: Tripod: three complementary inductive biases for disentangled representation
learning, ICML 2024.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def kernel_multiinformation(z: Tensor, deviation: Tensor) -> Tensor:
    """(...): mean_i log q(z_i) / prod_d q_d(z_id) for codes (..., B, D), deviations (..., D).

    q and q_d mix Gaussian kernels around the B codes of the batch. The kernel of q_d has the bandwidth
    s_d = deviation of dimension d. The kernel of q has the bandwidths c s_d, where
    c = (4 / (D + 2))^(1 / (D + 4)) B^(-1 / (D + 4)) is Silverman's rule for D dimensions.

    The result does not change if a dimension is scaled together with its deviation. Bandwidths of q and q_d
    differ, as in the authors' program, so it is not 0 for independent codes.
    """
    batch, latents = z.shape[-2:]
    factor = (4 / (latents + 2) / batch) ** (1 / (latents + 4))
    scaled = z / deviation.unsqueeze(-2)
    exponents = -0.5 * (scaled.unsqueeze(-2) - scaled.unsqueeze(-3)).square()  # (..., B, B, D)
    joint = torch.logsumexp(exponents.sum(-1) / factor**2, dim=-1)
    product = torch.logsumexp(exponents, dim=-2).sum(-1)
    # The normalisation of the kernels, 1 / (sqrt(2 pi) s_d), is that of both densities.
    constant = (latents - 1) * math.log(batch) - latents * math.log(factor)
    return (joint - product).mean(-1) + constant
