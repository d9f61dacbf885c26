"""A note on metrics that count all combinations of factors the same where data draw some more often."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unweave.data.grid import GroundTruth
from unweave.evaluation.choice import listed
from unweave.evaluation.sources import GroundTruthSource, Source
from unweave.metrics.metric import Metric
from unweave.streams import Stream

COUNTS_EACH = ("representation", "interventions", "orbits", "posterior")  # needs that look at the whole grid
TRIAL = 4096


def uneven_notes(metrics: Sequence[Metric], source: Source) -> tuple[str, ...]:
    """A note on the metrics that count each combination the same, if they are not drawn equally often."""
    names = [metric.name for metric in metrics if metric.needs in COUNTS_EACH]
    if not names or not isinstance(source, GroundTruthSource) or not draws_unevenly(source.truth):
        return ()
    counts = "counts" if len(names) == 1 else "count"
    return (
        f"{listed(names)} {counts} each combination of factors the same, but {source.truth.name} draws some "
        "more often.",
    )


def draws_unevenly(truth: GroundTruth) -> bool:
    """Whether some of the combinations that may be drawn are drawn more often than others."""
    if truth.weight is None or truth.members is not None:
        return False
    tried = Stream.of(0).child("uneven draws").integers(TRIAL, truth.sizes)
    equal = np.ones(TRIAL) if truth.allowed is None else truth.allowed(tried)
    return not np.array_equal(truth.weight(tried), equal)
