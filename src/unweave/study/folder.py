"""The folder of a study.

study.json      what the study is
plan.json       which runs train together; made once: another population may change the last digits
runs/           the folders of the runs, which are the truth about what is done
ledger.sqlite   who does what now, attempts, errors, timings: can be rebuilt from the runs
results.parquet the table of all scores, written by `collect`
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from unweave.data.catalogue import CATALOGUE, entry_of, has_condition, load_any
from unweave.data.conditions.naming import split_name
from unweave.data.opening import Data, open_reference
from unweave.data.own.reference import Reference
from unweave.errors import MissingFileError, UnweaveError, did_you_mean
from unweave.files import write_json
from unweave.layout import RESULTS_FILE, STUDY_FILE
from unweave.locks import hold
from unweave.places import data_root
from unweave.runs.run import folder_name
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.study.spec import StudySpec

NEW_PLACE = "Name its new place where you named the old one, and run that command again."


@dataclass(frozen=True)
class StudyFolder:
    """The folder of one study; runs are in `runs/`, or next to study.json in a folder of sweeps."""

    path: Path

    @classmethod
    def create(cls, path: str | Path, spec: StudySpec, runs_in: str = "runs") -> StudyFolder:
        """Make the folder of a study, or add what is new to the one that is there."""
        folder = cls(Path(path).expanduser())
        if folder.path.exists() and not folder.path.is_dir():
            raise UnweaveError(f"{folder.path} is a file. Name a folder for the study.")
        folder.path.mkdir(parents=True, exist_ok=True)
        with hold(folder.path / "study"):
            wanted, runs = spec, runs_in
            if (folder.path / STUDY_FILE).exists():
                wanted, runs = folder.spec.merged(spec), folder._record["runs_in"]
            if not (folder.path / STUDY_FILE).exists() or wanted != folder.spec:
                write_json(folder.path / STUDY_FILE, wanted.to_dict() | {"runs_in": runs})
        return cls(folder.path)

    @cached_property
    def spec(self) -> StudySpec:
        """What the study is."""
        plain = {name: value for name, value in self._record.items() if name != "runs_in"}
        try:
            return StudySpec.from_dict(plain)
        except (UnweaveError, TypeError) as error:
            raise UnweaveError(f"cannot use the study in {self.path}: {error}") from error

    @cached_property
    def runs(self) -> dict[str, RunSpec]:
        """The specs of all runs, by their ids."""
        return {run.id: run for run in self.spec.runs}

    @property
    def table(self) -> Path:
        """Where the table of results is."""
        return self.path / RESULTS_FILE

    def run_path(self, run_id: str) -> Path:
        """The folder of a run."""
        return self.path / str(self._record["runs_in"]) / folder_name(self.runs[run_id])

    def run_folder(self, run_id: str) -> RunFolder:
        """The folder of a run, with all that can be done with it."""
        return RunFolder(self.run_path(run_id))

    @cached_property
    def _record(self) -> Mapping[str, Any]:
        path = self.path / STUDY_FILE
        try:
            record = json.loads(path.read_text())
        except FileNotFoundError:
            raise UnweaveError(f"{self.path} is not the folder of a study: it has no {STUDY_FILE}.") from None
        except (OSError, ValueError) as error:
            raise UnweaveError(f"cannot read {path}: {error}.") from error
        if not isinstance(record, dict) or "runs_in" not in record:
            raise UnweaveError(f"{path} is not of a study. Choose another folder.")
        return record


def open_named(name: str, reference: Reference | None, root: Path | None) -> Data:
    """Open a data set of a study: a user's data by its path, another one by its name."""
    if reference is None:
        return load_any(name, root)
    try:
        return open_reference(reference, root=root)
    except MissingFileError as error:
        raise MissingFileError(f"{error} {NEW_PLACE}") from error


def check_data(spec: StudySpec, root: Path | None) -> None:
    """Check that all data sets of a study are known, and that their files are present."""
    for name in missing_data(spec, root):
        raise MissingFileError(
            f"{name} needs files that are not in {data_root(root)}. Get them with: unweave data fetch "
            f"{split_name(name)[0]}; or name their folder with --data-root."
        )


def missing_data(spec: StudySpec, root: Path | None) -> list[str]:
    """The data sets of the catalogue in a study whose files are missing; a user's data must be present."""
    entries = {entry.name: entry for entry in CATALOGUE}
    names = list(dict.fromkeys(run.data for run in spec.runs))
    own = [reference.name for reference in spec.references]
    for name in names:
        if name in own:
            open_named(name, spec.reference(name), root)
        elif has_condition(name):
            entries[name] = entry_of(name)
        elif name not in entries:
            raise UnweaveError(f'there is no data set "{name}". {did_you_mean(name, entries)}')
    return [name for name in names if name not in own and not entries[name].is_here(data_root(root))]
