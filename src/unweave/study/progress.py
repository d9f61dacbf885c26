"""How far a study is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from unweave.layout import ERROR_FILE, RESULT_FILE, SCORES_FILE
from unweave.study.folder import StudyFolder
from unweave.study.ledger import Ledger
from unweave.study.planner import Unit


@dataclass(frozen=True)
class Status:
    """Runs, and training steps of all runs together."""

    runs: int
    trained: int
    measured: int
    failed: int
    running: int  # units and runs that are being worked on
    steps: int
    steps_done: float

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.measured + self.failed >= self.runs

    def __str__(self) -> str:
        parts = [
            f"{self.measured:,} of {self.runs:,} runs done",
            f"{self.trained:,} trained",
            f"{tasks(self.running)} running",
        ]
        if self.failed:
            parts.append(f"{self.failed:,} failed")
        return ", ".join(parts)


def tasks(number: int) -> str:
    """A number of tasks in words."""
    return f"{number:,} task" if number == 1 else f"{number:,} tasks"


StatusCallback: TypeAlias = Callable[[Status], None]


def status_of(study: StudyFolder, units: Sequence[Unit], ledger: Ledger) -> Status:
    """What the ledger says."""
    states, running = ledger.states(), ledger.running()
    counts = {"trained": 0, "measured": 0, "failed": 0}
    steps, steps_done = 0, 0.0
    for unit in units:
        share = running.get(unit.id, 0.0)
        for run in unit.runs:
            state = states.get(run, "waiting")
            trained = state in ("ready", "running", "done") or states.get(unit.id) == "done"
            counts["trained"] += trained
            counts["measured"] += state == "done"
            counts["failed"] += state == "failed"
            length = study.runs[run].steps
            steps += length
            steps_done += length * (1.0 if trained else share)
    runs = sum(len(unit.runs) for unit in units)
    return Status(
        runs, counts["trained"], counts["measured"], counts["failed"], len(running), steps, steps_done
    )


def status_of_folders(study: StudyFolder) -> Status:
    """What the folders of the runs say, where there is no ledger."""
    counts = {"trained": 0, "measured": 0, "failed": 0}
    steps, steps_done = 0, 0
    for run_id, run in study.runs.items():
        path = study.run_path(run_id)
        trained = (path / RESULT_FILE).exists()
        measured = trained and (path / SCORES_FILE).exists()
        counts["trained"] += trained
        counts["measured"] += measured
        counts["failed"] += not measured and (path / ERROR_FILE).exists()
        steps += run.steps
        steps_done += run.steps * trained
    return Status(
        len(study.runs), counts["trained"], counts["measured"], counts["failed"], 0, steps, float(steps_done)
    )
