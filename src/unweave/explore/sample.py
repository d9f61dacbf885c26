"""The true images from which the explorer estimates what a model has learned, with their factors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unweave.data import Collection, GroundTruth
from unweave.data.grid import Factor, Images
from unweave.data.supervision.restrict import equally_likely
from unweave.streams import Stream


@dataclass(frozen=True, eq=False)
class Sample:
    """Images (n, c, h, w), and the discrete factors of those images whose factors are all known.

    `rows` are these images, (m,), `factors` their values, (m, k), one column for each of `columns`.
    """

    images: Images
    columns: tuple[Factor, ...]
    rows: NDArray[np.int64]
    factors: NDArray[np.int64]


def sample_of(data: GroundTruth | Collection, points: int, stream: Stream) -> Sample:
    """Images of a data set drawn at random; if there are no more than `points`, each image once.

    Images that are drawn repeatedly would count as more data than there are.
    """
    if isinstance(data, GroundTruth):
        few = None if data.stochastic else equally_likely(data, points)
        if few is None:
            factors = data.sample_factors(points, stream)
        else:
            # In random order: neighbours in the grid are alike, and some pages show the first images.
            factors = data.factors_at(few[stream.child("order").permutations(1, len(few))[0]])
        return Sample(data.observe(factors, stream), data.factors, np.arange(len(factors)), factors)
    index = np.arange(len(data)) if len(data) <= points else data.sample_index(points, stream)
    kept = [(j, factor) for j, factor in enumerate(data.factors) if isinstance(factor, Factor)]
    values = data.values_at(index)[:, [j for j, _ in kept]]
    rows = np.flatnonzero(~np.isnan(values).any(axis=1))
    columns = tuple(factor for _, factor in kept) if len(rows) else ()
    return Sample(data.images_at(index), columns, rows, values[rows].astype(np.int64))
