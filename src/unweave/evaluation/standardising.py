"""Standardised codes, for metrics that depend on the scale of codes that has no meaning.

A prior sets the scale of codes. Without one, as in a plain autoencoder, any scale gives the same model, and a
metric with a threshold or a penalty would measure an accident.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.metrics.representation import Representation
from unweave.streams import Stream

# Which codes to standardise: their numbers, or all of them as slice(None).
Columns: TypeAlias = Sequence[int] | slice

POINTS = 10_000  # whose mean and deviation are used where a metric asks for codes of chosen factors
ROUNDING = 1e-6  # a deviation that is smaller, relative to the code, is rounding


@dataclass(frozen=True, eq=False)
class Scale:
    """What is subtracted from codes and what they are divided by, (d,) each."""

    centre: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @classmethod
    def of(cls, codes: NDArray[Any], columns: Columns) -> Scale:
        """The scale that gives these columns mean 0 and deviation 1; constant and other codes stay."""
        numbers = codes.astype(np.float64)
        deviation, largest = numbers.std(axis=0), np.abs(numbers).max(axis=0)
        chosen = np.zeros(numbers.shape[1], np.bool_)
        chosen[columns if isinstance(columns, slice) else list(columns)] = True
        chosen &= deviation > ROUNDING * largest
        return cls(np.where(chosen, numbers.mean(axis=0), 0.0), np.where(chosen, deviation, 1.0))

    def __call__(self, codes: ArrayLike) -> NDArray[Any]:
        """The codes in their own type."""
        array = np.asarray(codes)
        return np.asarray((array - self.centre) / self.deviation, array.dtype)


def standardised(
    arguments: Mapping[str, Any], columns: Columns, fitted: NDArray[Any] | None = None
) -> dict[str, Any]:
    """The arguments of a metric with standardised codes; those to test on have the scale of the others.

    With `fitted`, all have the scale of these codes.
    """
    representation = arguments.get("representation")
    if isinstance(representation, Representation):
        scale = Scale.of(representation.draw(POINTS, Stream.of(0).child("scale"))[0], columns)
        return {**arguments, "representation": _rescaled(representation, scale)}
    scale = Scale.of(arguments["codes"] if fitted is None else fitted, columns)
    changed = {**arguments, "codes": scale(arguments["codes"])}
    if arguments.get("test") is not None:
        codes, factors = arguments["test"]
        changed["test"] = (scale(codes), factors)
    return changed


def _rescaled(representation: Representation, scale: Scale) -> Representation:
    rows = representation.rows
    return replace(
        representation,
        encode=lambda factors, stream: scale(representation.encode(factors, stream)),
        rows=None if rows is None else replace(rows, codes=scale(rows.codes)),
    )
