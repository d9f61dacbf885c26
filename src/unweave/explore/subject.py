"""What is explored: one run, the runs of a study or of a folder; and which of them are in memory.

torch is imported when the first run is opened: a study alone is a table, and needs none of it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from unweave.errors import UnweaveError
from unweave.explore.live.folders import runs_by_id
from unweave.explore.live.watch import LiveFolder, is_training
from unweave.explore.opening import Opening
from unweave.layout import RESULT_FILE, RESULTS_FILE, SCORES_FILE, SPEC_FILE, STUDY_FILE, WEIGHTS_FILE
from unweave.progress import Progress
from unweave.zoo import run_path

if TYPE_CHECKING:
    from unweave.explore.run_view import RunView

MOST_OPEN_RUNS = 8  # runs in memory at once: as many as can be compared
FILES = (SPEC_FILE, RESULT_FILE, WEIGHTS_FILE, SCORES_FILE)  # of a run, as far as it is shown


class ModelInMemory(NamedTuple):
    """A model that lies in no run folder: its id in addresses, and how it is opened."""

    id: str
    open: Callable[[Progress], RunView]


class TableInMemory(NamedTuple):
    """A table of results that lies in no file of ours: the JSON of the study page."""

    records: bytes


@dataclass(frozen=True)
class Subject:
    """A run's folder, or a study's folder or table, and a cache of the runs that were opened last.

    Only runs of this folder can be opened, by their ids. A model or table in memory has no folder; the path
    is then its name only.
    """

    path: Path
    kind: str  # one of KINDS
    device: str = "cpu"
    data_root: Path | None = None
    data: str | None = None  # where the runs' own data lies now, if it has moved
    in_memory: ModelInMemory | TableInMemory | None = None
    compared: tuple[Path, ...] = ()  # the folders of runs that are compared; the path is then a name only
    models: tuple[ModelInMemory, ...] = ()  # the models that are compared, if they are not all runs
    before: str | None = None  # the name of the subject onto whose page this one was dropped
    opening: Opening = field(default_factory=Opening, repr=False)
    _views: OrderedDict[str, RunView] = field(default_factory=OrderedDict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def describe(self) -> dict[str, Any]:
        """What the page needs to know first.

        kind; name; run: its id, if it is one; runs: the ids of those that are compared; before: the name of
        the subject onto whose page it was dropped; logs: whether there are runs whose training can be
        watched; live: whether that is shown first, because they are not finished.
        """
        if isinstance(self.in_memory, ModelInMemory):
            only: str | None = self.in_memory.id
        else:
            only = next(iter(self._folders)) if self.kind == "run" else None
        return {
            "kind": self.kind,
            "name": self.path.name,
            "run": only,
            "runs": self._compared_ids,
            "before": self.before,
            "logs": self.has_logs,
            "live": self.has_logs and KINDS[self.kind].is_live(self.path),
        }

    @property
    def has_logs(self) -> bool:
        """Whether it is a folder whose runs can be watched while they train."""
        is_folder = self.in_memory is None and not self.compared and not self.models
        return is_folder and not self.path.is_file()

    @cached_property
    def live(self) -> LiveFolder:
        """The runs of the folder while they train."""
        return LiveFolder(self.path)

    def run_path(self, run_id: str) -> Path:
        """The folder of a run, if it is one of those that are explored."""
        path = self._folders.get(run_id)
        if path is None:
            raise UnweaveError(f'there is no run "{run_id[:40]}" in {self.path.name}.')
        root = path if self.compared else self.path
        for name in FILES:
            if not (path / name).resolve().is_relative_to(root):
                raise UnweaveError(f"{path.name}/{name} leads out of {root}, and is not opened.")
        return path

    def view(self, run_id: str) -> RunView:
        """A run in memory; opened if necessary, and then the least recently used one is dropped."""
        with self._lock:  # one at a time: two visitors who ask for the same run open it once
            if run_id not in self._views:
                self._views[run_id] = self._open(run_id)
                while len(self._views) > MOST_OPEN_RUNS:
                    self._views.popitem(last=False)
            self._views.move_to_end(run_id)
            return self._views[run_id]

    def _open(self, run_id: str) -> RunView:
        alone: tuple[ModelInMemory, ...] = (
            (self.in_memory,) if isinstance(self.in_memory, ModelInMemory) else ()
        )
        for model in (*alone, *self.models):
            if model.id == run_id:
                return model.open(self.opening)
        path = self.run_path(run_id)
        self.opening(0, 0, "Importing PyTorch")
        from unweave.explore.run_view import open_run

        return open_run(path, self.device, self.data_root, self.data, self.opening)

    @property
    def _compared_ids(self) -> list[str] | None:
        """The ids of what is compared; None if nothing is."""
        if self.models:
            return [model.id for model in self.models]
        return list(self._folders) if self.compared else None

    @property
    def _folders(self) -> Mapping[str, Path]:
        """The folders of the runs by their ids; a table alone has none."""
        if self.compared:
            return _compared_folders(self.compared)
        if self.in_memory is not None or self.models or not self.path.is_dir():
            return {}
        record = self.path / KINDS[self.kind].record
        if record == self.path:
            return KINDS[self.kind].folders(self.path)
        return _folders_in(self.path, self.kind, record.stat().st_mtime_ns if record.exists() else 0)


class Kind(NamedTuple):
    """A kind of subject, of which the page has a view of the same name."""

    fits: Callable[[Path], bool]  # whether a file or folder is of this kind
    folders: Callable[[Path], Mapping[str, Path]]  # the folders of its runs by their ids
    record: str  # the file that changes when runs are added; empty: there is none
    is_live: Callable[[Path], bool]  # whether its runs are not finished


def _folder_of_run(path: Path) -> Mapping[str, Path]:
    from unweave.runs.store import RunFolder

    return {RunFolder(path).spec.id: path}


@lru_cache(maxsize=2)
def _compared_folders(paths: tuple[Path, ...]) -> Mapping[str, Path]:
    return {run_id: folder for path in paths for run_id, folder in _folder_of_run(path).items()}


def _folders_of_study(path: Path) -> Mapping[str, Path]:
    from unweave.study.folder import StudyFolder

    study = StudyFolder(path)
    return {run_id: study.run_path(run_id) for run_id in study.runs}


def _has_runs(path: Path) -> bool:
    return path.is_dir() and any((folder / SPEC_FILE).exists() for folder in path.iterdir())


# The first kind that fits is chosen.
KINDS: Mapping[str, Kind] = {
    "study": Kind(
        lambda path: path.is_file() or (path / STUDY_FILE).exists(),
        _folders_of_study,
        STUDY_FILE,
        lambda path: not (path / RESULTS_FILE).exists() or is_training(path),
    ),
    "run": Kind(
        lambda path: (path / SPEC_FILE).exists(),
        _folder_of_run,
        SPEC_FILE,
        lambda path: not (path / RESULT_FILE).exists(),
    ),
    "live": Kind(_has_runs, runs_by_id, "", lambda _path: True),
}


@lru_cache(maxsize=2)
def _folders_in(path: Path, kind: str, _changed: int) -> Mapping[str, Path]:
    """The folders as they were at a time: a study to which runs were added is read again."""
    return KINDS[kind].folders(path)


def subject_at(
    path: Path,
    device: str = "cpu",
    data_root: Path | None = None,
    data: str | None = None,
    *,
    wait: bool = False,
) -> Subject:
    """The run, study or folder of runs at a path; with `wait`, it may appear there later."""
    folder = run_path(path).resolve()
    for name, kind in KINDS.items():
        if kind.fits(folder):
            return Subject(folder, name, device, data_root, data)
    if wait and not folder.is_file():
        return Subject(folder, "live", device, data_root, data)
    if not folder.exists():
        raise UnweaveError(
            f"there is no {path}. Give the folder of a run or a study, or a table {RESULTS_FILE}."
        )
    raise UnweaveError(
        f"{path} is neither the folder of a run (it has no {SPEC_FILE}) nor of a study (it has no "
        f"{STUDY_FILE}), and has no folders of runs. Give one of them, or a study's table {RESULTS_FILE}."
    )
