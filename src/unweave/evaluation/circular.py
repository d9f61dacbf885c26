"""Which factors of a source are circular, when they start again, and why orbits may be missing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unweave.evaluation.arrays import ArraySource
from unweave.evaluation.sources import GroundTruthSource, Source

LEAST_VALUES = 5  # of a circular factor; fewer values lie on a circle by chance

NO_CIRCULAR = (
    f"it needs a circular factor with {LEAST_VALUES} values or more. State those of your own arrays with "
    'kinds={"angle": "circular"}'
)


def columns_of_kind(source: Source, kind: str) -> tuple[int, ...]:
    """The numbers of the factors of one kind, such as "circular", among those that can be measured."""
    if isinstance(source, GroundTruthSource):
        kinds = [source.truth.factors[j].kind for j in source.varied]
        return tuple(number for number, name in enumerate(kinds) if name == kind)
    return tuple(number for number, own in enumerate(source.kinds) if own.name == kind)


def periods_of_source(source: Source) -> dict[int, int]:
    """The number of values after which each circular factor starts again, if these are enough."""
    periods = {}
    for column in columns_of_kind(source, "circular"):
        if isinstance(source, GroundTruthSource):
            factor = source.truth.factors[source.varied[column]]
            periods[column] = factor.period or factor.size
        elif isinstance(source, ArraySource):
            periods[column] = _values_of_a_turn(source, column)
    return {column: period for column, period in periods.items() if period >= LEAST_VALUES}


def circular_obstacle(source: Source) -> str | None:
    """Why a source has no orbits of circular factors, or None."""
    periods = periods_of_source(source)
    if not periods:
        return NO_CIRCULAR
    if not isinstance(source, ArraySource):
        return None
    for kind, name in zip(source.kinds, source.names, strict=True):
        if kind.name == "continuous":
            return f'it needs factors with a few values that repeat, and "{name}" is continuous'
    for column, values_of_a_turn in periods.items():
        values, period = _values(source, column), source.kinds[column].period
        whole = bool((values == np.round(values)).all())
        if not whole or not np.allclose(np.diff(values), period / values_of_a_turn):
            return (
                f'the values of "{source.names[column]}" must be whole numbers at equal distances that go '
                f"once round its period of {period:g}. Number them from 0"
            )
    return None


def _values(source: ArraySource, column: int) -> NDArray[np.float64]:
    known = source.factors[:, column]
    return np.unique(known[np.isfinite(known)]).astype(np.float64)


def _values_of_a_turn(source: ArraySource, column: int) -> int:
    """The number of values before the first one comes again, such as 0 and 360 degrees."""
    values = _values(source, column)
    return int((values < values[0] + source.kinds[column].period).sum())
