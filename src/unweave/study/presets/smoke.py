"""Any study in small: the same methods, data and metrics, some minutes of two cores."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

from unweave.data.catalogue import entry_of
from unweave.data.conditions.naming import split_name
from unweave.metrics.lookup import metric_named
from unweave.runs.spec import RunSpec
from unweave.study.spec import StudySpec

DATA_SETS, SETTINGS, SEEDS = 2, 4, 2  # at most; settings are those of all methods on one data set
STEPS, BATCH, LEARNING_RATE = 100, 32, 1e-3
POINTS = (1_000, 500)
ENCODE_ALL = ("representation", "posterior")  # what metrics need that encode all images: minutes for dSprites

Item = TypeVar("Item")


def smoke_version(spec: StudySpec) -> StudySpec:
    """The study with at most 2 data sets, 4 settings and 2 seeds of each, of 100 steps: at most 16 runs.

    Methods come before strengths: two methods keep two strengths each, four methods keep one. Of data sets
    and strengths the first and the last are kept, which differ most. If methods keep one strength, it is in
    turn their last and their first one: the first ones of several methods may be the same model, such as the
    VAE. Conditions of one data set come before other data sets. Data sets that need no files are preferred.
    Scores are those of mean codes, from fewer points; metrics that encode all images of a data set are left
    out.
    """
    chosen: list[RunSpec] = []
    for data in _spread(_usable_data(spec), DATA_SETS):
        for alike in _settings([run for run in spec.runs if run.data == data]):
            chosen += sorted(alike, key=lambda run: run.seed)[:SEEDS]
    first, second = (min(pair) for pair in zip(spec.points, POINTS, strict=True))
    return dataclasses.replace(
        spec,
        name=f"{spec.name}_smoke",
        runs=tuple(_shortened(run) for run in chosen),
        metrics=_quick_metrics(spec),
        representations=("mean",) if "mean" in spec.representations else spec.representations,
        points=(first, second),
    )


def _quick_metrics(spec: StudySpec) -> tuple[str, ...]:
    """The metrics that look at some thousand images; all of them if there are no such metrics."""
    names = tuple(spec.metrics)
    return tuple(name for name in names if metric_named(name).needs not in ENCODE_ALL) or names


def _usable_data(spec: StudySpec) -> list[str]:
    """The data sets of a study that need no files, or all; the conditions of the first, if it has several."""
    names = list(dict.fromkeys(run.data for run in spec.runs))
    usable = [name for name in names if spec.reference(name) is not None or not entry_of(name).wanted]
    usable = usable or names
    alike = [name for name in usable if split_name(name)[0] == split_name(usable[0])[0]]
    return alike if len(alike) > 1 else usable


def _settings(runs: Sequence[RunSpec]) -> list[list[RunSpec]]:
    """Runs that differ in nothing but their seed, for at most four settings: as many methods as possible."""
    by_setting: dict[RunSpec, list[RunSpec]] = {}
    for run in runs:
        by_setting.setdefault(dataclasses.replace(run, seed=0), []).append(run)
    by_method: dict[str, list[list[RunSpec]]] = {}
    for setting, alike in by_setting.items():
        by_method.setdefault(setting.method.name, []).append(alike)
    names = _spread(list(by_method), SETTINGS)
    most = SETTINGS // len(names)
    if most == 1:
        return [by_method[name][-1 if i % 2 == 0 else 0] for i, name in enumerate(names)]
    return [alike for name in names for alike in _spread(by_method[name], most)]


def _spread(items: Sequence[Item], most: int) -> list[Item]:
    """At most so many items, two or more, evenly spaced from the first to the last.

    >>> _spread("abcdefgh", 4), _spread("abc", 2), _spread("ab", 3)
    (['a', 'c', 'f', 'h'], ['a', 'c'], ['a', 'b'])
    """
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


def _shortened(run: RunSpec) -> RunSpec:
    return dataclasses.replace(
        run,
        steps=min(run.steps, STEPS),
        batch=min(run.batch, BATCH),
        learning_rate=max(run.learning_rate, LEARNING_RATE),
        precision=RunSpec.precision,
    )
