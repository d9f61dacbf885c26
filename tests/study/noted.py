"""Work that notes on which machine of a cluster it is done, and takes its time on one of them."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from unweave.progress import Progress
from unweave.study import StudyFolder
from unweave.study.planner import Unit
from unweave.study.work import Work


class Line(NamedTuple):
    """What was done with which unit, by whom."""

    what: str
    unit: str
    machine: str
    pid: int


@dataclass(frozen=True)
class Noted:
    """Other work, with a line in a diary before and after each training; on one machine with a rest in it."""

    work: Work
    diary: Path
    slow: str = ""
    seconds: float = 0.0

    def train(self, study: StudyFolder, unit: Unit, progress: Progress) -> None:
        """Train, rest when the second line of the log is written, and say so."""
        reports = 0

        def rest(done: int, total: int, _what: str = "") -> None:
            nonlocal reports
            progress(done, total)
            reports += 1
            if reports == 2 and _machine() == self.slow:
                self._note("rests", unit)
                time.sleep(self.seconds)

        self._note("begins", unit)
        self.work.train(study, unit, rest)
        self._note("ends", unit)

    def evaluate(self, study: StudyFolder, run_id: str, progress: Progress) -> None:
        """Measure."""
        self.work.evaluate(study, run_id, progress)

    def _note(self, what: str, unit: Unit) -> None:
        with self.diary.open("a") as file:
            file.write(f"{what} {unit.id} {_machine()} {os.getpid()}\n")


def _machine() -> str:
    import ray

    return str(ray.util.get_node_ip_address())


def lines_of(diary: Path) -> list[Line]:
    """All lines of a diary."""
    lines = [line.split() for line in diary.read_text().splitlines()] if diary.exists() else []
    return [Line(what, unit, machine, int(pid)) for what, unit, machine, pid in lines]
