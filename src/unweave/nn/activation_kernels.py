"""Triton kernels for CUDA of what follows a single product: bias and activation in one pass, and back.

Features lie beside each other, (P, rows, F); a row is a pixel of an image. An activation is given by its
slope below 0: 0 is ReLU, 1 is none. Its gradient needs its result alone, which has the sign of its argument.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from unweave.nn.convolution_kernels import PROGRAMS, in_parts, summed

ROWS, COLUMNS = 64, 32  # of a tile


@triton.jit
def _activate_kernel(
    x, bias, rows, FEATURES: tl.constexpr, SLOPE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(2) * BN + tl.arange(0, BN)
    known = n < FEATURES
    at, here = m[:, None] * FEATURES + n[None, :], (m < rows)[:, None] & known[None, :]
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
    # To the product; and its sums over the rows of this program's part, to the bias.
    run = tl.program_id(1).to(tl.int64)
    n = tl.program_id(2) * BN + tl.arange(0, BN)
    known = n < FEATURES
    total = tl.zeros((BM, BN), tl.float32)
    first = tl.program_id(0) * rows_each
    for start in range(first, first + rows_each, BM):
        m = start + tl.arange(0, BM)
        at, here = m[:, None] * FEATURES + n[None, :], (m < rows)[:, None] & known[None, :]
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
    """x (P, rows, F) becomes activation(x + bias), for a bias (P, F)."""
    runs, rows, features = x.shape
    tiles = triton.cdiv(rows, ROWS), runs, triton.cdiv(features, COLUMNS)
    _activate_kernel[tiles](x, bias, rows, features, slope, ROWS, COLUMNS)


def gradients(y: Tensor, gradient: Tensor, slope: float, to_bias: bool) -> tuple[Tensor, Tensor | None]:
    """To x, and, if it is wanted, to the bias, of the gradient of y = activation(x + bias), (P, rows, F)."""
    runs, rows, features = y.shape
    blocks = triton.cdiv(features, COLUMNS)
    each, parts = in_parts(rows, PROGRAMS, runs * blocks, least=ROWS, step=ROWS)
    out, sums = torch.empty_like(gradient), torch.empty(runs, parts, features, device=y.device)
    _gradient_kernel[(parts, runs, blocks)](
        y, gradient, out, sums, rows, each, features, slope, to_bias, ROWS, COLUMNS
    )
    return out, summed(sums) if to_bias else None
