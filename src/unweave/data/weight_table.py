"""Draws from a table of the probabilities of all combinations, where trying combinations takes too long."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.streams import Stream

Whole: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.float64]
# (n, k) factors -> (n,) probabilities in [0, 1] with which a uniform draw of them is kept.
Weigh: TypeAlias = Callable[[Whole], Numbers]

RARE = 0.1  # the share of accepted draws below which they are made from a table
SURELY_MORE = 0.125  # in a trial, which saves most data the sum over all combinations
HOPELESS = 1 / 256  # the share below which no draw is tried
TRIAL = 1 << 14
CHUNK = 1 << 16
LARGEST_TABLE = 1 << 24  # combinations


class WeightTable:
    """The probabilities of all combinations with some factors fixed; `pattern` has -1 for free factors."""

    def __init__(self, sizes: Sequence[int], weigh: Weigh, pattern: Whole) -> None:
        self.pattern, self.free = pattern, np.flatnonzero(pattern < 0)
        self.sizes = [sizes[int(j)] for j in self.free]
        count = math.prod(self.sizes)
        starts = range(0, count, CHUNK)
        weights = [weigh(self._factors(np.arange(i, min(i + CHUNK, count)))) for i in starts]
        self.ends = np.cumsum(np.concatenate(weights))

    @property
    def share(self) -> float:
        """The share of uniform draws that are accepted."""
        return float(self.ends[-1] / len(self.ends))

    def draw(self, stream: Stream, rows: int | Whole) -> Whole:
        """(n, k): one combination for each row of the stream; the share must not be 0."""
        total = self.ends[-1]
        words = stream.bits(rows, 2).astype(np.uint64)
        uniform = (words[:, 0] << np.uint64(21) | words[:, 1] >> np.uint64(11)) * 2.0**-53
        # The first end above a number below the total belongs to a combination with a weight above 0.
        at = np.minimum(uniform * total, np.nextafter(total, 0))
        return self._factors(np.searchsorted(self.ends, at, side="right"))

    def _factors(self, index: Whole) -> Whole:
        factors = np.repeat(self.pattern[None], len(index), axis=0)
        if len(self.free):
            factors[:, self.free] = np.stack(np.unravel_index(index, self.sizes), axis=1)
        return factors


def rare_table(sizes: Sequence[int], weigh: Weigh) -> WeightTable | None:
    """The table of all combinations, if fewer than 1 in 10 draws are accepted and it is not too large."""
    trial = Stream.of(0).child("accepted share").integers(TRIAL, sizes)
    if math.prod(sizes) > LARGEST_TABLE or weigh(trial).mean() > SURELY_MORE:
        return None
    table = WeightTable(sizes, weigh, np.full(len(sizes), -1, np.int64))
    return table if 0 < table.share < RARE else None


def draw_given(sizes: Sequence[int], weigh: Weigh, held: Whole, stream: Stream, rows: Whole) -> Whole | None:
    """(n, k): combinations given the fixed factors of each row of `held`; None if a row has none.

    Row i comes from row rows[i] of the stream.
    """
    out = np.empty_like(held)
    for pattern in np.unique(held, axis=0):
        if math.prod(size for size, value in zip(sizes, pattern, strict=True) if value < 0) > LARGEST_TABLE:
            return None
        table, chosen = WeightTable(sizes, weigh, pattern), (held == pattern).all(axis=1)
        if not table.share:
            return None
        out[chosen] = table.draw(stream, rows[chosen])
    return out
