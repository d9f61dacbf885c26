"""Triton kernels of the population's convolutions of stride 2, for CUDA, between layers of many channels.

Images lie channels-last, (P, B, H, W, C), weights (P, k, k, channels of the big image, channels of the
small one). Three matrix products serve forward and backward passes of convolutions and transposed ones:

    correlate         small[y, x] = sum over taps of big[2 y + ky - padding, 2 x + kx - padding] w[ky, kx]
    spread            big[2 y + ky - padding, ...] += small[y, x] w[ky, kx]^T  (the transpose of correlate)
    weight_gradient   w[ky, kx] = sum over positions of big[2 y + ky - padding, ...]^T small[y, x]

A convolution is correlate, its gradients are spread and weight_gradient; a transposed convolution is spread,
its gradients are correlate and weight_gradient. The patches that a matrix product needs are never written
to memory: each program gathers its own. Element-wise operations are fused: bias and ReLU in the forward pass;
in the backward pass the mask of the ReLU before, and the sums that are the gradient of its bias.
Layers with one to four channels next to the image are in edge.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from unweave.nn.kernels.launches import launch


@triton.jit
def _within(start, LENGTH: tl.constexpr, BLOCK: tl.constexpr):
    # The hint that it is a multiple of the block length lets the compiler load 16 bytes at a time, not 2.
    return tl.multiple_of(start % LENGTH, BLOCK)


@triton.jit
def _finished(
    total, bias, mask, n, at, here,
    FORWARD: tl.constexpr, MASKED: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    # The fused operations on a tile of products. Columns n are channels, repeated.
    if FORWARD:
        total = tl.maximum(total + tl.load(bias + n % CHANNELS)[None, :], 0.0)
    if MASKED:
        total = tl.where(tl.load(mask + at, here, 0.0) > 0, total, 0.0)
    return total


@triton.jit
def _correlate_kernel(
    big, w, bias, mask, scale, out, sums, images,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, BIG: tl.constexpr, SMALL: tl.constexpr,
    KERNEL: tl.constexpr, PADDING: tl.constexpr,
    FORWARD: tl.constexpr, MASKED: tl.constexpr, SCALED: tl.constexpr, PRECISION: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    SMALL_H: tl.constexpr = HEIGHT // 2
    SMALL_W: tl.constexpr = WIDTH // 2
    positions = images * SMALL_H * SMALL_W
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    image, y, x = m // (SMALL_H * SMALL_W), (m // SMALL_W) % SMALL_H, m % SMALL_W
    n = tl.program_id(2) * BN + tl.arange(0, BN)
    big += run * images * HEIGHT * WIDTH * BIG
    w += run * KERNEL * KERNEL * BIG * SMALL
    corner = (image * HEIGHT + 2 * y - PADDING) * WIDTH + 2 * x - PADDING
    total = tl.zeros((BM, BN), tl.float32)
    # The pixels under a row of the kernel are neighbours in memory: BK numbers of them at a time.
    for k0 in range(0, KERNEL * KERNEL * BIG, BK):
        ky, j = k0 // (KERNEL * BIG), _within(k0, KERNEL * BIG, BK) + tl.arange(0, BK)
        row, column = 2 * y - PADDING + ky, 2 * x[:, None] - PADDING + (j // BIG)[None, :]
        inside = ((row >= 0) & (row < HEIGHT) & (m < positions))[:, None] & (column >= 0) & (column < WIDTH)
        patches = tl.load(big + ((corner + ky * WIDTH) * BIG)[:, None] + j[None, :], inside, 0.0)
        weights = tl.load(w + (k0 + tl.arange(0, BK))[:, None] * SMALL + n[None, :])
        total = tl.dot(patches, weights, total, input_precision=PRECISION)
    if SCALED:
        total *= tl.load(scale + run)
    at, here = m[:, None] * SMALL + n[None, :], (m < positions)[:, None] & (n < SMALL)[None, :]
    total = _finished(
        total, bias + run * SMALL, mask + run * positions * SMALL, n, at, here, FORWARD, MASKED, SMALL
    )
    if MASKED:
        part = run * tl.num_programs(0) + tl.program_id(0)
        tl.store(sums + part * SMALL + n, tl.sum(total, axis=0))
    tl.store(out + run * positions * SMALL + at, total, here)


@triton.jit
def _spread_kernel(
    small, w, bias, mask, out, sums, images,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, BIG: tl.constexpr, SMALL: tl.constexpr,
    KERNEL: tl.constexpr, PADDING: tl.constexpr,
    FORWARD: tl.constexpr, MASKED: tl.constexpr, PRECISION: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # HEIGHT, WIDTH are those of the small images. A program makes even or odd rows of the big image. Its
    # columns n are the channels of two neighbouring pixels, an even and an odd one, as they lie in memory.
    run = tl.program_id(1).to(tl.int64)
    odd_row = tl.program_id(2) % 2
    positions = images * HEIGHT * WIDTH
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    image, y, x = m // (HEIGHT * WIDTH), (m // WIDTH) % HEIGHT, m % WIDTH
    n = tl.program_id(2) // 2 * BN + tl.arange(0, BN)
    odd_column, channel = n // BIG, n % BIG
    small += run * positions * SMALL
    w += run * KERNEL * KERNEL * BIG * SMALL
    ROWS: tl.constexpr = KERNEL // 2
    COLUMNS: tl.constexpr = KERNEL - 1  # inputs of the two pixels: three for a kernel of 4, or one
    total = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, ROWS * COLUMNS * SMALL, BK):
        neighbour, k = k0 // SMALL, _within(k0, SMALL, BK) + tl.arange(0, BK)
        dy, dx = neighbour // COLUMNS + PADDING * (odd_row - 1), neighbour % COLUMNS - PADDING
        ky, kx = odd_row + PADDING - 2 * dy, odd_column + PADDING - 2 * dx
        row, column = y + dy, x + dx
        inside = (row >= 0) & (row < HEIGHT) & (column >= 0) & (column < WIDTH) & (m < positions)
        values = tl.load(small + ((m + dy * WIDTH + dx) * SMALL)[:, None] + k[None, :], inside[:, None], 0.0)
        known = (kx >= 0) & (kx < KERNEL)
        weights = tl.load(
            w + (((ky * KERNEL + kx) * BIG + channel) * SMALL)[None, :] + k[:, None], known[None, :], 0.0
        )
        total = tl.dot(values, weights, total, input_precision=PRECISION)
    pixel = (image * 2 * HEIGHT + 2 * y + odd_row) * 2 * WIDTH + 2 * x
    at, here = pixel[:, None] * BIG + n[None, :], (m < positions)[:, None] & (n < 2 * BIG)[None, :]
    total = _finished(
        total, bias + run * BIG, mask + run * 4 * positions * BIG, n, at, here, FORWARD, MASKED, BIG
    )
    if MASKED:
        part = (run * tl.num_programs(0) + tl.program_id(0)) * 2 + odd_row
        tl.store(sums + part * 2 * BIG + n, tl.sum(total, axis=0))
    tl.store(out + run * 4 * positions * BIG + at, total, here)


@triton.jit
def _weight_gradient_kernel(
    big, small, scale, out, images, positions_each,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, BIG: tl.constexpr, SMALL: tl.constexpr,
    KERNEL: tl.constexpr, PADDING: tl.constexpr,
    SCALED: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # HEIGHT, WIDTH are those of the big images. Program (tile, split, run) sums over the positions
    # split * positions_each ...; the splits are summed afterwards, in a fixed order.
    run = tl.program_id(2).to(tl.int64)
    SMALL_H: tl.constexpr = HEIGHT // 2
    SMALL_W: tl.constexpr = WIDTH // 2
    positions = images * SMALL_H * SMALL_W
    COLUMNS: tl.constexpr = (SMALL + BN - 1) // BN
    m0 = tl.program_id(0) // COLUMNS * BM
    ky, j = m0 // (KERNEL * BIG), _within(m0, KERNEL * BIG, BM) + tl.arange(0, BM)
    n = tl.program_id(0) % COLUMNS * BN + tl.arange(0, BN)
    big += run * images * HEIGHT * WIDTH * BIG
    small += run * positions * SMALL
    total = tl.zeros((BM, BN), tl.float32)
    first = tl.program_id(1) * positions_each
    for start in range(first, first + positions_each, BK):
        r = start + tl.arange(0, BK)
        image, y, x = r // (SMALL_H * SMALL_W), (r // SMALL_W) % SMALL_H, r % SMALL_W
        row, column = 2 * y - PADDING + ky, 2 * x[:, None] - PADDING + (j // BIG)[None, :]
        inside = ((row >= 0) & (row < HEIGHT) & (r < positions))[:, None] & (column >= 0) & (column < WIDTH)
        corner = (image * HEIGHT + row) * WIDTH + 2 * x - PADDING
        patches = tl.load(big + (corner * BIG)[:, None] + j[None, :], inside, 0.0)
        values = tl.load(small + r[:, None] * SMALL + n[None, :], (r < positions)[:, None], 0.0)
        total = tl.dot(tl.trans(patches), values, total, input_precision=PRECISION)
    if SCALED:
        total *= tl.load(scale + run)
    out += (run * tl.num_programs(1) + tl.program_id(1)) * KERNEL * KERNEL * BIG * SMALL
    tl.store(out + (m0 + tl.arange(0, BM))[:, None] * SMALL + n[None, :], total)


@triton.jit
def _sum_kernel(parts, out, count, numbers, BM: tl.constexpr, BN: tl.constexpr):
    run = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    parts += run * count * numbers
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, count, BM):
        m = start + tl.arange(0, BM)
        total += tl.load(
            parts + m[:, None] * numbers + n[None, :], (m < count)[:, None] & (n < numbers)[None, :], 0.0
        )
    tl.store(out + run * numbers + n, tl.sum(total, axis=0), n < numbers)


PROGRAMS = 1056  # enough for the whole GPU


@dataclass(frozen=True)
class Tile:
    """The tile of a program: its rows and columns, how many products it sums at a time, and its pipeline."""

    rows: int = 128
    columns: int = 64
    depth: int = 64
    warps: int = 4
    stages: int = 3


# Tiles of products in bfloat16 that were fastest on an H200, by product and channels of the big and the small
# image. All others have the tile of their product.
USUAL = {"correlate": Tile(), "spread": Tile(columns=128), "weight_gradient": Tile(stages=4)}
TILES: dict[tuple[str, int, int], Tile] = {}


def tile_of(product: str, big: int, small: int, dtype: torch.dtype) -> Tile:
    """The tile of a product of images with so many channels."""
    fastest = TILES.get((product, big, small)) if dtype == torch.bfloat16 else None
    return fastest or USUAL[product]


def correlate(
    big: Tensor,
    w: Tensor,
    padding: int,
    precision: str,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    scale: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """(P, B, H, W, big) -> (P, B, H/2, W/2, small), times the scale (P,).

    With a bias (P, small), its ReLU; with a mask, 0 where that is 0, and the sums (P, small) over the rest.
    """
    runs, images, height, width, channels = big.shape
    kernel, outputs = w.shape[1], w.shape[4]
    out = big.new_empty(runs, images, height // 2, width // 2, outputs)
    rows = images * (height // 2) * (width // 2)
    tile = tile_of("correlate", channels, outputs, big.dtype)
    columns, depth = min(tile.columns, outputs), min(tile.depth, kernel * channels)
    grid = (triton.cdiv(rows, tile.rows), runs, triton.cdiv(outputs, columns))
    sums = None if mask is None else torch.empty(runs, grid[0], outputs, device=big.device)
    launch(
        _correlate_kernel, grid,
        big, w, _or(bias, w), _or(mask, w), _or(scale, w), out, _or(sums, w), images, height, width,
        channels, outputs, kernel, padding, bias is not None, mask is not None, scale is not None, precision,
        tile.rows, columns, depth, num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return out, None if sums is None else summed(sums)


def spread(
    small: Tensor,
    w: Tensor,
    padding: int,
    precision: str,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """(P, B, H, W, small) -> (P, B, 2H, 2W, big).

    With a bias (P, big), its ReLU; with a mask, 0 where that is 0, and the sums (P, big) over the rest.
    """
    runs, images, height, width, channels = small.shape
    kernel, outputs = w.shape[1], w.shape[3]
    out = small.new_empty(runs, images, 2 * height, 2 * width, outputs)
    rows = images * height * width
    tile = tile_of("spread", outputs, channels, small.dtype)
    columns, depth = min(tile.columns, 2 * outputs), min(tile.depth, channels)
    grid = (triton.cdiv(rows, tile.rows), runs, 2 * triton.cdiv(2 * outputs, columns))
    sums = None if mask is None else torch.empty(runs, grid[0] * 4, outputs, device=small.device)
    launch(
        _spread_kernel, grid,
        small, w, _or(bias, w), _or(mask, w), out, _or(sums, w), images, height, width,
        outputs, channels, kernel, padding, bias is not None, mask is not None, precision,
        tile.rows, columns, depth, num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return out, None if sums is None else summed(sums)


def weight_gradient(
    big: Tensor,
    small: Tensor,
    kernel: int,
    padding: int,
    precision: str,
    scale: Tensor | None = None,
) -> Tensor:
    """(P, k, k, channels of big, channels of small), float32, times the scale (P,)."""
    runs, images, height, width, channels = big.shape
    outputs = small.shape[4]
    positions = images * (height // 2) * (width // 2)
    tile = tile_of("weight_gradient", channels, outputs, big.dtype)
    rows, columns = min(tile.rows, kernel * channels), min(tile.columns, outputs)
    pieces = kernel * kernel * channels // rows * triton.cdiv(outputs, columns)
    positions_each, splits = in_parts(positions, PROGRAMS, runs * pieces, least=512, step=tile.depth)
    out = torch.empty(runs, splits, kernel, kernel, channels, outputs, device=big.device)
    launch(
        _weight_gradient_kernel, (pieces, splits, runs),
        big, small, _or(scale, big), out, images, positions_each, height, width, channels, outputs, kernel,
        padding, scale is not None, precision, rows, columns, tile.depth, num_warps=tile.warps,
        num_stages=tile.stages,
    )  # fmt: skip
    return summed(out)


def in_parts(positions: int, programs: int, sums: int, least: int, step: int) -> tuple[int, int]:
    """Positions in each part of a sum over them, a multiple of `step`, and the number of parts.

    For `sums` sums at a time: enough programs for the whole GPU, each long enough to be worth its launch.
    """
    splits = max(1, min(positions // least, triton.cdiv(programs, sums)))
    positions_each = triton.cdiv(triton.cdiv(positions, splits), step) * step
    return positions_each, triton.cdiv(positions, positions_each)


def summed(parts: Tensor) -> Tensor:
    """(P, parts, ...) -> (P, ...): the sum of the partial results of programs, in a fixed order."""
    runs, count = parts.shape[:2]
    if count == 1:
        return parts[:, 0]
    out = torch.empty(runs, *parts.shape[2:], device=parts.device)
    numbers = out[0].numel()
    # Few runs have few sums of many parts: tiles are narrow and long, so that they fill the whole GPU.
    share = triton.cdiv(runs * numbers, PROGRAMS // 4)
    columns = min(1024, *(int(triton.next_power_of_2(n)) for n in (numbers, max(32, share))))
    numbers_each = 2048 if columns == 1024 else 8192
    rows = min(numbers_each // columns, int(triton.next_power_of_2(count)))
    _sum_kernel[(triton.cdiv(numbers, columns), runs)](parts, out, count, numbers, rows, columns)
    return out


def _or(tensor: Tensor | None, instead: Tensor) -> Tensor:
    """The tensor, or a substitute for an argument that a kernel does not use."""
    return instead if tensor is None else tensor
