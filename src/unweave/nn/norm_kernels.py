"""Triton kernels of batch normalisation for CUDA: each pass reads what it needs once.

Features lie beside each other, (P, rows, F); a row is a code, or a pixel of an image. Mean and variance are
kept as the sums of x - x0 and (x - x0)^2 over the rows, where x0 is the first one: numbers that are far from
0 and close to each other do not lose their digits.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from unweave.nn.convolution_kernels import PROGRAMS, in_parts, summed


@triton.jit
def _standardised(
    x, moments, run, rows, n, at, here, known,
    FEATURES: tl.constexpr, EPSILON: tl.constexpr,
):  # fmt: skip
    # Numbers at places of a run with mean 0 and variance 1, and what they were divided by, inverted.
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
    n = tl.program_id(2) * BN + tl.arange(0, BN)
    known = n < FEATURES
    x += run * rows * FEATURES
    origin = tl.load(x + n, known, 0.0).to(tl.float32)
    total, squares = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    first = tl.program_id(0) * rows_each
    for start in range(first, first + rows_each, BM):
        m = start + tl.arange(0, BM)
        here = (m < rows)[:, None] & known[None, :]
        values = tl.load(x + m[:, None] * FEATURES + n[None, :], here, 0.0).to(tl.float32)
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
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(2) * BN + tl.arange(0, BN)
    known = n < FEATURES
    at, here = m[:, None] * FEATURES + n[None, :], (m < rows)[:, None] & known[None, :]
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
    n = tl.program_id(2) * BN + tl.arange(0, BN)
    known = n < FEATURES
    total, products = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    first = tl.program_id(0) * rows_each
    for start in range(first, first + rows_each, BM):
        m = start + tl.arange(0, BM)
        at, here = m[:, None] * FEATURES + n[None, :], (m < rows)[:, None] & known[None, :]
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
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(2) * BN + tl.arange(0, BN)
    known = n < FEATURES
    at, here = m[:, None] * FEATURES + n[None, :], (m < rows)[:, None] & known[None, :]
    values, inverse = _standardised(x, moments, run, rows, n, at, here, known, FEATURES, EPSILON)
    g = tl.load(gradient + run * rows * FEATURES + at, here, 0.0).to(tl.float32)
    mean = tl.load(sums + run * 2 * FEATURES + n, known, 0.0) / rows
    tilt = tl.load(sums + (run * 2 + 1) * FEATURES + n, known, 0.0) / rows
    slope = tl.load(scale + run * FEATURES + n, known, 0.0) * inverse
    tl.store(
        out + run * rows * FEATURES + at, (g - mean[None, :] - values * tilt[None, :]) * slope[None, :], here
    )


ROWS, COLUMNS = 64, 32  # of a tile


def normalise(x: Tensor, scale: Tensor, shift: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """(P, rows, F) with mean `shift` and deviation `scale` (P, F), and the sums (P, 2, F) to go back with."""
    (_, rows, features), tiles = x.shape, _tiles(x)
    made, each, programs = _parts(x)
    _moments_kernel[programs](x, made, rows, each, features, ROWS, COLUMNS)
    moments, out = summed(made), torch.empty_like(x)
    _normalise_kernel[tiles](x, moments, scale, shift, out, rows, features, epsilon, ROWS, COLUMNS)
    return out, moments


def gradients(
    x: Tensor, moments: Tensor, gradient: Tensor, scale: Tensor, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """To x, to the scale and to the shift, of the gradient of `normalise`'s result."""
    (_, rows, features), tiles = x.shape, _tiles(x)
    made, each, programs = _parts(x)
    _gradient_sums_kernel[programs](x, moments, gradient, made, rows, each, features, epsilon, ROWS, COLUMNS)
    sums, out = summed(made), torch.empty_like(x)
    _gradient_kernel[tiles](x, moments, gradient, sums, scale, out, rows, features, epsilon, ROWS, COLUMNS)
    return out, sums[:, 1], sums[:, 0]


def _tiles(x: Tensor) -> tuple[int, int, int]:
    """Programs that make a tile each."""
    runs, rows, features = x.shape
    return triton.cdiv(rows, ROWS), runs, triton.cdiv(features, COLUMNS)


def _parts(x: Tensor) -> tuple[Tensor, int, tuple[int, int, int]]:
    """For two sums over rows: room for the parts (P, parts, 2, F), rows in each, and programs to fill it."""
    runs, rows, features = x.shape
    blocks = triton.cdiv(features, COLUMNS)
    each, parts = in_parts(rows, PROGRAMS, runs * blocks, least=ROWS, step=ROWS)
    made = torch.empty(runs, parts, 2, features, device=x.device)
    return made, each, (parts, runs, blocks)
