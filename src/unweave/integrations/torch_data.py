"""Data sets of unweave as data sets of torch."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from unweave.data import Collection, GroundTruth
from unweave.data.grid import Images
from unweave.errors import UnweaveError
from unweave.streams import Stream


@final
class TorchDataset(Dataset[tuple[Tensor, Tensor]]):
    """Pairs (image, factors) for `torch.utils.data.DataLoader`.

    An image is (c, h, w) float32 in [0, 1], or uint8 without `scale`. Factors are (k,) int64 indices of a
    ground truth, or float32 values of a collection, NaN where not known.

    Without `points`, item i is row i of the grid or of the collection. With `points`, item i is draw i of as
    many independent draws with that seed. Images of stochastic data are drawn with the seed as well: item i
    is always the same image.
    """

    def __init__(
        self, data: GroundTruth | Collection, *, points: int | None = None, seed: int = 0, scale: bool = True
    ) -> None:
        if points is not None and points < 1:
            raise UnweaveError(f"points must be a whole number >= 1; got {points}.")
        if points is None and isinstance(data, GroundTruth) and data.weight is not None:
            raise UnweaveError(
                f"factors of {data.name} are drawn {data.drawn}, so its whole grid is not what it draws. "
                "Give the number of draws: points=10_000."
            )
        self.data, self.seed, self.scale = data, seed, scale
        self._drawn = None if points is None else _draws(data, points, seed)

    def __len__(self) -> int:
        return len(self.data) if self._drawn is None else len(self._drawn)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        place = operator.index(index)
        if not -len(self) <= place < len(self):
            raise IndexError(f"item {place} of {len(self)}")
        [item] = self.__getitems__([place % len(self)])
        return item

    def __getitems__(self, index: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
        """Several items, whose images are made at once; a DataLoader calls this for each batch."""
        items = np.asarray(index, np.int64)
        rows = items if self._drawn is None else self._drawn[items]
        images, values = self._read(rows, items)
        tensor = torch.from_numpy(images)
        scaled = tensor.float() / 255 if self.scale else tensor
        return list(zip(scaled.unbind(), torch.from_numpy(values).unbind(), strict=True))

    def _read(
        self, rows: NDArray[np.int64], items: NDArray[np.int64]
    ) -> tuple[Images, NDArray[np.int64] | NDArray[np.float32]]:
        """Images and factors of rows; `items` says which draws of stochastic images they are."""
        if isinstance(self.data, Collection):
            return self.data.images_at(rows), self.data.values_at(rows).astype(np.float32)
        factors = self.data.factors_at(rows)
        if not self.data.stochastic:
            return self.data.observe(factors), factors
        stream = Stream.of(self.seed)
        images = [
            self.data.observe(row[None], stream.skip(int(i))) for row, i in zip(factors, items, strict=True)
        ]
        return np.concatenate(images), factors


def _draws(data: GroundTruth | Collection, points: int, seed: int) -> NDArray[np.int64]:
    """(points,) rows of independent draws."""
    if isinstance(data, Collection):
        return data.sample_index(points, seed)
    return data.index(data.sample_factors(points, seed))
