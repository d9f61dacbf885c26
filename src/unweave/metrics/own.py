"""Metrics from outside the package: a record `Metric`, or a plain function of codes and factors."""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from unweave.errors import UnweaveError
from unweave.metrics.checks import as_array
from unweave.metrics.metric import Metric, with_words
from unweave.plugins.loading import origin_at

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def as_metric(part: object, place: str) -> Metric:
    """The metric that a plug-in defines.

    A function of (codes, factors) becomes a record. The protocol gets the hash of the file that `place`
    names, so that scores of two versions of a metric are never taken for one another.
    """
    if not isinstance(part, Metric) and not inspect.isfunction(part):
        raise UnweaveError(
            f"{place} is not a metric. A metric is a unweave.metrics.metric.Metric, or a function of (codes, "
            "factors) that returns a number."
        )
    metric = part if isinstance(part, Metric) else _record(part, part.__name__)
    source = origin_at(place, "metric").hash[:8]
    return replace(metric, estimator=with_words(metric.estimator, f"source-{source}"))


def metric_of_function(function: Callable[..., Any], name: str | None = None) -> Metric:
    """The record of a function of (codes, factors) that is passed as an object.

    It is called by `name`, or by the function's own name. The protocol gets a hash of the function's source,
    so that scores of two functions of one name are never taken for one another.
    """
    inner = _inner(function)
    chosen = name if name is not None else getattr(inner, "__name__", type(inner).__name__)
    if not isinstance(chosen, str) or not NAME.fullmatch(chosen):
        raise UnweaveError(
            f'a metric needs a name of letters, digits and underscores; got "{chosen}". Name the function: '
            'metrics=[{"my_metric": function}].'
        )
    if not callable(function):
        raise UnweaveError(
            f"the metric {chosen} must be a function of (codes, factors); got {type(function).__name__}."
        )
    metric = _record(function, chosen)
    return replace(metric, estimator=with_words(chosen, f"source-{_source_hash(function)}"))


def _record(function: Callable[..., Any], name: str) -> Metric:
    summary = (inspect.getdoc(function) or name).partition("\n")[0]
    return Metric(name, _checked(function, name), name, "codes", summary, "", range=(-math.inf, math.inf))


def _checked(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The same function; an error in it, and a result that is no number, are one sentence."""

    def checked(*arrays: Any, **options: Any) -> Any:
        try:
            result = function(*arrays, **options)
        except UnweaveError:
            raise
        except Exception as error:
            reason = (str(error).strip().splitlines() or [""])[0].rstrip(".")
            raise UnweaveError(f"the metric {name} failed: {type(error).__name__}: {reason}.") from error
        if hasattr(result, "_asdict"):
            return result
        if isinstance(result, Mapping):
            return {key: _number(value, f"{name}.{key}") for key, value in result.items()}
        return _number(result, name)

    # update_wrapper needs no __name__, which an object that can be called may lack.
    return functools.update_wrapper(checked, function)


def _number(value: Any, name: str) -> float:
    array = as_array(None if isinstance(value, list | tuple) else value)
    if array.ndim or array.dtype.kind not in "biuf":
        raise UnweaveError(
            f"a metric must return a number or a dictionary of numbers; {name} is {type(value).__name__}"
            + (f" of shape {array.shape}." if array.ndim else ".")
        )
    number = float(array)
    if not math.isfinite(number):
        raise UnweaveError(f"a metric must return finite numbers; {name} is {number}.")
    return number


def _inner(function: Callable[..., Any]) -> Callable[..., Any]:
    return function.func if isinstance(function, functools.partial) else function


def _source_hash(function: Callable[..., Any]) -> str:
    """A hash of the source; of the compiled code where the source is not known, as in some shells."""
    inner = _inner(function)
    definition = inner if hasattr(inner, "__name__") else type(inner)
    try:
        text = inspect.getsource(definition).encode()
    except (OSError, TypeError):
        code = getattr(definition, "__code__", None)
        text = code.co_code if code is not None else repr(definition).encode()
    return hashlib.sha256(text).hexdigest()[:8]
