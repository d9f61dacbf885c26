"""Metrics for factors of any kind: how each metric gets real-valued, circular and missing factors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.metrics.kinds import BINS, FactorKind, factor_labels, factor_numbers
from unweave.metrics.metric import Metric, with_words
from unweave.metrics.mixed import complete_rows
from unweave.metrics.real_factors import Floats

Function = Callable[..., Any]
# codes and factors, and the factors of the rows that are fitted on -> codes and factors that a metric takes.
Convert = Callable[[NDArray[Any], Floats, Floats], tuple[NDArray[Any], NDArray[Any]]]


def for_kinds(metric: Metric, kinds: Sequence[FactorKind], missing: bool) -> Metric:
    """Return the metric for factors of these kinds, given as real numbers with NaN for missing values.

    Its protocol states what is done. A metric that counts gets real-valued factors in 20 bins of equal
    frequency ("factor-quantiles20"). A metric of numbers gets cosine and sine of circular factors
    ("sine-cosine"). DCI and SAP regress real-valued factors. Missing values are left out factor by factor
    ("pairwise") where a metric treats each factor on its own, and otherwise rows are left out in which any
    factor is missing ("complete-rows"). Metrics that intervene get labels from their source, so only their
    protocol changes.

    >>> from unweave.metrics import metric_named
    >>> for_kinds(metric_named("mig"), [FactorKind("continuous")], missing=True).protocol()
    'mig[bins20,factor-quantiles20,pairwise,mean]'
    """
    if not metric.inputs.needs_factors:
        return metric
    circular = any(kind.name == "circular" for kind in kinds)
    real = circular or any(kind.name == "continuous" for kind in kinds)
    if metric.mixed is not None:
        words = [metric.mixed.word] * (real and bool(metric.mixed.word))
        words += ["sine-cosine"] * circular + ["pairwise"] * missing
        function = functools.partial(metric.mixed.function, kinds=kinds)
        functools.update_wrapper(function, metric.mixed.function)
        return _with(metric, words, lambda _: function)
    if metric.factors_as == "numbers":
        words = ["sine-cosine"] * circular + ["complete-rows"] * missing
        return _with(metric, words, lambda called: _converting(called, _to_numbers(kinds)))
    if metric.factors_as == "positions":
        return _with(metric, ["complete-rows"] * missing, lambda called: called)
    gaps = metric.factors_as == "labels with gaps"
    words = [f"factor-quantiles{BINS}"] * real + [("pairwise" if gaps else "complete-rows")] * missing
    if metric.inputs.arguments[:2] != ("codes", "factors"):
        return _with(metric, words, lambda called: called)
    return _with(metric, words, lambda called: _converting(called, _to_labels(kinds, gaps)))


def _with(metric: Metric, words: Sequence[str], change: Callable[[Function], Function]) -> Metric:
    detailed = None if metric.mixed is not None or metric.detailed is None else change(metric.detailed)
    discrete = metric.for_discrete_codes
    if discrete is not None:
        discrete = discrete._replace(estimator=with_words(discrete.estimator, *words))
    return replace(
        metric,
        function=change(metric.function),
        detailed=detailed,
        estimator=with_words(metric.estimator, *words),
        for_discrete_codes=discrete,
        for_wide_codes=None,  # its options are those of the function that was replaced
    )


def _converting(function: Function, convert: Convert) -> Function:
    """The same function, whose codes and factors are converted first, and those of `test` like them."""

    @functools.wraps(function)
    def converted(codes: NDArray[Any], factors: Floats, *further: Any, **options: Any) -> Any:
        if options.get("test") is not None:
            test_codes, test_factors = options["test"]
            options["test"] = convert(test_codes, test_factors, factors)
        return function(*convert(codes, factors, factors), *further, **options)

    return converted


def _to_labels(kinds: Sequence[FactorKind], gaps: bool) -> Convert:
    def convert(
        codes: NDArray[Any], factors: Floats, reference: Floats
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        if not gaps:
            codes, factors = complete_rows(codes, factors)
        return codes, factor_labels(factors, kinds, reference)

    return convert


def _to_numbers(kinds: Sequence[FactorKind]) -> Convert:
    def convert(codes: NDArray[Any], factors: Floats, reference: Floats) -> tuple[NDArray[Any], Floats]:  # noqa: ARG001
        codes, factors = complete_rows(codes, factors)
        return codes, factor_numbers(factors, kinds)

    return convert
