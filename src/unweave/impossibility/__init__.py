"""Entangled codes with the distribution of the disentangled ones: the impossibility theorem on arrays."""

from unweave.impossibility.comparison import Comparison, compare, largest_correlation, marginal_distances
from unweave.impossibility.transform import cosines, direction, entangle, jacobian, reflection

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
