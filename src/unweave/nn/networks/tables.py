"""Codes that are learned directly, without an encoder: a row for each class and one for each image.

[1] Bojanowski, Joulin, Lopez-Paz, Szlam: Optimizing the latent space of generative networks, ICML 2018.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from unweave.streams import Stream

BOUND = 0.05  # rows start uniform in (-BOUND, BOUND), as those of LORD do


class Table(nn.Module):
    """Numbers of rows (P, B) -> rows (P, B, D); `rows` is (P, size, D)."""

    def __init__(self, streams: Sequence[Stream], name: str, size: int, columns: int) -> None:
        super().__init__()
        drawn = [stream.child("weights", name).uniform(size, columns) for stream in streams]
        self.rows = nn.Parameter(torch.from_numpy((2 * np.stack(drawn) - 1) * BOUND).float())

    def forward(self, index: Tensor) -> Tensor:
        """The rows with these numbers."""
        return self.rows.gather(1, index.unsqueeze(-1).expand(-1, -1, self.rows.shape[-1]))


class CodeTables(nn.Module):
    """A code for each class, a combination of labels of these sizes, and one for each of some images [1]."""

    def __init__(
        self, streams: Sequence[Stream], sizes: Sequence[int], points: int, first: int, second: int
    ) -> None:
        super().__init__()
        self.sizes = tuple(sizes)
        self.classes = Table(streams, "tables.classes", math.prod(self.sizes), first)
        self.images = Table(streams, "tables.images", points, second)

    def forward(self, labels: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        """Codes (P, B, first) and (P, B, second) of labels (P, B, k) and row numbers (P, B) of images."""
        number = torch.zeros_like(index)
        for j, size in enumerate(self.sizes):
            number = number * size + labels[..., j]
        return self.classes(number), self.images(index)
