"""Metrics by name: those of the table, of installed plug-ins, and of files of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from unweave.errors import UnweaveError, did_you_mean
from unweave.metrics.metric import Metric, asked_names
from unweave.metrics.own import as_metric, metric_of_function
from unweave.metrics.table import METRICS, SUITES
from unweave.plugins.loading import (
    absolute,
    check_entry_name,
    installed_names,
    installed_parts,
    load_reference,
    names_plugin,
    plugin_place,
    refuse_built_in,
)

# A function of (codes, factors), or several by name.
Own: TypeAlias = Callable[..., Any] | Mapping[str, Callable[..., Any]]
# A text of names with commas between them, a record, functions, or a list of all of these.
Asked: TypeAlias = str | Metric | Own | Sequence[str | Metric | Own]


def metric_named(name: str) -> Metric:
    """The metric of that name: of the table, of an installed plug-in, or `file.py:Name` or `module:Name`."""
    names = [metric.name for metric in METRICS]
    if name in names:
        return METRICS[names.index(name)]
    place = plugin_place("metric", name, names)
    metric = as_metric(load_reference(place, "metric"), place)
    refuse_built_in("metric", metric.name, [*names, *SUITES], place)
    check_entry_name("metric", name, metric.name)
    return metric


def metrics_named(names: Asked) -> tuple[Metric, ...]:
    """The metrics of a suite (see SUITES), of names with commas between them, or of a list of both.

    A list may also hold records, functions of (codes, factors), and dictionaries of functions by name.

    >>> [metric.name for metric in metrics_named("mig, irs")]
    ['mig', 'irs']
    """
    records, rest = _split(names)
    words = _flat_words(rest) if rest or not records else ()
    metrics = {metric.name: metric for metric in map(metric_named, words)}
    for record in records:
        if metrics.setdefault(record.name, record) is not record:
            raise UnweaveError(
                f'two metrics are called "{record.name}". Name yours: metrics=[{{"my_metric": function}}].'
            )
    return tuple(metrics.values())


def metric_words(names: Asked) -> tuple[str, ...]:
    """The names in what was asked for: suites as their members, files of plug-ins with the whole path."""
    records, rest = _split(names)
    if records:
        raise UnweaveError(
            "metrics are named here, so that other processes can find them; got the metric "
            f'"{records[0].name}" as an object. Name it by its file: path/to/file.py:Name.'
        )
    return _flat_words(rest)


def _flat_words(names: object) -> tuple[str, ...]:
    words = asked_names(names)
    if not words:
        raise UnweaveError(f"no metric was named. Name some, or one of {', '.join(SUITES)}.")
    known = [*SUITES, *(metric.name for metric in METRICS)]
    for word in words:
        if word not in known and not names_plugin("metric", word):
            more = [*known, *installed_names("metric")]
            raise UnweaveError(f'there is no metric or suite "{word}". {did_you_mean(word, more)}')
    flat = [absolute(name) for word in words for name in SUITES.get(word, (word,))]
    return tuple(dict.fromkeys(flat))


def named_singly(names: Asked) -> frozenset[str]:
    """The names of the metrics that were asked for one by one, not as part of a suite."""
    records, rest = _split(names)
    words = [word for word in asked_names(rest) if word not in SUITES]
    return frozenset(metric.name for metric in (*records, *map(metric_named, words)))


def plugin_metrics(problem: Callable[[str], None]) -> list[Metric]:
    """The metrics of installed plug-ins; `problem` gets a sentence on each that cannot be used."""
    names = [*SUITES, *(metric.name for metric in METRICS)]
    return list(installed_parts("metric", names, metric_named, problem))


def _split(names: object) -> tuple[list[Metric], object]:
    """The metrics that were passed as objects, and the rest of what was asked for."""
    if _is_object(names):
        return _records(names), []
    if not isinstance(names, list | tuple):
        return [], names
    records = [record for part in names if _is_object(part) for record in _records(part)]
    return records, [part for part in names if not _is_object(part)]


def _is_object(part: object) -> bool:
    return isinstance(part, Metric | Mapping) or callable(part)


def _records(part: Any) -> list[Metric]:
    """A metric, a function or functions by name as records; a function of the table as its record there."""
    if isinstance(part, Metric):
        return [part]
    for metric in METRICS:
        if metric.function is part and metric.name == part.__name__:
            return [metric]
    named = part.items() if isinstance(part, Mapping) else [(None, part)]
    records = [metric_of_function(function, name) for name, function in named]
    for record in records:
        built_in = [*SUITES, *(metric.name for metric in METRICS)]
        refuse_built_in("metric", record.name, built_in, "your function")
    return records
