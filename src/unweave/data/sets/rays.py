"""Rays and the simple solids they meet, for the rooms.

Only elementwise arithmetic and square roots, which IEEE 754 rounds in one way only, so that what is drawn
with them is the same on every machine.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

# A vector a ray, (3, n); or one vector for all, (3, 1).
Vectors: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = NDArray[np.float64]
# Along each ray: where it enters and where it leaves.
Span: TypeAlias = tuple[Numbers, Numbers]


def slab(start: Numbers, ray: Numbers, low: float, high: float) -> Span:
    """Where one coordinate of the rays is between low and high."""
    first, second = (low - start) / ray, (high - start) / ray
    return np.minimum(first, second), np.maximum(first, second)


def tube(start: Vectors, rays: Vectors, radius: float) -> Span:
    """Where the rays are inside an endless upright cylinder around the y axis."""
    return _roots(
        rays[0] * rays[0] + rays[2] * rays[2],
        start[0] * rays[0] + start[2] * rays[2],
        start[0] * start[0] + start[2] * start[2] - radius * radius,
    )


def ball(start: Vectors, rays: Vectors, height: float, radius: float) -> Span:
    """Where the rays are inside a ball around (0, height, 0)."""
    offset = start - np.asarray([[0.0], [height], [0.0]])
    return _roots(dot(rays, rays), dot(offset, rays), dot(offset, offset) - radius * radius)


def _roots(a: Numbers, b: Numbers, c: Numbers) -> Span:
    """Where a t^2 + 2 b t + c < 0; from infinity to minus infinity where it never is."""
    square = b * b - a * c
    root = np.sqrt(np.maximum(square, 0))
    real = square > 0
    return np.where(real, (-b - root) / a, np.inf), np.where(real, (-b + root) / a, -np.inf)


def both(one: Span, other: Span) -> Span:
    """Where the rays are inside of one and of the other."""
    return np.maximum(one[0], other[0]), np.minimum(one[1], other[1])


def meets(span: Span) -> NDArray[np.bool_]:
    """Whether something lies ahead on the rays."""
    return np.asarray(span[1] > np.maximum(span[0], 0))


def entry(span: Span) -> Numbers:
    """How far it is to where the rays enter; infinity where they never do."""
    return np.where(meets(span), span[0], np.inf)


def dot(one: Vectors, other: Vectors) -> Numbers:
    """The inner product of each pair of vectors."""
    # Spelled out: matrix products and sums add in an order that depends on the machine.
    return np.asarray(one[0] * other[0] + one[1] * other[1] + one[2] * other[2])


def unit(vectors: Vectors) -> Vectors:
    """The vectors, scaled to length 1."""
    return vectors / np.sqrt(dot(vectors, vectors))
