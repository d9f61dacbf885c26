"""Batches of images on a device: random or chosen rows of a table, painted as `GroundTruth.observe` does.

On CUDA a Triton kernel computes them in one launch. This module has the same with plain torch operations.
A paint's u is an odd multiple of 2^-24, so with n = 2^24 u integer arithmetic replaces float64:

    colour   floor((1 + u) / 2 x + 1/2)      = (x + (n x >> 24) + 1) >> 1
    scream   floor((p + 255 u) / 2 + 1/2)    = (p + (255 n >> 24) + 1) >> 1
"""

from __future__ import annotations

import torch
from torch import Tensor

from unweave.nn.draws import PopulationDraws, Purpose
from unweave.nn.image_table import ImageTable
from unweave.nn.kernels.dispatch import has_triton


def draw_images(table: ImageTable, draws: PopulationDraws, purpose: Purpose, size: int) -> Tensor:
    """(P, size, c, h, w) uint8 images of 0 to 255, channels-last in memory, for the step of the draws."""
    return _images(table, draws, purpose, size, None)


def look_up_images(table: ImageTable, draws: PopulationDraws, purpose: Purpose, rows: Tensor) -> Tensor:
    """(P, size, c, h, w) uint8 images as from `draw_images`, of these rows of the table, (P, size) int64.

    Paint and hidden factors are still drawn; the offset of hidden factors is added to the row.
    """
    return _images(table, draws, purpose, rows.shape[1], rows)


def _images(
    table: ImageTable, draws: PopulationDraws, purpose: Purpose, size: int, rows: Tensor | None
) -> Tensor:
    if table.images.is_cuda and has_triton() and _has_kernel(table):
        from unweave.nn.kernels.image import draw_pixels

        keys = draws.key_table(table.purposes(purpose))
        pixels = draw_pixels(table, keys, draws.step, size, rows, draws.first)
    else:
        pixels = plain_pixels(table, draws, purpose, size, rows).contiguous()
    return pixels.permute(0, 1, 4, 2, 3)


def plain_pixels(
    table: ImageTable, draws: PopulationDraws, purpose: Purpose, size: int, rows: Tensor | None = None
) -> Tensor:
    """(P, size, h, w, c) uint8 images, by operations that every device has."""
    streams = table.purposes(purpose)
    index = table.images.new_zeros((), dtype=torch.int64) if rows is None else rows
    for i in range(0 if rows is None else 1, len(table.sizes)):
        bits = draws.bits(streams[i], size, table.sizes.shape[1])
        index = index + ((bits * table.sizes[i] >> 32) * table.strides[i]).sum(-1)
    images = _looked_up(table, index)
    paint_streams = streams[len(table.sizes) :]
    if table.paint == "colour":
        return _tinted(images, draws.bits(paint_streams[0], size, 3))
    if table.paint == "noise":
        height, width = table.shape[1:]
        noise = draws.bytes(paint_streams[0], size, 3 * height * width)
        noise = noise.view(*noise.shape[:2], 3, height, width).permute(0, 1, 3, 4, 2)
        return images + torch.minimum(noise, 255 - images)
    if table.picture is not None:
        offsets, shifts = draws.bits(paint_streams[0], size, 2), draws.bits(paint_streams[1], size, 3)
        return _put_on_picture(images, table.picture, offsets, shifts)
    return images


def _has_kernel(table: ImageTable) -> bool:
    # Noise is drawn in blocks of 16 bytes, which must belong to one channel.
    return table.paint != "noise" or table.shape[1] * table.shape[2] % 16 == 0


def _looked_up(table: ImageTable, index: Tensor) -> Tensor:
    """(P, B) rows -> (P, B, h, w, c)."""
    rows = table.images[index]
    if table.packed:
        shifts = torch.arange(7, -1, -1, device=rows.device)
        rows = (rows.unsqueeze(-1) >> shifts & 1).to(torch.uint8) * 255
    return rows.view(*index.shape, *table.shape).permute(0, 1, 3, 4, 2)


def _tinted(images: Tensor, bits: Tensor) -> Tensor:
    share = (bits >> 8 | 1)[:, :, None, None] * images >> 24
    return (images + share + 1 >> 1).to(torch.uint8)


def _put_on_picture(images: Tensor, picture: Tensor, offsets: Tensor, shifts: Tensor) -> Tensor:
    (tall, wide), (height, width) = picture.shape[:2], images.shape[2:4]
    top, left = offsets[..., 0] * (tall - height) >> 32, offsets[..., 1] * (wide - width) >> 32
    y = top[..., None, None] + torch.arange(height, device=picture.device)[:, None]
    x = left[..., None, None] + torch.arange(width, device=picture.device)
    share = 255 * (shifts >> 8 | 1)[:, :, None, None] >> 24
    behind = picture[y, x] + share + 1 >> 1
    return torch.where(images > 127, 255 - behind, behind).to(torch.uint8)
