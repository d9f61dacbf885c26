"""How well logits explain images: -log p(x|z), summed over pixels, mean over the batch."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import torch.nn.functional as F
from torch import Tensor

Likelihood: TypeAlias = Literal["bernoulli", "gaussian"]
LIKELIHOODS: tuple[str, ...] = get_args(Likelihood)


def reconstruction_loss(logits: Tensor, images: Tensor, likelihood: Likelihood) -> Tensor:
    """(..., B, C, H, W) logits and images in [0, 1] -> (...).

    bernoulli: cross-entropy, -x log s - (1 - x) log(1 - s) with s = sigmoid(logit) = softplus(logit) - x
    logit; images need not be black and white. gaussian: the squared distance of s and x, as the published
    code has it (its Gaussian has variance 1/2, and the constant is left out).
    """
    logits, images = logits.float(), images.float()
    if likelihood == "bernoulli":
        each = F.softplus(logits) - images * logits
    else:
        each = (logits.sigmoid() - images).square()
    return each.sum(dim=(-3, -2, -1)).mean(dim=-1)
