"""Studies that have a name: a function for each, grouped by their question.

A new one is a function that returns a `StudySpec`, and a line in `PRESETS`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from unweave.errors import UnweaveError, did_you_mean
from unweave.study.presets import published
from unweave.study.spec import StudySpec

PRESETS: dict[str, Callable[[], StudySpec]] = {
    "locatello2019": published.locatello2019,
    "locatello2019_dsprites": published.locatello2019_dsprites,
    "locatello2019_mini": published.locatello2019_mini,
    "locatello2020_weak": published.locatello2020_weak,
    "locatello2020_weak_full": published.locatello2020_weak_full,
    "locatello2020_few_labels": published.locatello2020_few_labels,
    "locatello2020_few_labels_full": published.locatello2020_few_labels_full,
    "hartmann2021": published.hartmann2021,
    "smoke": published.smoke,
}


def preset_named(name: str) -> StudySpec:
    """The study of that name."""
    if name not in PRESETS:
        raise UnweaveError(f'there is no study "{name}". {did_you_mean(name, PRESETS)}')
    return PRESETS[name]()


def with_fields(spec: StudySpec, **fields: Any) -> StudySpec:
    """The same study with some fields of all runs changed, such as a shorter training."""
    changed = {name: value for name, value in fields.items() if value is not None}
    return dataclasses.replace(spec, runs=tuple(dataclasses.replace(run, **changed) for run in spec.runs))
