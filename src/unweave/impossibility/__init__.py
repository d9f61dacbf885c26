"""Entangled codes with the distribution of the disentangled ones: the impossibility theorem on arrays."""

from typing import TYPE_CHECKING

from unweave.impossibility.comparison import Comparison, compare, largest_correlation, marginal_distances
from unweave.impossibility.transform import cosines, direction, entangle, jacobian, reflection
from unweave.lazy import lazy_names

__all__ = [
    "Comparison",
    "compare",
    "cosines",
    "direction",
    "entangle",
    "jacobian",
    "largest_correlation",
    "marginal_distances",
    "reflection",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
