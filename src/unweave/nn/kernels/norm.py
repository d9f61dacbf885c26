"""Triton kernels of batch normalisation for CUDA: each pass reads its inputs once.

Tensors are (P, rows, F), see row.py. Mean and variance are stored as the sums of x - x0 and (x - x0)^2 over
the rows, where x0 is the first row: numbers far from 0 and close to each other keep their precision.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from unweave.nn.kernels.convolution import summed
from unweave.nn.kernels.row import COLUMNS, ROWS, columns, parts, places, tiles


@triton.jit
def _standardised(
    x, moments, run, rows, n, at, here, known,
    FEATURES: tl.constexpr, EPSILON: tl.constexpr,
):  # fmt: skip
    # Standardised numbers (mean 0 and variance 1) of a tile, and the inverse of their deviation.
    origin = tl.load(x + run * rows * FEATURES + n, known, 0.0).to(tl.float32)
    mean = tl.load(moments + run * 2 * FEATURES + n, known, 0.0) / rows
    square = tl.load(moments + (run * 2 + 1) * FEATURES + n, known, 0.0) / rows
    inverse = 1.0 / tl.sqrt(tl.maximum(square - mean * mean, 0.0) + EPSILON)
    values = tl.load(x + run * rows * FEATURES + at, here, 0.0).to(tl.float32)
    return (values - (origin + mean)[None, :]) * inverse[None, :], inverse


@triton.jit
def _store_sums(out, first, second, run, n, known, FEATURES: tl.constexpr):
    # Over the rows of this program's part.
    out += (run * tl.num_programs(0) + tl.program_id(0)) * 2 * FEATURES
    tl.store(out + n, tl.sum(first, axis=0), known)
    tl.store(out + FEATURES + n, tl.sum(second, axis=0), known)


@triton.jit
def _moments_kernel(
    x, out, rows, rows_each, FEATURES: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    first = tl.program_id(0) * rows_each
    n, known = columns(FEATURES, BN)
    x += run * rows * FEATURES
    origin = tl.load(x + n, known, 0.0).to(tl.float32)
    total, squares = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for start in range(first, first + rows_each, BM):
        at, here = places(start, rows, n, known, FEATURES, BM)
        values = tl.load(x + at, here, 0.0).to(tl.float32)
        values = tl.where(here, values - origin[None, :], 0.0)
        total += values
        squares += values * values
    _store_sums(out, total, squares, run, n, known, FEATURES)


@triton.jit
def _normalise_kernel(
    x, moments, scale, shift, out, rows,
    FEATURES: tl.constexpr, EPSILON: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    n, known = columns(FEATURES, BN)
    at, here = places(tl.program_id(0) * BM, rows, n, known, FEATURES, BM)
    values, _ = _standardised(x, moments, run, rows, n, at, here, known, FEATURES, EPSILON)
    slope = tl.load(scale + run * FEATURES + n, known, 0.0)
    values = values * slope[None, :] + tl.load(shift + run * FEATURES + n, known, 0.0)[None, :]
    tl.store(out + run * rows * FEATURES + at, values, here)


@triton.jit
def _gradient_sums_kernel(
    x, moments, gradient, out, rows, rows_each,
    FEATURES: tl.constexpr, EPSILON: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    # Over the rows: of the gradient, and of it times the standardised numbers.
    run = tl.program_id(1).to(tl.int64)
    first = tl.program_id(0) * rows_each
    n, known = columns(FEATURES, BN)
    total, products = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for start in range(first, first + rows_each, BM):
        at, here = places(start, rows, n, known, FEATURES, BM)
        values, _ = _standardised(x, moments, run, rows, n, at, here, known, FEATURES, EPSILON)
        g = tl.load(gradient + run * rows * FEATURES + at, here, 0.0).to(tl.float32)
        total += g
        products += g * values
    _store_sums(out, total, products, run, n, known, FEATURES)


@triton.jit
def _gradient_kernel(
    x, moments, gradient, sums, scale, out, rows,
    FEATURES: tl.constexpr, EPSILON: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    n, known = columns(FEATURES, BN)
    at, here = places(tl.program_id(0) * BM, rows, n, known, FEATURES, BM)
    values, inverse = _standardised(x, moments, run, rows, n, at, here, known, FEATURES, EPSILON)
    g = tl.load(gradient + run * rows * FEATURES + at, here, 0.0).to(tl.float32)
    mean = tl.load(sums + run * 2 * FEATURES + n, known, 0.0) / rows
    tilt = tl.load(sums + (run * 2 + 1) * FEATURES + n, known, 0.0) / rows
    slope = tl.load(scale + run * FEATURES + n, known, 0.0) * inverse
    tl.store(
        out + run * rows * FEATURES + at, (g - mean[None, :] - values * tilt[None, :]) * slope[None, :], here
    )


def normalise(x: Tensor, scale: Tensor, shift: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """x (P, rows, F) with mean `shift` and deviation `scale`, (P, F), and sums (P, 2, F) for `gradients`."""
    _, rows, features = x.shape
    partial, rows_each, programs = parts(x, sums=2)
    _moments_kernel[programs](x, partial, rows, rows_each, features, ROWS, COLUMNS)
    moments, out = summed(partial), torch.empty_like(x)
    _normalise_kernel[tiles(x)](x, moments, scale, shift, out, rows, features, epsilon, ROWS, COLUMNS)
    return out, moments


def gradients(
    x: Tensor, moments: Tensor, gradient: Tensor, scale: Tensor, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x, scale and shift, from the gradient of the result of `normalise`."""
    _, rows, features = x.shape
    partial, rows_each, programs = parts(x, sums=2)
    _gradient_sums_kernel[programs](
        x, moments, gradient, partial, rows, rows_each, features, epsilon, ROWS, COLUMNS
    )
    sums, out = summed(partial), torch.empty_like(x)
    _gradient_kernel[tiles(x)](x, moments, gradient, sums, scale, out, rows, features, epsilon, ROWS, COLUMNS)
    return out, sums[:, 1], sums[:, 0]
