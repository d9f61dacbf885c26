"""Rotated, zoomed and shifted copies of images, for losses that should not depend on these changes."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from unweave.nn.layers import as_numbers


def moved_images(images: Tensor, angle: Tensor, zoom: Tensor, shift: Tensor) -> Tensor:
    """(..., B, c, h, w): images that are rotated, then enlarged, then shifted, as numbers from 0 to 1.

    Images (..., B, c, h, w) are bytes or numbers. The angle (..., B), in degrees, turns counter-clockwise
    about the middle. The zoom (..., B) is a factor. The shift (..., B, 2) is to the right and down, as a
    share of the width and the height. Values between pixels are bilinear, and pixels outside repeat the
    border.
    """
    channels, height, width = images.shape[-3:]
    flat = as_numbers(images).reshape(-1, channels, height, width)
    grid = _source(angle.reshape(-1), zoom.reshape(-1), shift.reshape(-1, 2), height, width)
    moved = grid_sample(flat, grid, mode="bilinear", padding_mode="border", align_corners=False)
    return moved.view(images.shape)


def _source(angle: Tensor, zoom: Tensor, shift: Tensor, height: int, width: int) -> Tensor:
    """(n, h, w, 2): where each pixel comes from, x and y from -1 (left, top) to 1.

    Elementwise, because a product of matrices may have few digits on a GPU.
    """
    radians = (math.pi / 180 * angle)[:, None, None]
    cosine, sine = radians.cos() / zoom[:, None, None], radians.sin() / zoom[:, None, None]
    across, down = _centres(width, angle), _centres(height, angle)
    x = across[None, None, :] - 2 * shift[:, 0, None, None]
    y = down[None, :, None] - 2 * shift[:, 1, None, None]
    # In pixels both axes have the same unit, in units of the image they have not.
    aspect = height / width
    return torch.stack([cosine * x - sine * aspect * y, sine / aspect * x + cosine * y], dim=-1)


def _centres(size: int, like: Tensor) -> Tensor:
    """(size,): the middle of each pixel, from -1 to 1."""
    return (torch.arange(size, device=like.device, dtype=like.dtype) + 0.5) * (2 / size) - 1
