"""Adam's update as one Triton kernel per parameter, for CUDA: each number is read and written once."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _adam_kernel(
    master, used, first, second, gradient, size, decay, count, share1, keep2, share2, epsilon,
    ROUNDED: tl.constexpr, DECAYS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here, at = i < count, run * count + i
    g = tl.load(gradient + at, here, 0.0).to(tl.float32)
    m, v = tl.load(first + at, here, 0.0), tl.load(second + at, here, 0.0)
    m += (g - m) * share1
    v = v * keep2 + g * g * share2
    p = tl.load(master + at, here, 0.0)
    change = tl.load(size + run) * (m / (tl.sqrt(v) + epsilon))
    if DECAYS:
        change -= tl.load(decay + run) * p
    p += change
    tl.store(first + at, m, here)
    tl.store(second + at, v, here)
    tl.store(master + at, p, here)
    if ROUNDED:
        tl.store(used + at, p, here)


def adam(
    master: Tensor,
    used: Tensor,
    first: Tensor,
    second: Tensor,
    gradient: Tensor,
    size: Tensor,
    beta1: float,
    beta2: float,
    epsilon: float,
    decay: Tensor | None = None,
) -> None:
    """p <- p + size m / (sqrt(v) + epsilon) - decay p in place, (P, ...) each; `used` is p, or p rounded.

    size and decay are (P,); decay may be left out. All other tensors have the same strides, without gaps.
    """
    runs, count, block = len(master), master[0].numel(), 1024
    _adam_kernel[(triton.cdiv(count, block), runs)](
        master, used, first, second, gradient, size, size if decay is None else decay, count,
        1 - beta1, beta2, 1 - beta2, epsilon, used.dtype != master.dtype, decay is not None, block,
    )  # fmt: skip
