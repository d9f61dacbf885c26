"""Which runs there are to choose from: the finished ones of a study, or of a folder of runs."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import pandas as pd

from unweave.errors import UnweaveError, did_you_mean
from unweave.evaluation.score_store import kept_scores
from unweave.evaluation.scores import Scores
from unweave.layout import RESULT_FILE, SPEC_FILE, STUDY_FILE, WEIGHTS_FILE
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.study.folder import StudyFolder
from unweave.study.table import Row, results_table, score_rows

Result = TypeVar("Result")


@dataclass(frozen=True)
class Candidate:
    """A finished run."""

    folder: RunFolder
    spec: RunSpec

    @cached_property
    def id(self) -> str:
        """The id of the run."""
        return self.spec.id

    @property
    def setting(self) -> RunSpec:
        """Everything about the run but its seed."""
        return dataclasses.replace(self.spec, seed=0)

    def attempt(self, action: Callable[[], Result], notes: list[str]) -> Result | None:
        """What the action returns; if it fails, None and a note that the run is left out."""
        try:
            return action()
        except UnweaveError as error:
            notes.append(f"Left out {self.folder.path}: {error}")
            return None


@dataclass(frozen=True)
class Candidates:
    """Finished runs of one data set, and sentences on those that are left out.

    `effort` is what their supervised scores were measured with: points to train and to test on, and seed.
    """

    path: Path
    runs: tuple[Candidate, ...]
    effort: tuple[tuple[int, int], int | None] | None = None
    notes: tuple[str, ...] = ()

    def scores(self) -> pd.DataFrame:
        """The scores that are kept in the runs' folders, as a table of results; it may be empty."""
        stored = {run.id: kept_scores(run.folder) for run in self.runs}
        effort = self.effort or _most_common_effort(stored.values())
        return self.table({run: score_rows(records, effort) for run, records in stored.items()})

    def table(self, rows: Mapping[str, Sequence[Row]]) -> pd.DataFrame:
        """Scores of runs, by the ids of the runs, as a table of results."""
        return results_table({run.id: run.spec for run in self.runs}, rows)


def candidates_in(path: str | Path, data: str | None = None) -> Candidates:
    """The finished runs of a study or of a folder of runs; those on `data`, where there are several sets."""
    path = Path(path).expanduser()
    if (path / STUDY_FILE).exists():
        study = StudyFolder(path)
        runs, left_out = _finished([study.run_folder(run) for run in study.runs], tuple(study.runs.values()))
        return _of_one_data_set(Candidates(path, runs, (study.spec.points, study.spec.seed), left_out), data)
    if not path.is_dir():
        raise UnweaveError(f"there is no folder {path}. Name the folder of a study, or a folder of runs.")
    folders = [RunFolder(spec.parent) for spec in sorted(path.glob(f"*/{SPEC_FILE}"))]
    if not folders:
        raise UnweaveError(
            f"{path} is not the folder of a study (it has no {STUDY_FILE}), and there is no run in it."
        )
    runs, left_out = _finished(folders)
    return _of_one_data_set(Candidates(path, runs, None, left_out), data)


def _finished(
    folders: Sequence[RunFolder], specs: Sequence[RunSpec] = ()
) -> tuple[tuple[Candidate, ...], tuple[str, ...]]:
    """Those that can be used, each once, and why the others cannot; specs are read unless they are given."""
    finished: dict[str, Candidate] = {}
    lacks: Counter[str] = Counter()
    broken: list[str] = []
    for i, folder in enumerate(folders):
        try:
            reason = _reason_left_out(folder)
            run = Candidate(folder, specs[i] if specs else folder.spec)
        except UnweaveError as error:
            broken.append(f"Left out {folder.path}: {error}")
            continue
        if reason:
            lacks[reason] += 1
        else:
            finished.setdefault(run.id, run)
    notes = [f"Left out, {why}: {count:,} of {len(folders):,} runs." for why, count in lacks.items()]
    return tuple(finished.values()), (*notes, *broken)


def _reason_left_out(folder: RunFolder) -> str:
    if not (folder.path / RESULT_FILE).exists():
        return "not finished"
    result = folder.result
    if result is None:
        return f"without trained weights ({WEIGHTS_FILE})"
    return "" if result["outcome"] == "finished" else str(result["outcome"])


def _of_one_data_set(candidates: Candidates, data: str | None) -> Candidates:
    if not candidates.runs:
        raise UnweaveError(
            f"no run in {candidates.path} can be chosen: {' '.join(candidates.notes)} Train them first, with "
            f"unweave study run {candidates.path} if it is a study."
        )
    names = list(dict.fromkeys(run.spec.data for run in candidates.runs))
    if data is not None and data not in names:
        raise UnweaveError(f'{candidates.path} has no finished run on "{data}". {did_you_mean(data, names)}')
    if data is None and len(names) > 1:
        raise UnweaveError(
            f"runs are compared by their codes of the same images, and those in {candidates.path} were "
            f"trained on {len(names)} data sets, {', '.join(names)}. Choose one: --data {names[0]}."
        )
    runs = tuple(run for run in candidates.runs if run.spec.data == (data or names[0]))
    usable, notes = _of_one_origin(runs)
    return dataclasses.replace(candidates, runs=usable, notes=(*candidates.notes, *notes))


def _of_one_origin(runs: Sequence[Candidate]) -> tuple[tuple[Candidate, ...], list[str]]:
    """The runs that were trained on the same data as most, and a note on each of the others.

    A name does not make two data sets the same. Where no data set has most of the runs, there is an error.
    """
    origins = [_data_origin(run) for run in runs]
    [(usual, count), *others] = Counter(origins).most_common(2)
    if others and 2 * count <= len(runs):
        first, second = origins.index(usual), origins.index(others[0][0])
        raise UnweaveError(
            f'two runs were trained on different data of the name "{runs[0].spec.data}": '
            f"{runs[first].folder.path} on {', '.join(usual)}, {runs[second].folder.path} on "
            f"{', '.join(others[0][0])}. Keep them in two folders."
        )
    notes = [
        f'Left out {run.folder.path}: it was trained on other data of the name "{run.spec.data}" than most.'
        for run, origin in zip(runs, origins, strict=True)
        if origin != usual
    ]
    return tuple(run for run, origin in zip(runs, origins, strict=True) if origin == usual), notes


def _data_origin(run: Candidate) -> tuple[str, ...]:
    origin = run.folder.origin
    return tuple(str(origin.get(name)) for name in ("data_source", "data_drawn", "image_shape"))


def _most_common_effort(stored: Iterable[Sequence[Scores]]) -> tuple[tuple[int, int], int | None] | None:
    efforts = Counter((record.asked, record.seed) for records in stored for record in records)
    return max(efforts, key=efforts.__getitem__, default=None)
