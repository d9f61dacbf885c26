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
CLASS_COLUMNS, IMAGE_COLUMNS = 256, 128  # dimensions of LORD's codes


class Table(nn.Module):
    """Numbers of rows (P, B) -> codes (P, B, D), which are `scale` times `rows`, (P, size, D).

    Adam changes each number of a row by about its learning rate, whatever the number of columns is. With
    scale = sqrt(like / columns) the length of a code grows as fast as that of one with `like` columns. Rows
    with more columns are not scaled.
    """

    def __init__(self, streams: Sequence[Stream], name: str, size: int, columns: int, like: int) -> None:
        super().__init__()
        self.scale = math.sqrt(max(like / columns, 1))
        drawn = [stream.child("weights", name).uniform(size, columns) for stream in streams]
        self.rows = nn.Parameter(torch.from_numpy((2 * np.stack(drawn) - 1) * BOUND).float())

    def forward(self, index: Tensor) -> Tensor:
        """The codes with these numbers."""
        rows = self.rows.gather(1, index.unsqueeze(-1).expand(-1, -1, self.rows.shape[-1]))
        return self.scale * rows


class CodeTables(nn.Module):
    """A code for each class, a combination of labels of these sizes, and one for each of some images [1]."""

    def __init__(
        self, streams: Sequence[Stream], sizes: Sequence[int], points: int, first: int, second: int
    ) -> None:
        super().__init__()
        self.sizes = tuple(sizes)
        self.classes = Table(streams, "tables.classes", math.prod(self.sizes), first, CLASS_COLUMNS)
        self.images = Table(streams, "tables.images", points, second, IMAGE_COLUMNS)

    def forward(self, labels: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        """Codes (P, B, first) and (P, B, second) of labels (P, B, k) and row numbers (P, B) of images."""
        number = torch.zeros_like(index)
        for j, size in enumerate(self.sizes):
            number = number * size + labels[..., j]
        return self.classes(number), self.images(index)
