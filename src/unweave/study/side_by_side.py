"""Several populations that train at the same time in one process: threads that share a GPU.

A small population leaves most of a GPU idle. CUDA graphs of different streams run at the same time, so each
thread trains on a stream of its own. This changes no number: units stay as planned, and each run has its own
random streams.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from threading import Condition, Thread

import torch

from unweave.progress import Progress
from unweave.study.folder import StudyFolder
from unweave.study.ledger import Ledger
from unweave.study.planner import Unit
from unweave.study.work import Work
from unweave.study.worker import Worker
from unweave.training.trainer import SIGNALS, Stopped

LOOK = 0.2  # seconds between two looks for a signal


@dataclass
class Room:
    """How many runs may train at the same time. A larger population trains alone."""

    runs: int
    _taken: int = 0
    _changed: Condition = field(default_factory=Condition)

    @contextmanager
    def taken(self, runs: int, signals: Sequence[int]) -> Iterator[None]:
        """Wait until there is room for so many runs, and take it; `Stopped` if a signal comes first."""
        with self._changed:
            while self._taken and self._taken + runs > self.runs:
                self._changed.wait(LOOK)
                if signals:
                    raise Stopped(f"stopped by signal {signals[0]}")
            self._taken += runs
        try:
            yield
        finally:
            with self._changed:
                self._taken -= runs
                self._changed.notify_all()


@dataclass(frozen=True)
class _WorkInRoom:
    """Work of one of the threads: a population trains when there is room for it."""

    work: Work
    room: Room
    signals: Sequence[int]

    def train(self, study: StudyFolder, unit: Unit, progress: Progress) -> None:
        """Train a unit."""
        with self.room.taken(len(unit.runs), self.signals), _own_stream():
            self.work.train(study, unit, progress)

    def evaluate(self, study: StudyFolder, run_id: str, progress: Progress) -> None:
        """Measure a run."""
        self.work.evaluate(study, run_id, progress)


def work_side_by_side(worker: Worker, threads: int, runs: int) -> None:
    """Let threads do the tasks of a worker until nothing is open; at most so many runs train at a time.

    A signal or a full disk stops all threads, which write their checkpoints first.
    """
    signals: list[int] = []
    failures: list[Exception] = []
    room = Room(runs)

    def work() -> None:
        SIGNALS.set(signals)
        try:
            with closing(Ledger(worker.ledger.path)) as ledger:
                replace(
                    worker, ledger=ledger, work=_WorkInRoom(worker.work, room, signals), signals=signals
                ).run()
        except Stopped:
            pass
        except Exception as error:  # the main thread raises it when the others have stopped
            failures.append(error)
            signals.append(signal.SIGTERM)

    running = [Thread(target=work, daemon=True) for _ in range(threads)]
    for thread in running:
        thread.start()
    try:
        _wait_for(running)
    except KeyboardInterrupt:  # `Stopped` is one
        signals.append(signal.SIGTERM)
        _wait_for(running)
        raise
    if failures:
        raise failures[0]


def _wait_for(threads: Sequence[Thread]) -> None:
    """Wait in short parts: signals are handled between them."""
    for thread in threads:
        while thread.is_alive():
            thread.join(LOOK)


def _own_stream() -> AbstractContextManager[object]:
    """A CUDA stream for this thread. All threads have the same default stream, on which nothing overlaps."""
    return torch.cuda.stream(torch.cuda.Stream()) if torch.cuda.is_available() else nullcontext()
