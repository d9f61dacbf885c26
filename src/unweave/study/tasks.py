"""The tasks of a study: which units and runs are done, and a ledger of the open ones."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from unweave.errors import UnweaveError
from unweave.evaluation.evaluate import Effort
from unweave.evaluation.generalisation_store import kept_generalisation
from unweave.evaluation.parts import parts_to_measure
from unweave.evaluation.score_store import all_kept
from unweave.layout import ERROR_FILE, LEDGER_FILE, RESULT_FILE, SCORES_FILE
from unweave.runs.store import RunFolder
from unweave.study.folder import StudyFolder
from unweave.study.ledger import Ledger, Task
from unweave.study.planner import Unit
from unweave.study.spec import StudySpec


def open_ledger(study: StudyFolder, units: Sequence[Unit], path: Path | None = None) -> Ledger:
    """The ledger of some units of a study; units and runs without a task get one."""
    ledger = Ledger(path or study.path / LEDGER_FILE)
    known, tasks = ledger.states(), []
    for unit in units:
        trained = {run: (study.run_path(run) / RESULT_FILE).exists() for run in unit.runs}
        tasks.append((Task(unit.id, "train", unit.id), "done" if all(trained.values()) else "ready"))
        for run in unit.runs:
            measured = (study.run_path(run) / SCORES_FILE).exists()
            if measured and run not in known:  # a new ledger does not know which scores are in the file
                measured = is_measured(study, run)
            state = ("done" if measured else "ready") if trained[run] else "waiting"
            tasks.append((Task(run, "evaluate", unit.id, study.spec.measures), state))
    ledger.add(tasks)
    return ledger


@contextmanager
def shard_ledger() -> Iterator[Path]:
    """A temporary path for the ledger of a shard, which is made from the run folders each time."""
    with tempfile.TemporaryDirectory(prefix="unweave-") as folder:
        yield Path(folder) / LEDGER_FILE


def is_measured(study: StudyFolder, run: str) -> bool:
    """Whether a run has all scores of the study."""
    try:
        return has_all_scores(study.spec, study.run_folder(run), study.runs[run].data)
    except UnweaveError:
        return False  # the worker that evaluates the run reports the error


def has_all_scores(spec: StudySpec, folder: RunFolder, data: str) -> bool:
    """Whether the folder of a run on that data has all scores of a study, on all parts of the data."""
    effort, parts = Effort(spec.points, seed=spec.seed), parts_to_measure(data, spec.on)
    if not all(all_kept(folder, spec.metrics, spec.representations, effort, on) for on in parts):
        return False
    return "held_out" not in parts or kept_generalisation(folder, (spec.points, spec.seed)) is not None


def is_done(study: StudyFolder, run: str) -> bool:
    """Whether nothing is left to do for a run: it is trained, and measured unless it diverged."""
    path = study.run_path(run)
    if not (path / RESULT_FILE).exists():
        return False
    if (path / SCORES_FILE).exists():
        return is_measured(study, run)
    try:
        result = study.run_folder(run).result or {}
    except UnweaveError:
        return False
    return result.get("outcome") == "diverged"


def has_failed(study: StudyFolder, run: str) -> bool:
    """Whether the last attempt at a run has left an error and the run is not done."""
    return (study.run_path(run) / ERROR_FILE).exists() and not is_done(study, run)
