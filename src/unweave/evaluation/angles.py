"""The periods of circular factors, in the units of their values."""

from __future__ import annotations

from unweave.evaluation.circular import columns_of_kind
from unweave.evaluation.sources import GroundTruthSource, Source


def periods_of(source: Source) -> dict[int, float]:
    """The period of each circular factor by its number among those that can be measured."""
    columns = columns_of_kind(source, "circular")
    if not isinstance(source, GroundTruthSource):
        return {column: source.kinds[column].period for column in columns}
    factors = {column: source.truth.factors[source.varied[column]] for column in columns}
    return {column: float(factor.period or factor.size) for column, factor in factors.items()}
