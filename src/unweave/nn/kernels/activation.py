"""Triton kernels for CUDA of bias and activation after a product, in one pass, and of their gradients.

Tensors are (P, rows, F), see row.py. An activation is defined by its slope below 0: 0 is ReLU, 1 is none.
Its gradient needs only its result, which has the sign of its argument.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from unweave.nn.kernels.convolution import summed
from unweave.nn.kernels.row import COLUMNS, ROWS, columns, parts, places, tiles


@triton.jit
def _activate_kernel(
    x, bias, rows, FEATURES: tl.constexpr, SLOPE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    n, known = columns(FEATURES, BN)
    at, here = places(tl.program_id(0) * BM, rows, n, known, FEATURES, BM)
    x += run * rows * FEATURES
    values = tl.load(x + at, here, 0.0).to(tl.float32)
    values += tl.load(bias + run * FEATURES + n, known, 0.0).to(tl.float32)[None, :]
    tl.store(x + at, tl.where(values > 0, values, values * SLOPE), here)


@triton.jit
def _gradient_kernel(
    y, gradient, out, sums, rows, rows_each,
    FEATURES: tl.constexpr, SLOPE: tl.constexpr, WITH_SUMS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    # The gradient of the product; its sums over the rows of this program are the gradient of the bias.
    run = tl.program_id(1).to(tl.int64)
    first = tl.program_id(0) * rows_each
    n, known = columns(FEATURES, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(first, first + rows_each, BM):
        at, here = places(start, rows, n, known, FEATURES, BM)
        at += run * rows * FEATURES
        g = tl.load(gradient + at, here, 0.0).to(tl.float32)
        g = tl.where(tl.load(y + at, here, 0.0) > 0, g, g * SLOPE)
        tl.store(out + at, g, here)
        if WITH_SUMS:
            total += g
    if WITH_SUMS:
        sums += (run * tl.num_programs(0) + tl.program_id(0)) * FEATURES
        tl.store(sums + n, tl.sum(total, axis=0), known)


def activate(x: Tensor, bias: Tensor, slope: float) -> None:
    """Replace x (P, rows, F) by activation(x + bias), for a bias (P, F), in place."""
    _, rows, features = x.shape
    _activate_kernel[tiles(x)](x, bias, rows, features, slope, ROWS, COLUMNS)


def gradients(y: Tensor, gradient: Tensor, slope: float, to_bias: bool) -> tuple[Tensor, Tensor | None]:
    """Gradients of x and, if `to_bias`, of the bias, from that of y = activation(x + bias), (P, rows, F)."""
    (_, rows, features), out = y.shape, torch.empty_like(gradient)
    partial, rows_each, programs = parts(y, sums=1)
    _gradient_kernel[programs](
        y, gradient, out, partial, rows, rows_each, features, slope, to_bias, ROWS, COLUMNS
    )
    return out, summed(partial)[:, 0] if to_bias else None
