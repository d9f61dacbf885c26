"""Triton kernels of the population's convolutions, for CUDA.

Images lie channels-last, (P, B, H, W, C), so that the channels of a pixel are neighbours in memory. All
convolutions have stride 2. Three matrix products serve forward and backward passes of both layers:

    correlate  small[y, x]       = sum over taps of big[2 y + ky - padding, 2 x + kx - padding] w[ky, kx]
    spread     big[2 y + ky - padding, ...] += small[y, x] w[ky, kx]   (the transpose of correlate)
    tap_products  w[ky, kx]      = sum over positions of big[2 y + ky - padding, ...]^T small[y, x]

A convolution is correlate, its gradients are spread and tap_products; a transposed convolution is spread,
its gradients are correlate and tap_products. The patches that a matrix product needs are never written to
memory: each program gathers its own. Bias and ReLU are applied before a result leaves the chip, and a
gradient is masked by the ReLU's output as it is read.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _correlate_kernel(
    big, mask, w, bias, out, images, height, width,
    w_run, w_in, w_out,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, KERNEL: tl.constexpr, PADDING: tl.constexpr,
    HAS_MASK: tl.constexpr, HAS_BIAS: tl.constexpr, RELU: tl.constexpr, PRECISION: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    small_h, small_w = height // 2, width // 2
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    image, y, x = m // (small_h * small_w), (m // small_w) % small_h, m % small_w
    n = tl.program_id(2) * BN + tl.arange(0, BN)
    big += run * images * height * width * INPUTS
    mask += run * images * height * width * INPUTS
    w += run * w_run
    total = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, KERNEL * KERNEL * INPUTS, BK):
        k = k0 + tl.arange(0, BK)
        tap, channel = k // INPUTS, k % INPUTS
        row = 2 * y[:, None] + (tap // KERNEL - PADDING)[None, :]
        column = 2 * x[:, None] + (tap % KERNEL - PADDING)[None, :]
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        inside &= (image < images)[:, None] & (tap < KERNEL * KERNEL)[None, :]
        at = ((image[:, None] * height + row) * width + column) * INPUTS + channel[None, :]
        values = tl.load(big + at, inside, 0.0)
        if HAS_MASK:
            values = tl.where(tl.load(mask + at, inside, 0.0) > 0, values, 0.0)
        known = (tap < KERNEL * KERNEL)[:, None] & (n < OUTPUTS)[None, :]
        weights = tl.load(
            w + (tap * INPUTS * OUTPUTS + channel * w_in)[:, None] + (n * w_out)[None, :], known, 0.0
        )
        total = tl.dot(values, weights, total, input_precision=PRECISION)
    if HAS_BIAS:
        total += tl.load(bias + run * OUTPUTS + n, n < OUTPUTS, 0.0)[None, :]
    if RELU:
        total = tl.maximum(total, 0.0)
    out += run * images * small_h * small_w * OUTPUTS
    at = m[:, None] * OUTPUTS + n[None, :]
    tl.store(out + at, total, (image < images)[:, None] & (n < OUTPUTS)[None, :])


@triton.jit
def _spread_kernel(
    small, mask, w, bias, out, images, height, width,
    w_run, w_in, w_out,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, KERNEL: tl.constexpr, PADDING: tl.constexpr,
    HAS_MASK: tl.constexpr, HAS_BIAS: tl.constexpr, RELU: tl.constexpr, PRECISION: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # height, width are those of the small images. Outputs of one parity (even or odd row, even or odd
    # column) see the same KERNEL / 2 x KERNEL / 2 taps, so each parity is a matrix product of its own.
    run = tl.program_id(1).to(tl.int64)
    parity = tl.program_id(2) % 4
    odd_row, odd_column = parity // 2, parity % 2
    first_row, first_column = (odd_row + PADDING) % 2, (odd_column + PADDING) % 2
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    image, y, x = m // (height * width), (m // width) % height, m % width
    n = tl.program_id(2) // 4 * BN + tl.arange(0, BN)
    small += run * images * height * width * INPUTS
    mask += run * images * height * width * INPUTS
    w += run * w_run
    TAPS: tl.constexpr = KERNEL // 2
    total = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, TAPS * TAPS * INPUTS, BK):
        k = k0 + tl.arange(0, BK)
        pair, channel = k // INPUTS, k % INPUTS
        tap_row, tap_column = first_row + 2 * (pair // TAPS), first_column + 2 * (pair % TAPS)
        row = y[:, None] + ((odd_row + PADDING - tap_row) // 2)[None, :]
        column = x[:, None] + ((odd_column + PADDING - tap_column) // 2)[None, :]
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        inside &= (image < images)[:, None] & (pair < TAPS * TAPS)[None, :]
        at = ((image[:, None] * height + row) * width + column) * INPUTS + channel[None, :]
        values = tl.load(small + at, inside, 0.0)
        if HAS_MASK:
            values = tl.where(tl.load(mask + at, inside, 0.0) > 0, values, 0.0)
        tap = tap_row * KERNEL + tap_column
        known = (pair < TAPS * TAPS)[:, None] & (n < OUTPUTS)[None, :]
        weights = tl.load(
            w + (tap * INPUTS * OUTPUTS + channel * w_in)[:, None] + (n * w_out)[None, :], known, 0.0
        )
        total = tl.dot(values, weights, total, input_precision=PRECISION)
    if HAS_BIAS:
        total += tl.load(bias + run * OUTPUTS + n, n < OUTPUTS, 0.0)[None, :]
    if RELU:
        total = tl.maximum(total, 0.0)
    pixel = (image * 2 * height + 2 * y + odd_row) * 2 * width + 2 * x + odd_column
    out += run * images * 4 * height * width * OUTPUTS
    at = pixel[:, None] * OUTPUTS + n[None, :]
    tl.store(out + at, total, (image < images)[:, None] & (n < OUTPUTS)[None, :])


@triton.jit
def _tap_products_kernel(
    big, big_mask, small, small_mask, out, images, height, width, positions_each,
    BIG: tl.constexpr, SMALL: tl.constexpr, KERNEL: tl.constexpr, PADDING: tl.constexpr,
    MASK_BIG: tl.constexpr, MASK_SMALL: tl.constexpr, PRECISION: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # height, width are those of the big images. Program (tile, split, run) sums over the positions
    # split * positions_each ...; the splits are added up afterwards, in a fixed order.
    run = tl.program_id(2).to(tl.int64)
    small_h, small_w = height // 2, width // 2
    positions = images * small_h * small_w
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    tap, big_channel = m // BIG, m % BIG
    n = tl.arange(0, BN)
    big += run * images * height * width * BIG
    big_mask += run * images * height * width * BIG
    small += run * positions * SMALL
    small_mask += run * positions * SMALL
    total = tl.zeros((BM, BN), tl.float32)
    first = tl.program_id(1) * positions_each
    for start in range(first, first + positions_each, BK):
        r = start + tl.arange(0, BK)
        here = (r < positions) & (r < first + positions_each)
        image, y, x = r // (small_h * small_w), (r // small_w) % small_h, r % small_w
        row = 2 * y[:, None] + (tap // KERNEL - PADDING)[None, :]
        column = 2 * x[:, None] + (tap % KERNEL - PADDING)[None, :]
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        inside &= here[:, None] & (tap < KERNEL * KERNEL)[None, :]
        at = ((image[:, None] * height + row) * width + column) * BIG + big_channel[None, :]
        patches = tl.load(big + at, inside, 0.0)
        if MASK_BIG:
            patches = tl.where(tl.load(big_mask + at, inside, 0.0) > 0, patches, 0.0)
        known = here[:, None] & (n < SMALL)[None, :]
        at = r[:, None] * SMALL + n[None, :]
        values = tl.load(small + at, known, 0.0)
        if MASK_SMALL:
            values = tl.where(tl.load(small_mask + at, known, 0.0) > 0, values, 0.0)
        total = tl.dot(tl.trans(patches), values, total, input_precision=PRECISION)
    out += (run * tl.num_programs(1) + tl.program_id(1)) * KERNEL * KERNEL * BIG * SMALL
    at = m[:, None] * SMALL + n[None, :]
    tl.store(out + at, total, (tap < KERNEL * KERNEL)[:, None] & (n < SMALL)[None, :])


@triton.jit
def _masked_sum_kernel(
    values, mask, out, rows, rows_each,
    COLUMNS: tl.constexpr, HAS_MASK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    run, split = tl.program_id(1).to(tl.int64), tl.program_id(0)
    n = tl.arange(0, BN)
    values += run * rows * COLUMNS
    mask += run * rows * COLUMNS
    total = tl.zeros((BN,), tl.float32)
    for start in range(split * rows_each, (split + 1) * rows_each, BM):
        m = start + tl.arange(0, BM)
        here = ((m < rows) & (m < (split + 1) * rows_each))[:, None] & (n < COLUMNS)[None, :]
        at = m[:, None] * COLUMNS + n[None, :]
        part = tl.load(values + at, here, 0.0).to(tl.float32)
        if HAS_MASK:
            part = tl.where(tl.load(mask + at, here, 0.0) > 0, part, 0.0)
        total += tl.sum(part, axis=0)
    tl.store(out + (run * tl.num_programs(0) + split) * COLUMNS + n, total, n < COLUMNS)


def correlate(
    big: Tensor,
    w: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    padding: int,
    relu: bool,
    tf32: bool,
    transposed: bool,
) -> Tensor:
    """(P, B, H, W, I) -> (P, B, H/2, W/2, O); w is (P, k, k, I, O), or (P, k, k, O, I) if transposed."""
    runs, images, height, width, inputs = big.shape
    kernel, outputs = w.shape[1], w.shape[3 if transposed else 4]
    out = big.new_empty(runs, images, height // 2, width // 2, outputs)
    rows = images * (height // 2) * (width // 2)
    block_m, block_n, block_k = _blocks(rows, outputs, kernel * kernel * inputs)
    grid = (triton.cdiv(rows, block_m), runs, triton.cdiv(outputs, block_n))
    _correlate_kernel[grid](
        big, big if mask is None else mask, w, w if bias is None else bias, out, images, height, width,
        w.stride(0), *_channel_strides(w, transposed),
        inputs, outputs, kernel, padding, mask is not None, bias is not None, relu, _products(tf32),
        block_m, block_n, block_k, num_warps=4,
    )  # fmt: skip
    return out


def spread(
    small: Tensor,
    w: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    padding: int,
    relu: bool,
    tf32: bool,
    transposed: bool,
) -> Tensor:
    """(P, B, H, W, I) -> (P, B, 2H, 2W, O); w is (P, k, k, I, O), or (P, k, k, O, I) if transposed."""
    runs, images, height, width, inputs = small.shape
    kernel, outputs = w.shape[1], w.shape[3 if transposed else 4]
    out = small.new_empty(runs, images, 2 * height, 2 * width, outputs)
    rows = images * height * width
    block_m, block_n, block_k = _blocks(rows, outputs, kernel * kernel // 4 * inputs)
    grid = (triton.cdiv(rows, block_m), runs, 4 * triton.cdiv(outputs, block_n))
    _spread_kernel[grid](
        small, small if mask is None else mask, w, w if bias is None else bias, out, images, height, width,
        w.stride(0), *_channel_strides(w, transposed),
        inputs, outputs, kernel, padding, mask is not None, bias is not None, relu, _products(tf32),
        block_m, block_n, block_k, num_warps=4,
    )  # fmt: skip
    return out


def tap_products(
    big: Tensor,
    small: Tensor,
    big_mask: Tensor | None,
    small_mask: Tensor | None,
    kernel: int,
    padding: int,
    tf32: bool,
) -> Tensor:
    """(P, k, k, channels of big, channels of small), float32."""
    runs, images, height, width, channels = big.shape
    outputs, products = small.shape[4], kernel * kernel * channels
    positions = images * (height // 2) * (width // 2)
    block_m, block_n = min(128, max(16, triton.next_power_of_2(products))), _power(outputs)
    tiles = triton.cdiv(products, block_m)
    # Enough programs for the whole chip, each long enough to be worth its start.
    splits = max(1, min(positions // 512, triton.cdiv(1024, runs * tiles)))
    each = triton.cdiv(triton.cdiv(positions, splits), 64) * 64
    splits = triton.cdiv(positions, each)
    out = torch.empty(runs, splits, kernel, kernel, channels, outputs, device=big.device)
    _tap_products_kernel[(tiles, splits, runs)](
        big, big if big_mask is None else big_mask, small, small if small_mask is None else small_mask, out,
        images, height, width, each, channels, outputs, kernel, padding,
        big_mask is not None, small_mask is not None, _products(tf32), block_m, block_n, 64, num_warps=4,
    )  # fmt: skip
    return out.sum(dim=1) if splits > 1 else out[:, 0]


def masked_sum(values: Tensor, mask: Tensor | None) -> Tensor:
    """(P, ..., C) -> (P, C) float32: the sum of the values where the mask is positive."""
    runs, columns = values.shape[0], values.shape[-1]
    rows = values[0].numel() // columns
    splits = max(1, min(triton.cdiv(rows, 512), triton.cdiv(1024, runs)))
    each = triton.cdiv(triton.cdiv(rows, splits), 64) * 64
    splits = triton.cdiv(rows, each)
    out = torch.empty(runs, splits, columns, device=values.device)
    _masked_sum_kernel[(splits, runs)](
        values,
        values if mask is None else mask,
        out,
        rows,
        each,
        columns,
        mask is not None,
        64,
        _power(columns),
    )
    return out.sum(dim=1)


class _Convolution(torch.autograd.Function):
    """A convolution of stride 2, or, if `up`, a transposed one: each is the other's gradient."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, padding: int, relu: bool, tf32: bool, up: bool
    ) -> Tensor:
        w = weight.permute((0, 3, 4, 1, 2) if up else (0, 3, 4, 2, 1)).to(x.dtype).contiguous()
        y = (spread if up else correlate)(x, w, bias, None, padding, relu, tf32, transposed=False)
        ctx.save_for_backward(x, w, y if relu else None)
        ctx.padding, ctx.tf32, ctx.up = padding, tf32, up
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, w, y = ctx.saved_tensors
        g, to_x = gradients[0].contiguous(), None
        if ctx.needs_input_grad[0]:
            back = correlate if ctx.up else spread
            to_x = back(g, w, None, y, ctx.padding, False, ctx.tf32, transposed=True)
        big, small, big_mask, small_mask = (g, x, y, None) if ctx.up else (x, g, None, y)
        products = tap_products(big, small, big_mask, small_mask, w.shape[1], ctx.padding, ctx.tf32)
        to_w = products.permute(0, 4, 3, 1, 2)
        return to_x, to_w, masked_sum(g, y), None, None, None, None


def conv2d(x: Tensor, weight: Tensor, bias: Tensor, padding: int, relu: bool, tf32: bool) -> Tensor:
    """(P, B, I, H, W) -> (P, B, O, H/2, W/2), both channels-last in memory; weight (P, O, I, k, k)."""
    y = _Convolution.apply(x.permute(0, 1, 3, 4, 2).contiguous(), weight, bias, padding, relu, tf32, False)
    return y.permute(0, 1, 4, 2, 3)


def conv_transpose2d(x: Tensor, weight: Tensor, bias: Tensor, padding: int, relu: bool, tf32: bool) -> Tensor:
    """(P, B, I, H, W) -> (P, B, O, 2H, 2W), both channels-last in memory; weight (P, I, O, k, k)."""
    y = _Convolution.apply(x.permute(0, 1, 3, 4, 2).contiguous(), weight, bias, padding, relu, tf32, True)
    return y.permute(0, 1, 4, 2, 3)


def _channel_strides(w: Tensor, transposed: bool) -> tuple[int, int]:
    """Strides of w along the channels that are summed over and along those of the result."""
    return (w.stride(4), w.stride(3)) if transposed else (w.stride(3), w.stride(4))


def _blocks(rows: int, outputs: int, products: int) -> tuple[int, int, int]:
    return (
        128 if rows >= 2048 else 64,
        min(64, _power(outputs)),
        max(16, min(64, triton.next_power_of_2(products))),
    )


def _power(n: int) -> int:
    # tl.dot wants at least 16 in each direction.
    return max(16, int(triton.next_power_of_2(n)))


def _products(tf32: bool) -> str:
    """How float32 numbers are multiplied; bfloat16 ones are always multiplied exactly."""
    return "tf32" if tf32 else "ieee"
