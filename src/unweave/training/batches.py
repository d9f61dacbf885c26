"""Batches of images for a population: drawn and looked up on the device, or made on the host.

Both ways give the same images. The factors of row b at step t are row b of the run's stream
child("batch").at(t), as `GroundTruth.sample_factors` draws them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from unweave.data import Collection, GroundTruth, grid_table
from unweave.nn.draws import PopulationDraws
from unweave.streams import Stream

Data = GroundTruth | Collection
# Told (images done, images in all) while a table is made.
Progress = Callable[[int, int], None]


class Batches(Protocol):
    """A source of images for all runs of a population."""

    on_device: bool  # whether a batch needs nothing from the host, so that it can be part of a CUDA graph

    def draw(self, draws: PopulationDraws, step: int, purpose: str, size: int) -> Tensor:
        """(P, size, c, h, w) float32 in [0, 1], for that step."""


class ResidentBatches:
    """All images of a deterministic ground truth in the device's memory, as bits or bytes."""

    on_device = True

    def __init__(self, ground_truth: GroundTruth, device: torch.device, progress: Progress | None) -> None:
        table = torch.from_numpy(np.array(grid_table(ground_truth, progress)))
        self.table = table.to(device)
        self.ground_truth = ground_truth
        self.shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=device)

    def draw(self, draws: PopulationDraws, step: int, purpose: str, size: int) -> Tensor:  # noqa: ARG002
        """The draws know the step themselves: nothing here depends on the host."""
        truth = self.ground_truth
        factors = draws.integers(f"{purpose}/factors", size, truth.sizes)
        index = torch.zeros_like(factors[..., 0])
        for j, factor_size in enumerate(truth.sizes):
            index = index * factor_size + factors[..., j]
        rows = self.table[index]
        if truth.binary:
            rows = rows.unsqueeze(-1) >> self.shifts & 1
            return rows.view(*index.shape, *truth.shape).float()
        return rows.float() / 255


class HostBatches:
    """Images made by NumPy, run by run, and sent to the device."""

    on_device = False

    def __init__(self, data: Data, device: torch.device) -> None:
        self.data = data
        self.device = device

    def draw(self, draws: PopulationDraws, step: int, purpose: str, size: int) -> Tensor:
        """Draws for one run after the other: a run's images do not depend on its company."""
        images = [self._images(stream.child(*purpose.split("/")).at(step), size) for stream in draws.streams]
        return torch.from_numpy(np.stack(images)).to(self.device).float() / 255

    def _images(self, stream: Stream, size: int) -> np.ndarray:
        if isinstance(self.data, Collection):
            return self.data.images_at(self.data.sample_index(size, stream))
        return self.data.observe(self.data.sample_factors(size, stream), stream)


def batches_of(data: Data, device: torch.device, progress: Progress | None = None) -> Batches:
    """The fastest way to batches: resident if images are always the same, drawn uniformly, and fit.

    On the CPU images are made as they are needed: a table would only take up memory.
    """
    if (
        device.type != "cuda"
        or isinstance(data, Collection)
        or data.stochastic
        or data.weight is not None
        or math.prod(data.shape) * len(data) // (8 if data.binary else 1) > _room(device)
    ):
        return HostBatches(data, device)
    return ResidentBatches(data, device, progress)


def _room(device: torch.device) -> float:
    """Bytes that a table may take: half of what is free."""
    free, _ = torch.cuda.mem_get_info(device)
    return 0.5 * free
