"""Which runs train together, in which order, and what a study will take.

A unit of work is a population: runs that share data, networks, batch and number of steps. Units are made once
and written to a file: another population may change the last digits of a number, so a study that is killed
and resumed, or that grows, keeps its units. Units of the first seeds come first, so that partial results
compare all settings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch

from unweave.errors import UnweaveError
from unweave.files import write_json
from unweave.layout import PLAN_FILE, RESULT_FILE
from unweave.locks import hold
from unweave.methods import METHODS
from unweave.runs.spec import RunSpec
from unweave.study.folder import StudyFolder
from unweave.training.population import shared_by

SCHEMA = 1
# Runs in a population: more gain nothing on a CPU; on a GPU they must fit.
ON_CPU, LARGEST, BYTES_A_RUN = 4, 128, 600_000_000
RESERVED_BYTES = 1_000_000_000  # of a GPU: its context, the images of the data set, a screen
WEIGHTS_BYTES, RECORDS_BYTES = 2_700_000, 60_000  # of a finished run, with the networks of the study


@dataclass(frozen=True)
class Unit:
    """Runs that train together."""

    runs: tuple[str, ...]  # their ids

    @property
    def id(self) -> str:
        """A name made of the runs."""
        return hashlib.blake2b("".join(self.runs).encode(), digest_size=8).hexdigest()


def make_units(runs: Sequence[RunSpec], largest: int) -> list[Unit]:
    """Units of at most so many runs, in the order in which they are to be trained.

    >>> from unweave.study.spec import grid
    >>> runs = grid([{"name": "beta_vae", "beta": [1, 2, 4]}], seed="0-1")
    >>> [len(unit.runs) for unit in make_units(runs, largest=4)]
    [4, 2]
    """
    if largest < 1:
        raise UnweaveError(f"a population has at least one run; got {largest}.")
    kinds = [kind.name for kind in METHODS]

    def place(run: RunSpec) -> tuple[Any, ...]:
        alike = (repr(shared_by(run)), run.steps, _players(run))
        name = run.method.name
        rank = kinds.index(name) if name in kinds else len(kinds)  # plug-ins after the methods of unweave
        return (*alike, run.seed, rank, repr(run.method), run.learning_rate)

    units: list[tuple[int, int, Unit]] = []
    ordered = sorted(runs, key=place)
    for i, (_, alike) in enumerate(groupby(ordered, key=lambda run: place(run)[:3])):
        together = list(alike)
        for start in range(0, len(together), largest):
            part = together[start : start + largest]
            units.append((part[0].seed, i, Unit(tuple(run.id for run in part))))
    return [unit for _, _, unit in sorted(units, key=lambda entry: entry[:2])]


def _players(run: RunSpec) -> int:
    """Methods with a discriminator train apart: the others would wait for it at every step."""
    return len(run.method.players)


def plan_of(study: StudyFolder, largest: int) -> list[Unit]:
    """The units of a study, as written down; runs that are in none yet get new ones."""
    path = study.path / PLAN_FILE
    with hold(study.path / "study"):
        known = read_plan(study)
        planned = {run for unit in known for run in unit.runs}
        new = make_units([run for run_id, run in study.runs.items() if run_id not in planned], largest)
        if new or not path.exists():
            plan = {"schema": SCHEMA, "units": [list(unit.runs) for unit in (*known, *new)]}
            write_json(path, plan)
    return [*known, *new]


def read_plan(study: StudyFolder) -> list[Unit]:
    """The units that are written down."""
    path = study.path / PLAN_FILE
    if not path.exists():
        return []
    try:
        record = json.loads(path.read_text())
        units = [Unit(tuple(runs)) for runs in record["units"]]
        unknown = [run for unit in units for run in unit.runs if run not in study.runs]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnweaveError(f"cannot read {path}: {error!r}. Delete it to plan the study again.") from error
    if unknown:
        raise UnweaveError(
            f"{path} has {len(unknown)} runs that are not in the study. Delete it to plan the study again."
        )
    return units


def population_size(device: torch.device) -> int:
    """How many runs should train together on a device; "cuda" stands for all GPUs that are visible.

    All GPUs take units of the same study, so the one with the least memory decides.
    """
    if device.type != "cuda":
        return ON_CPU
    gpus = range(torch.cuda.device_count()) if device.index is None else [device.index]
    memory = min(torch.cuda.get_device_properties(gpu).total_memory for gpu in gpus)
    return max(1, min(LARGEST, (memory - RESERVED_BYTES) // BYTES_A_RUN))


@dataclass(frozen=True)
class Cost:
    """What is left to do, and what it takes."""

    runs: int
    units: int
    model_steps: int
    bytes: int


def open_runs(study: StudyFolder, unit: Unit) -> list[str]:
    """The runs of a unit that are not trained yet."""
    return [run for run in unit.runs if not (study.run_path(run) / RESULT_FILE).exists()]


def cost_of(study: StudyFolder, units: Iterable[Unit]) -> Cost:
    """What training all runs of some units takes that are not trained yet."""
    units = list(units)
    left = [run for unit in units for run in open_runs(study, unit)]
    steps = sum(study.runs[run].steps for run in left)
    return Cost(len(left), len(units), steps, len(left) * (WEIGHTS_BYTES + RECORDS_BYTES))
