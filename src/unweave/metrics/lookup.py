"""Metrics by name: those of the table, of installed plug-ins, and of files of one's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from unweave.errors import UnweaveError, did_you_mean
from unweave.metrics.metric import Metric, asked_names
from unweave.metrics.own import as_metric
from unweave.metrics.table import METRICS, SUITES
from unweave.plugins.loading import (
    absolute,
    check_entry_name,
    installed_names,
    installed_parts,
    load_reference,
    names_plugin,
    place_of,
    refuse_built_in,
)

# A text of names with commas between them, a record, or a list of both.
Asked: TypeAlias = str | Metric | Sequence[str | Metric]


def metric_named(name: str) -> Metric:
    """The metric of that name: of the table, of an installed plug-in, or `file.py:Name` or `module:Name`."""
    names = [metric.name for metric in METRICS]
    if name in names:
        return METRICS[names.index(name)]
    place = place_of("metric", name)
    if place is None:
        known = [*names, *installed_names("metric")]
        raise UnweaveError(f'there is no metric "{name}". {did_you_mean(name, known)}')
    metric = as_metric(load_reference(place, "metric"), place)
    refuse_built_in("metric", metric.name, [*names, *SUITES], place)
    check_entry_name("metric", name, metric.name)
    return metric


def metrics_named(names: Asked) -> tuple[Metric, ...]:
    """The metrics of a suite (see SUITES), of names with commas between them, or of a list of both.

    >>> [metric.name for metric in metrics_named("mig, irs")]
    ['mig', 'irs']
    """
    records, _ = _split(names)
    found = [*(metric_named(word) for word in metric_words(names)), *records]
    return tuple({metric.name: metric for metric in found}.values())


def metric_words(names: Asked) -> tuple[str, ...]:
    """The names in what was asked for: suites as their members, files of plug-ins with the whole path."""
    records, rest = _split(names)
    words = asked_names(rest)
    if not words and not records:
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
    """The records in what was asked for, and the rest of it."""
    if isinstance(names, Metric):
        return [names], []
    if not isinstance(names, list | tuple):
        return [], names
    records = [name for name in names if isinstance(name, Metric)]
    return records, [name for name in names if not isinstance(name, Metric)]
