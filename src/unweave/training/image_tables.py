"""Tables of images on a device, made from ground truths: the images of the base and how they are painted."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unweave.data import GroundTruth, grid_table, variants
from unweave.data.variants import Origin, origin
from unweave.nn.image_table import ImageTable, Paint


def image_table(ground_truth: GroundTruth, device: torch.device) -> ImageTable:
    """All images of a ground truth, or of the one that it is a variant of, with its paint, on a device."""
    source = origin(ground_truth)
    sizes, strides = _numbering(source)
    return ImageTable(
        images=torch.from_numpy(np.array(grid_table(source.base))).to(device),
        shape=source.base.shape,
        streams=source.streams,
        sizes=torch.from_numpy(sizes).to(device),
        strides=torch.from_numpy(strides).to(device),
        paint=_paint(source.paint),
        picture=_picture(source.paint, device),
    )


def table_rows(table: ImageTable, factors: Tensor) -> Tensor:
    """Row numbers in the table for factors (..., k); hidden factors are not included."""
    return (factors * table.strides[0, : factors.shape[-1]]).sum(-1)


def has_room(ground_truth: GroundTruth, device: torch.device, share: float) -> bool:
    """Whether a table exists and takes at most this share of the free memory of a GPU."""
    base = origin(ground_truth).base
    size = math.prod(base.shape) * len(base) // (8 if base.binary else 1)
    return not base.stochastic and size <= share * free_memory(device)


def free_memory(device: torch.device) -> int:
    """Free bytes of a GPU."""
    free, _ = torch.cuda.mem_get_info(device)
    return free


def _numbering(source: Origin) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sizes and strides of the base's factors in the grid, (streams, columns), where each is drawn."""
    columns = 4 * -(-max(column + 1 for _, column in source.columns) // 4)
    sizes, strides = np.zeros((2, len(source.streams), columns), np.int64)
    stride = 1
    for drawn, factor in zip(reversed(source.columns), reversed(source.base.factors), strict=True):
        sizes[drawn], strides[drawn] = factor.size, stride
        stride *= factor.size
    return sizes, strides


def _paint(paint: variants.Paint | None) -> Paint:
    match paint:
        case variants.Colour():
            return "colour"
        case variants.Noise():
            return "noise"
        case variants.Scream():
            return "scream"
    return "none"


def _picture(paint: variants.Paint | None, device: torch.device) -> Tensor | None:
    """The picture behind the images, (H, W, 3)."""
    if not isinstance(paint, variants.Scream):
        return None
    return torch.from_numpy(np.ascontiguousarray(paint.picture.transpose(1, 2, 0))).to(device)
