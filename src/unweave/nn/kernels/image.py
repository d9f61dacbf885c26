"""A Triton kernel that draws batches of images, for CUDA: one launch for all runs of a population.

A program makes one tile of one image, (pixels, channels) with channels padded to a power of two, so that
neighbouring threads write neighbouring bytes. Images of 64 x 64 are one tile. See nn/images.py for the
arithmetic of the paints.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from unweave.nn.image_table import ImageTable

TILE_PIXELS = 4096


@triton.jit
def _words(keys, block, row, step):
    # Four words of 32 random bits from the counter (column block, row, 0, step), as in unweave.streams.
    zero = (block * 0).to(tl.uint32)
    now = zero + tl.load(step).to(tl.uint32)
    return tl.philox(tl.load(keys), block.to(tl.uint32), zero + row.to(tl.uint32), zero, now)


@triton.jit
def _part(word, sizes, strides, column):
    return (word.to(tl.int64) * tl.load(sizes + column) >> 32) * tl.load(strides + column)


@triton.jit
def _table_row(
    given, keys, runs, sizes, strides, row, step,
    FIRST: tl.constexpr, STREAMS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    # The row of the table for a row of the batch; with FIRST, the part of the first stream is an input.
    image = tl.load(given) if FIRST else row.to(tl.int64) * 0
    for i in tl.static_range(FIRST * COLUMNS, STREAMS * COLUMNS, 4):
        w0, w1, w2, w3 = _words(keys + i // COLUMNS * runs, row * 0 + i % COLUMNS // 4, row, step)
        image += _part(w0, sizes, strides, i) + _part(w1, sizes, strides, i + 1)
        image += _part(w2, sizes, strides, i + 2) + _part(w3, sizes, strides, i + 3)
    return image


@triton.jit
def _shares(keys, row, step, channel):
    # 2^24 u for each channel.
    w0, w1, w2, _ = _words(keys, row * 0, row, step)
    word = tl.where(channel == 0, w0, tl.where(channel == 1, w1, w2))
    return word >> 8 | 1


@triton.jit
def _noise(keys, first, row, step, TILE: tl.constexpr):
    # (TILE,) random bytes from column `first` on, which is a multiple of 16.
    w0, w1, w2, w3 = _words(keys, first // 16 + tl.arange(0, TILE // 16), row, step)
    words = tl.reshape(tl.join(tl.join(w0, w2), tl.join(w1, w3)), (TILE // 4, 1))
    return tl.reshape((words >> (8 * tl.arange(0, 4))[None, :]).to(tl.uint8), (TILE,))


@triton.jit
def _noise_by_channel(keys, first, row, step, PIXELS: tl.constexpr, TILE: tl.constexpr):
    # (TILE, 4): the noise of three channels side by side, and one that is not used.
    n0 = _noise(keys, first, row, step, TILE)
    n1 = _noise(keys, first + PIXELS, row, step, TILE)
    n2 = _noise(keys, first + 2 * PIXELS, row, step, TILE)
    return tl.reshape(tl.join(tl.join(n0, n2), tl.join(n1, n2)), (TILE, 4))


@triton.jit
def _behind(keys, runs, picture, wide, free_rows, free_columns, row, step, y, x, channel, here):
    # The background of the pixels at (y, x): a patch of the picture, with shifted colours.
    w0, w1, _, _ = _words(keys, row * 0, row, step)
    top, left = w0.to(tl.int64) * free_rows >> 32, w1.to(tl.int64) * free_columns >> 32
    picture += (top * wide + left) * 3
    patch = tl.load(picture + (y * wide + x) * 3 + channel, here, 0)
    shift = 255 * _shares(keys + runs, row, step, channel) >> 24
    return patch + shift + 1 >> 1


@triton.jit(do_not_specialize=["first_row"])
def _image_kernel(
    table, picture, given, keys, sizes, strides, step, out, runs, wide, free_rows, free_columns, first_row,
    FIRST: tl.constexpr, STREAMS: tl.constexpr, COLUMNS: tl.constexpr, PAINT: tl.constexpr,
    PACKED: tl.constexpr, ROW_BYTES: tl.constexpr, PIXELS: tl.constexpr, WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr, LANES: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    place, first, run = tl.program_id(0), tl.program_id(1) * TILE, tl.program_id(2)
    row = first_row + place  # of the streams
    keys += run
    paint_keys = keys + STREAMS * runs
    pixel, channel = (first + tl.arange(0, TILE))[:, None], tl.arange(0, LANES)[None, :]
    here = (pixel < PIXELS) & (channel < CHANNELS)
    given += run.to(tl.int64) * tl.num_programs(0) + place
    image = _table_row(given, keys, runs, sizes, strides, row, step, FIRST, STREAMS, COLUMNS)
    table += image * ROW_BYTES
    at, there = pixel, pixel < PIXELS
    if PAINT == "none":  # the table has one channel after the other
        at, there = channel * PIXELS + pixel, here
    if PACKED:
        value = (tl.load(table + at // 8, there, 0) >> 7 - at % 8 & 1).to(tl.uint32) * 255
    else:
        value = tl.load(table + at, there, 0).to(tl.uint32)
    if PAINT == "colour":
        value = value + (_shares(paint_keys, row, step, channel) * value >> 24) + 1 >> 1
    if PAINT == "noise":
        value = tl.minimum(value + _noise_by_channel(paint_keys, first, row, step, PIXELS, TILE), 255)
    if PAINT == "scream":
        y, x = pixel // WIDTH, pixel % WIDTH
        behind = _behind(
            paint_keys, runs, picture, wide, free_rows, free_columns, row, step, y, x, channel, here
        )
        value = tl.where(value > 127, 255 - behind, behind)
    out += (run.to(tl.int64) * tl.num_programs(0) + place) * (PIXELS * CHANNELS)
    tl.store(out + pixel * CHANNELS + channel, value.to(tl.uint8), here)


def draw_pixels(
    table: ImageTable, keys: Tensor, step: Tensor, size: int, rows: Tensor | None = None, first: int = 0
) -> Tensor:
    """(P, size, h, w, c) uint8 images; keys are (streams of rows, then of the paint; P).

    `rows` (P, size) replace what the first stream would draw. Image i is drawn from row `first` + i.
    """
    runs = keys.shape[1]
    _, height, width = table.shape
    out = torch.empty(runs, size, height, width, table.channels, dtype=torch.uint8, device=keys.device)
    picture = table.images if table.picture is None else table.picture
    tall, wide = (height, width) if table.picture is None else table.picture.shape[:2]
    tile = max(16, min(TILE_PIXELS, triton.next_power_of_2(height * width)))
    _image_kernel[size, triton.cdiv(height * width, tile), runs](
        table.images, picture, table.sizes if rows is None else rows.contiguous(), keys,
        table.sizes, table.strides, step, out, runs, wide, tall - height, wide - width, first,
        int(rows is not None), len(table.sizes), table.sizes.shape[1], table.paint, table.packed,
        table.images.stride(0), height * width, width, table.channels,
        triton.next_power_of_2(table.channels), tile, num_warps=8,
    )  # fmt: skip
    return out
