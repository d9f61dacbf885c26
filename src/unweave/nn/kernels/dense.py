"""Dense layers on CUDA: bias and activation in one pass with a product, and their gradients.

Tensors are (P, B, features). The activation has a slope below 0: 0 is ReLU, 1 is none. Small layers in
bfloat16 are one launch each way: the product with bias and activation, and all three gradients. The products
of other layers are those of torch.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from unweave.nn.kernels import activation
from unweave.nn.kernels.launches import launch
from unweave.nn.kernels.row import columns, places

LARGEST = 1 << 18  # weights of a run, up to which a layer is small
PROGRAMS = 132  # of one round: the multiprocessors of an H200
ROWS, COLUMNS = 64, 32  # of a tile of a pass over results


@triton.jit
def _slope(y, g, SLOPE: tl.constexpr):
    # The gradient before the activation, from that of its result y.
    return tl.where(y > 0, g, g * SLOPE)


@triton.jit
def _forward_kernel(
    x, w, bias, out, rows, INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, SLOPE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    blocks: tl.constexpr = (OUTPUTS + BN - 1) // BN
    m = tl.program_id(0) // blocks * BM + tl.arange(0, BM)
    n = tl.program_id(0) % blocks * BN + tl.arange(0, BN)
    known_m, known_n = m < rows, n < OUTPUTS
    x, w = x + run * rows * INPUTS, w + run * INPUTS * OUTPUTS
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, INPUTS, BK):
        k = start + tl.arange(0, BK)
        known_k = k < INPUTS
        a = tl.load(x + m[:, None] * INPUTS + k[None, :], known_m[:, None] & known_k[None, :], 0.0)
        b = tl.load(w + k[:, None] * OUTPUTS + n[None, :], known_k[:, None] & known_n[None, :], 0.0)
        total = tl.dot(a.to(b.dtype), b, total)
    total += tl.load(bias + run * OUTPUTS + n, known_n, 0.0).to(tl.float32)[None, :]
    at = run * rows * OUTPUTS + m[:, None] * OUTPUTS + n[None, :]
    tl.store(out + at, tl.where(total > 0, total, total * SLOPE), known_m[:, None] & known_n[None, :])


@triton.jit
def _input_tile(
    w, y, gradient, to_x, tile, rows, INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, SLOPE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # A tile of the gradient of x.
    blocks: tl.constexpr = (INPUTS + BN - 1) // BN
    m, n = tile // blocks * BM + tl.arange(0, BM), tile % blocks * BN + tl.arange(0, BN)
    known_m, known_n = m < rows, n < INPUTS
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, OUTPUTS, BK):
        k = start + tl.arange(0, BK)
        at, here = m[:, None] * OUTPUTS + k[None, :], known_m[:, None] & (k < OUTPUTS)[None, :]
        g = tl.load(gradient + at, here, 0.0)
        if SLOPE != 1:
            g = _slope(tl.load(y + at, here, 0.0), g, SLOPE)
        b = tl.load(w + n[:, None] * OUTPUTS + k[None, :], known_n[:, None] & (k < OUTPUTS)[None, :], 0.0)
        total = tl.dot(g.to(b.dtype), tl.trans(b), total)
    tl.store(to_x + m[:, None] * INPUTS + n[None, :], total, known_m[:, None] & known_n[None, :])


@triton.jit
def _weight_tile(
    x, y, gradient, to_w, to_bias, tile, rows,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, SLOPE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # A tile of the gradient of the weights; those of the first rows also sum up the gradient of the bias.
    blocks: tl.constexpr = (INPUTS + BM - 1) // BM
    m, n = tile % blocks * BM + tl.arange(0, BM), tile // blocks * BN + tl.arange(0, BN)
    known_m, known_n = m < INPUTS, n < OUTPUTS
    total, sums = tl.zeros((BM, BN), tl.float32), tl.zeros((BN,), tl.float32)
    dtype = to_w.dtype.element_ty
    for start in range(0, rows, BK):
        k = start + tl.arange(0, BK)
        at, here = k[:, None] * OUTPUTS + n[None, :], (k < rows)[:, None] & known_n[None, :]
        g = tl.load(gradient + at, here, 0.0)
        if SLOPE != 1:
            g = _slope(tl.load(y + at, here, 0.0), g, SLOPE)
        a = tl.load(x + k[:, None] * INPUTS + m[None, :], (k < rows)[:, None] & known_m[None, :], 0.0)
        total = tl.dot(tl.trans(a.to(dtype)), g.to(dtype), total)
        sums += tl.sum(g.to(tl.float32), axis=0)
    tl.store(to_w + m[:, None] * OUTPUTS + n[None, :], total, known_m[:, None] & known_n[None, :])
    if tile % blocks == 0:
        tl.store(to_bias + n, sums, known_n)


@triton.jit
def _gradients_kernel(
    x, w, y, gradient, to_x, to_w, to_bias, rows, input_tiles,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, SLOPE: tl.constexpr,
    XM: tl.constexpr, XN: tl.constexpr, XK: tl.constexpr,
    WM: tl.constexpr, WN: tl.constexpr, WK: tl.constexpr,
):  # fmt: skip
    # The first programs of a run compute the gradient of x, the others that of the weights.
    run, tile = tl.program_id(1).to(tl.int64), tl.program_id(0)
    y, gradient = y + run * rows * OUTPUTS, gradient + run * rows * OUTPUTS
    of_x, of_w = run * rows * INPUTS, run * INPUTS * OUTPUTS
    if tile < input_tiles:
        _input_tile(w + of_w, y, gradient, to_x + of_x, tile, rows, INPUTS, OUTPUTS, SLOPE, XM, XN, XK)
    else:
        _weight_tile(
            x + of_x, y, gradient, to_w + of_w, to_bias + run * OUTPUTS, tile - input_tiles, rows,
            INPUTS, OUTPUTS, SLOPE, WM, WN, WK,
        )  # fmt: skip


@triton.jit
def _before_activation_kernel(
    y, gradient, out, to_bias, rows,
    FEATURES: tl.constexpr, SLOPE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    # The gradient of the product, and its sums over all rows, the gradient of the bias.
    run = tl.program_id(1).to(tl.int64)
    n, known = columns(FEATURES, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, rows, BM):
        at, here = places(start, rows, n, known, FEATURES, BM)
        at += run * rows * FEATURES
        g = tl.load(gradient + at, here, 0.0).to(tl.float32)
        if SLOPE != 1:
            g = _slope(tl.load(y + at, here, 0.0), g, SLOPE)
            tl.store(out + at, g, here)
        total += g
    tl.store(to_bias + run * FEATURES + n, tl.sum(total, axis=0), known)


class _Small(torch.autograd.Function):
    """A small layer in bfloat16: one launch each way."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, slope: float, dtype: torch.dtype
    ) -> Tensor:
        y = _product(x, weight, bias, slope, dtype)
        ctx.save_for_backward(x, weight, *([y] if slope != 1 else []))
        ctx.slope = slope
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, *result = ctx.saved_tensors
        y = result[0] if result else gradients[0]  # not read without an activation
        if torch.is_grad_enabled():  # the gradient is differentiated, too
            g = _differentiable_slope(y, gradients[0], ctx.slope).to(weight.dtype)
            to_x, to_w = g @ weight.mT, x.to(weight.dtype).mT @ g
            return to_x.to(x.dtype), to_w, g.sum(1), None, None
        of_x, g = ctx.needs_input_grad[0], gradients[0].contiguous()
        return *_small_gradients(x, weight, y, g, ctx.slope, of_x), None, None


class _Activated(torch.autograd.Function):
    """Bias and activation of a product, in place."""

    @staticmethod
    def forward(ctx: Any, product: Tensor, bias: Tensor, slope: float) -> Tensor:
        activation.activate(product, bias.contiguous(), slope)
        ctx.mark_dirty(product)
        ctx.save_for_backward(product)
        ctx.slope, ctx.dtype = slope, bias.dtype
        return product

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (y,) = ctx.saved_tensors
        if torch.is_grad_enabled():
            g = _differentiable_slope(y, gradients[0], ctx.slope)
            return g, g.sum(1), None
        return *before_activation(y, gradients[0].contiguous(), ctx.slope, ctx.dtype), None


def dense(x: Tensor, weight: Tensor, bias: Tensor, slope: float, dtype: torch.dtype | None = None) -> Tensor:
    """activation(x W + b) for (P, B, I), (P, I, O), (P, O), in the type of the weights or in another one."""
    dtype = weight.dtype if dtype is None else dtype
    if is_small(weight):
        # Copies are made here: a gradient that is differentiated must reach the original.
        y: Tensor = _Small.apply(x.contiguous(), weight.contiguous(), bias.contiguous(), slope, dtype)
        return y
    # torch's own product computes no gradient of weights where a player asks for that of its input only.
    y = _Activated.apply(torch.bmm(x.to(weight.dtype), weight), bias, slope)
    return y.to(dtype)


def is_small(weight: Tensor) -> bool:
    """Whether the kernels of small layers are used."""
    return weight.dtype in (torch.bfloat16, torch.float16) and weight[0].numel() <= LARGEST


def before_activation(y: Tensor, gradient: Tensor, slope: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Gradients of a product and of the bias, of that type, from that of the activation's result y."""
    runs, rows, features = y.shape
    out = gradient if slope == 1 else torch.empty_like(gradient)
    to_bias = torch.empty(runs, features, dtype=dtype, device=y.device)
    grid = (1, runs, triton.cdiv(features, COLUMNS))
    _before_activation_kernel[grid](y, gradient, out, to_bias, rows, features, slope, ROWS, COLUMNS)
    return out, to_bias


def _product(x: Tensor, weight: Tensor, bias: Tensor, slope: float, dtype: torch.dtype) -> Tensor:
    (runs, rows, inputs), outputs = x.shape, weight.shape[2]
    out = torch.empty(runs, rows, outputs, dtype=dtype, device=x.device)
    row_size, column_size = _tile(runs, rows, outputs)
    grid = (triton.cdiv(rows, row_size) * triton.cdiv(outputs, column_size), runs)
    launch(
        _forward_kernel, grid,
        x, weight, bias, out, rows, inputs, outputs, slope, row_size, column_size, _depth(inputs, 128),
        num_stages=4,
    )  # fmt: skip
    return out


def _small_gradients(
    x: Tensor, weight: Tensor, y: Tensor, gradient: Tensor, slope: float, of_x: bool
) -> tuple[Tensor | None, Tensor, Tensor]:
    (runs, rows, inputs), outputs = x.shape, weight.shape[2]
    to_x = torch.empty_like(x) if of_x else None
    to_w = torch.empty_like(weight)
    to_bias = torch.empty(runs, outputs, dtype=weight.dtype, device=x.device)
    row_size, column_size = _tile(runs, rows, inputs)
    input_tiles = triton.cdiv(rows, row_size) * triton.cdiv(inputs, column_size) if of_x else 0
    weight_size = min(64, _depth(inputs, 64)), min(64, _depth(outputs, 64))
    weight_tiles = triton.cdiv(inputs, weight_size[0]) * triton.cdiv(outputs, weight_size[1])
    launch(
        _gradients_kernel, (input_tiles + weight_tiles, runs),
        x, weight, y, gradient, x if to_x is None else to_x, to_w, to_bias, rows, input_tiles,
        inputs, outputs, slope, row_size, column_size, _depth(outputs, 64),
        *weight_size, _depth(rows, 64), num_stages=3,
    )  # fmt: skip
    return to_x, to_w, to_bias


def _tile(runs: int, rows: int, features: int) -> tuple[int, int]:
    """The largest tile of a result that has work for all multiprocessors, or a small one."""
    columns = _depth(features, 64)
    for tile in ((64, columns), (64, min(32, columns)), (32, min(32, columns))):
        if runs * triton.cdiv(rows, tile[0]) * triton.cdiv(features, tile[1]) >= PROGRAMS:
            return tile
    return 16, min(32, columns)


def _depth(size: int, most: int) -> int:
    """A side of a tile: a power of two from 16 to `most`."""
    return min(most, max(16, int(triton.next_power_of_2(size))))


def _differentiable_slope(y: Tensor, gradient: Tensor, slope: float) -> Tensor:
    return torch.where(y > 0, gradient, gradient * slope)
