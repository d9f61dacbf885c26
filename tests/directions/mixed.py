"""Codes that are perfect up to a rotation."""

import numpy as np
from numpy.typing import NDArray

from unweave.streams import Stream

Floats = NDArray[np.float64]
FACTORS = Stream.of(0).integers(1500, [4, 5, 6])
SOURCES: Floats = (FACTORS - FACTORS.mean(axis=0)) / FACTORS.std(axis=0)


def rotation(size: int, seed: int = 1) -> Floats:
    """A random rotation."""
    return np.linalg.qr(Stream.of(seed).normal(size, size))[0]


ROTATED: Floats = SOURCES @ rotation(3)
UNEQUAL: Floats = SOURCES * [3.0, 2.0, 1.0] @ rotation(3)
