"""Codes along a factor: all values of one factor while the others stay fixed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unweave.metrics.checks import scaled
from unweave.metrics.real_factors import Floats
from unweave.metrics.representation import Representation
from unweave.streams import Stream


def traversals(representation: Representation, repeats: int, stream: Stream) -> Iterator[tuple[int, Floats]]:
    """Yield each factor with two values or more and codes (repeats, values, d) along it.

    The other factors are drawn uniformly for each repeat. Codes are divided by one power of two for each
    factor, so that ratios of distances are unchanged and no distance overflows.
    """
    representation.require_grid("Codes along a factor need")
    for j, size in enumerate(representation.sizes):
        if size < 2:
            continue
        own = stream.child("factor", j)
        factors = np.repeat(own.child("others").integers(repeats, representation.sizes), size, axis=0)
        factors[:, j] = np.tile(np.arange(size), repeats)
        codes = representation.codes(factors, own.child("codes"))
        yield j, scaled(codes)[0].reshape(repeats, size, -1)
