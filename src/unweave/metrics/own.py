"""Metrics from outside the package: a record `Metric`, or a plain function of codes and factors."""

from __future__ import annotations

import inspect
import math
from dataclasses import replace

from unweave.errors import UnweaveError
from unweave.metrics.metric import Metric
from unweave.plugins.loading import origin_at


def as_metric(part: object, place: str) -> Metric:
    """The metric that a plug-in defines.

    A function of (codes, factors) becomes a record. The protocol gets the hash of the file that `place`
    names, so that scores of two versions of a metric are never taken for one another.
    """
    metric = part if isinstance(part, Metric) else _of_function(part, place)
    source = origin_at(place, "metric").hash[:8]
    inside = metric.estimator.removesuffix("]")
    separator = "," if "[" in inside else "["
    return replace(metric, estimator=f"{inside}{separator}source-{source}]")


def _of_function(part: object, place: str) -> Metric:
    if not inspect.isfunction(part):
        raise UnweaveError(
            f"{place} is not a metric. A metric is a unweave.metrics.metric.Metric, or a function of (codes, "
            "factors) that returns a number."
        )
    summary = (inspect.getdoc(part) or part.__name__).partition("\n")[0]
    return Metric(part.__name__, part, part.__name__, "codes", summary, "", range=(-math.inf, math.inf))
