"""Adam's update of a large parameter on a CPU, in one pass over its memory.

Operation by operation, the update of the 11 million weights of the dense architecture takes 29 ms of a core;
in one pass it takes 8 ms. For parameters that fit into the cache the difference is small.
"""

from __future__ import annotations

import torch
from torch import Tensor

LARGE = 1 << 20  # numbers of one run; the networks of the study have fewer
_MANY_STEPS = 1e9  # after so many, the bias corrections of torch are 1: they are part of the step size here


def is_large(master: Tensor) -> bool:
    """Whether a parameter (P, ...) is updated in one pass."""
    return master.device.type == "cpu" and master.is_contiguous() and master[0].numel() >= LARGE


def adam_in_one_pass(
    master: Tensor,
    first: Tensor,
    second: Tensor,
    gradient: Tensor,
    size: Tensor,
    betas: tuple[float, float],
    epsilon: float,
) -> None:
    """Update a float32 parameter and its moments, (P, ...) each, in place.

    p <- p + size m / (sqrt(v) + epsilon); size is (P,), negative, and includes the bias corrections.
    """
    step = torch.tensor(_MANY_STEPS)
    tensors = (master, first, second, gradient.contiguous())
    for p, m, v, g, rate in zip(*tensors, (-size).tolist(), strict=True):
        torch._fused_adam_(
            [p], [g], [m], [v], [], [step],
            lr=rate, beta1=betas[0], beta2=betas[1], eps=epsilon,
            weight_decay=0.0, amsgrad=False, maximize=False,
        )  # fmt: skip
