"""The splits of Schott et al., as in the code of the paper's supplementary material.

Each factor that takes part has a share q of values, rounded up, that training never sees:

- interpolation: the values that are left out when the others are spread evenly, with both ends;
- extrapolation: the largest values;
- composition: with m factors and p = 1 - (1 - (1 - q)^m)^(1/m), the smallest floor(p size) values of each
  factor are special. Training has a special value in at least one factor, so no value is unseen.

Schott et al., "Visual representation learning does not generalize strongly within the same domain", ICLR
2022. Their q leaves 26 to 33% of the images for training. Other data sets have a q that would leave 30% if
factors could be cut anywhere, and numbers of values rounded to the nearest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from unweave.data.conditions.factor_names import MPI, SHAPES, SPRITES
from unweave.data.grid import Factor
from unweave.errors import UnweaveError

# The share of each factor, and the factors that training sees in full, by the factors of the data.
PUBLISHED: Mapping[tuple[str, ...], tuple[float, tuple[str, ...]]] = {
    SPRITES: (0.2, ("shape",)),
    SHAPES: (0.15, ("shape",)),
    MPI: (0.1, ("object_shape", "object_size")),
}
TRAINED = 0.3  # the share of combinations for training
FEWEST_VALUES = 3  # of a factor of other data that takes part


def schott_random(factors: Sequence[Factor]) -> str:
    """Hold out 70% of all combinations."""
    del factors  # any data can be split at random
    return f"random({1 - TRAINED:g})"


def schott_interpolation(factors: Sequence[Factor]) -> str:
    """Hold out values between the others, never the smallest or the largest."""
    parts = []
    for factor, count in _counts(factors, 1):
        seen = np.round(np.linspace(0, factor.size - 1, factor.size - count)).astype(int).tolist()
        held = sorted(set(range(factor.size)) - set(seen))
        parts.append(f"hold({factor.name}={'|'.join(map(str, held))})")
    return ":".join(parts)


def schott_extrapolation(factors: Sequence[Factor]) -> str:
    """Hold out the largest values."""
    return ":".join(f"hold({factor.name}>={factor.size - count})" for factor, count in _counts(factors, 1))


def schott_composition(factors: Sequence[Factor]) -> str:
    """Hold out where no factor has one of its smallest values."""
    chosen, share, published = _chosen(factors, 2)
    rest = 1 - (1 - (1 - share) ** len(chosen)) ** (1 / len(chosen))
    least = 0 if published else 1
    starts = [max(least, math.floor(rest * factor.size)) for factor in chosen]
    tests = [f"{factor.name}>={start}" for factor, start in zip(chosen, starts, strict=True) if start]
    return f"hold({','.join(tests)})"


SCHOTT: Mapping[str, Callable[[Sequence[Factor]], str]] = {
    "schott_random": schott_random,
    "schott_composition": schott_composition,
    "schott_interpolation": schott_interpolation,
    "schott_extrapolation": schott_extrapolation,
}


def _chosen(factors: Sequence[Factor], least: int) -> tuple[list[Factor], float, bool]:
    """The factors that take part, the share of their values, and whether both are published."""
    published = PUBLISHED.get(tuple(factor.name for factor in factors))
    if published is not None:
        share, whole = published
        return [factor for factor in factors if factor.name not in whole], share, True
    chosen = [factor for factor in factors if factor.kind != "categorical" and factor.size >= FEWEST_VALUES]
    if len(chosen) < least:
        wanted = "one factor" if least == 1 else f"{least} factors"
        raise UnweaveError(
            f"this split needs {wanted} of {FEWEST_VALUES} values or more, not counting categories; got "
            f"{len(chosen)}"
        )
    return chosen, 1 - TRAINED ** (1 / len(chosen)), False


def _counts(factors: Sequence[Factor], least: int) -> list[tuple[Factor, int]]:
    """The factors that take part, and how many of their values are held out."""
    chosen, share, published = _chosen(factors, least)
    if published:
        return [(factor, math.ceil(share * factor.size)) for factor in chosen]
    return [(factor, min(max(1, round(share * factor.size)), factor.size - 2)) for factor in chosen]
