"""What is explored: one run, or the runs of a study; and which of them are in memory.

torch is imported when the first run is opened: a study alone is a table, and needs none of it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from unweave.errors import UnweaveError
from unweave.layout import RESULT_FILE, RESULTS_FILE, SCORES_FILE, SPEC_FILE, STUDY_FILE, WEIGHTS_FILE

if TYPE_CHECKING:
    from unweave.explore.run_view import RunView

MOST_OPEN_RUNS = 4  # runs in memory at once
FILES = (SPEC_FILE, RESULT_FILE, WEIGHTS_FILE, SCORES_FILE)  # of a run, as far as it is shown


@dataclass(frozen=True)
class Subject:
    """A run's folder, or a study's folder or table, and a cache of the runs that were opened last.

    Only runs of this folder can be opened, by their ids.
    """

    path: Path
    kind: Literal["run", "study"]
    device: str = "cpu"
    data_root: Path | None = None
    data: str | None = None  # where the runs' own data lies now, if it has moved
    _views: OrderedDict[str, RunView] = field(default_factory=OrderedDict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def describe(self) -> dict[str, str | None]:
        """What the page needs to know first: the kind of subject, its name, and the run's id if it is one."""
        only = next(iter(self._folders)) if self.kind == "run" else None
        return {"kind": self.kind, "name": self.path.name, "run": only}

    def run_path(self, run_id: str) -> Path:
        """The folder of a run, if it is one of those that are explored."""
        path = self._folders.get(run_id)
        if path is None:
            raise UnweaveError(f'there is no run "{run_id[:40]}" in {self.path.name}.')
        for name in FILES:
            if not (path / name).resolve().is_relative_to(self.path):
                raise UnweaveError(f"{path.name}/{name} leads out of {self.path}, and is not opened.")
        return path

    def view(self, run_id: str) -> RunView:
        """A run in memory; opened if necessary, and then the least recently used one is dropped."""
        from unweave.explore.run_view import open_run

        path = self.run_path(run_id)
        with self._lock:  # one at a time: two visitors who ask for the same run open it once
            if run_id not in self._views:
                self._views[run_id] = open_run(path, self.device, self.data_root, self.data)
                while len(self._views) > MOST_OPEN_RUNS:
                    self._views.popitem(last=False)
            self._views.move_to_end(run_id)
            return self._views[run_id]

    @property
    def _folders(self) -> dict[str, Path]:
        """The folders of the runs by their ids; a table alone has none."""
        if not self.path.is_dir():
            return {}
        record = self.path / (SPEC_FILE if self.kind == "run" else STUDY_FILE)
        return _folders_in(self.path, self.kind, record.stat().st_mtime_ns if record.exists() else 0)


@lru_cache(maxsize=2)
def _folders_in(path: Path, kind: str, _changed: int) -> dict[str, Path]:
    """The folders as they were at a time: a study to which runs were added is read again."""
    if kind == "run":
        from unweave.runs.store import RunFolder

        return {RunFolder(path).spec.id: path}
    from unweave.study.folder import StudyFolder

    study = StudyFolder(path)
    return {run_id: study.run_path(run_id) for run_id in study.runs}


def subject_at(
    path: Path, device: str = "cpu", data_root: Path | None = None, data: str | None = None
) -> Subject:
    """The run or study at a path."""
    folder = path.expanduser().resolve()
    if folder.is_file() or (folder / STUDY_FILE).exists():
        return Subject(folder, "study", device, data_root, data)
    if (folder / SPEC_FILE).exists():
        return Subject(folder, "run", device, data_root, data)
    raise UnweaveError(
        f"{path} is neither the folder of a run (it has no {SPEC_FILE}) nor of a study (it has no "
        f"{STUDY_FILE}). Give one of them, or a study's table {RESULTS_FILE}."
    )
