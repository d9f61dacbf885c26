"""Batches of images for a population: drawn and looked up on the device, or made on the host.

Both ways give the same bytes. Row b at step t is what `GroundTruth.sample_factors` and `observe` give for
row b of the run's stream child("batch").at(t).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unweave.data import Collection, GroundTruth, grid_table, variants
from unweave.data.variants import Origin, origin
from unweave.nn.draws import PopulationDraws
from unweave.nn.images import ImageTable, Paint, draw_images
from unweave.streams import Stream

Data = GroundTruth | Collection
# Told (images done, images in all) while a table is made.
Progress = Callable[[int, int], None]


class Batches(Protocol):
    """A source of images for all runs of a population."""

    on_device: bool  # whether a batch needs nothing from the host, so that it can be part of a CUDA graph

    def draw(self, draws: PopulationDraws, step: int, purpose: str, size: int) -> Tensor:
        """(P, size, c, h, w) uint8, 0 to 255, for that step; channels-last in memory."""


class ResidentBatches:
    """A table of images in the device's memory, as bits or bytes, painted as they are drawn.

    Of a ground truth with colour, noise, a picture or hidden factors, the table is that of the ground truth
    that it is made from.
    """

    on_device = True

    def __init__(self, ground_truth: GroundTruth, device: torch.device, progress: Progress | None) -> None:
        made = origin(ground_truth)
        sizes, strides = _numbering(made)
        self.table = ImageTable(
            images=torch.from_numpy(np.array(grid_table(made.base, progress))).to(device),
            shape=made.base.shape,
            streams=made.streams,
            sizes=torch.from_numpy(sizes).to(device),
            strides=torch.from_numpy(strides).to(device),
            paint=_paint(made.paint),
            picture=_picture(made.paint, device),
        )

    def draw(self, draws: PopulationDraws, step: int, purpose: str, size: int) -> Tensor:  # noqa: ARG002
        """The draws know the step themselves: nothing here depends on the host."""
        return draw_images(self.table, draws, purpose, size)


class HostBatches:
    """Images made by NumPy, run by run, and sent to the device."""

    on_device = False

    def __init__(self, data: Data, device: torch.device) -> None:
        self.data = data
        self.device = device

    def draw(self, draws: PopulationDraws, step: int, purpose: str, size: int) -> Tensor:
        """Draws for one run after the other: a run's images do not depend on its company."""
        images = [self._images(stream.child(*purpose.split("/")).at(step), size) for stream in draws.streams]
        pixels = np.ascontiguousarray(np.stack(images).transpose(0, 1, 3, 4, 2))
        return torch.from_numpy(pixels).to(self.device).permute(0, 1, 4, 2, 3)

    def _images(self, stream: Stream, size: int) -> np.ndarray:
        if isinstance(self.data, Collection):
            return self.data.images_at(self.data.sample_index(size, stream))
        return self.data.observe(self.data.sample_factors(size, stream), stream)


def batches_of(data: Data, device: torch.device, progress: Progress | None = None) -> Batches:
    """The fastest way to batches: resident if images can be tabled, are drawn uniformly, and fit.

    On the CPU images are made as they are needed: a table would only take up memory.
    """
    if device.type != "cuda" or isinstance(data, Collection) or data.weight is not None:
        return HostBatches(data, device)
    base = origin(data).base
    size = math.prod(base.shape) * len(base) // (8 if base.binary else 1)
    if base.stochastic or size > _room(device):
        return HostBatches(data, device)
    return ResidentBatches(data, device, progress)


def _room(device: torch.device) -> float:
    """Bytes that a table may take: half of what is free."""
    free, _ = torch.cuda.mem_get_info(device)
    return 0.5 * free


def _numbering(made: Origin) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sizes and strides of the base's factors in the grid, (streams, columns), where each is drawn."""
    columns = 4 * -(-max(column + 1 for _, column in made.columns) // 4)
    sizes, strides = np.zeros((2, len(made.streams), columns), np.int64)
    stride = 1
    for drawn, factor in zip(reversed(made.columns), reversed(made.base.factors), strict=True):
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
