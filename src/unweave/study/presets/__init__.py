"""Studies that have a name: a function for each, grouped by their question.

A new one is a function that returns a `StudySpec`, and a line in `PRESETS`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from unweave.errors import UnweaveError, did_you_mean
from unweave.study.presets import fairness, few_labels, generalisation, published, reasoning, smoke, symmetry
from unweave.study.spec import StudySpec

PRESETS: dict[str, Callable[[], StudySpec]] = {
    "locatello2019": published.locatello2019,
    "locatello2019_dsprites": published.locatello2019_dsprites,
    "locatello2019_mini": published.locatello2019_mini,
    "locatello2019_fairness": fairness.locatello2019_fairness,
    "locatello2020_weak": published.locatello2020_weak,
    "locatello2020_weak_full": published.locatello2020_weak_full,
    "locatello2020_few_labels": few_labels.locatello2020_few_labels,
    "locatello2020_few_labels_full": few_labels.locatello2020_few_labels_full,
    "hartmann2021": published.hartmann2021,
    "tonnaer2022": symmetry.tonnaer2022,
    "montero2021": generalisation.montero2021,
    "schott2022": generalisation.schott2022,
    "traeuble2021": generalisation.traeuble2021,
    "roth2023": generalisation.roth2023,
    "vansteenkiste2019": reasoning.vansteenkiste2019,
    "vansteenkiste2019_mini": reasoning.vansteenkiste2019_mini,
    "smoke": published.smoke,
}
# How any study is made smaller.
REDUCED: dict[str, Callable[[StudySpec], StudySpec]] = {"smoke": smoke.smoke_version}


def preset_named(name: str) -> StudySpec:
    """The study of that name."""
    if name not in PRESETS:
        raise UnweaveError(f'there is no study "{name}". {did_you_mean(name, PRESETS)}')
    return PRESETS[name]()


def reduced(spec: StudySpec, preset: str) -> StudySpec:
    """A smaller version of a study, with a name of its own."""
    if preset not in REDUCED:
        raise UnweaveError(f'a study has no smaller version "{preset}". {did_you_mean(preset, REDUCED)}')
    return REDUCED[preset](spec)


def with_fields(spec: StudySpec, **fields: Any) -> StudySpec:
    """The same study with some fields of all runs changed, such as a shorter training."""
    changed = {name: value for name, value in fields.items() if value is not None}
    return dataclasses.replace(spec, runs=tuple(dataclasses.replace(run, **changed) for run in spec.runs))
