"""The normalised temperature-scaled cross-entropy of pairs, NT-Xent [1].

[1] Chen, Kornblith, Norouzi, Hinton: A simple framework for contrastive learning of visual representations,
ICML 2020.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize


def nt_xent(first: Tensor, second: Tensor, temperature: float | Tensor) -> Tensor:
    """(...): NT-Xent of the features (..., B, d) of the first and the second image of each pair, in nats.

    The mean over all 2 B images i of -log exp(s_ij / t) / sum_{k != i} exp(s_ik / t), where j is the other
    image of the pair and s is the cosine similarity; [1], equation 1. It is log(2 B - 1) if all features are
    equal. The temperature t is a number, or (...).
    """
    features = normalize(torch.cat([first, second], dim=-2), dim=-1)
    scale = temperature[..., None, None] if isinstance(temperature, Tensor) else temperature
    similarity = features @ features.mT / scale
    pairs = first.shape[-2]
    itself = torch.eye(2 * pairs, dtype=torch.bool, device=first.device)
    log_shares = similarity.masked_fill(itself, -torch.inf).log_softmax(-1)
    forward = log_shares.diagonal(pairs, -2, -1)
    backward = log_shares.diagonal(-pairs, -2, -1)
    return -0.5 * (forward.mean(-1) + backward.mean(-1))
