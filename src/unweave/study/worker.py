"""A worker: claims a task, does it, says how it went, and claims the next until nothing is open."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType, TracebackType

from unweave.errors import DiskFullError, UnweaveError
from unweave.files import write_json
from unweave.layout import ERROR_FILE
from unweave.locks import process_start
from unweave.study.folder import StudyFolder
from unweave.study.ledger import Kind, Ledger, Task
from unweave.study.planner import Unit, read_plan
from unweave.study.work import Work
from unweave.training.trainer import Stopped

RENEW = 5.0  # seconds between two signs of life
ALONE = "alone-"  # begins the name of a unit that was split off a failing one
IDLE = 0.2  # seconds between two looks for a task while others work on what comes before


@dataclass(frozen=True)
class Driver:
    """The process that started a worker, which does not outlive it."""

    pid: int
    born: str

    @classmethod
    def of_this_process(cls) -> Driver:
        """The calling process."""
        return cls(os.getpid(), process_start(os.getpid()) or "")

    @property
    def is_alive(self) -> bool:
        """Whether it is still there."""
        return process_start(self.pid) == self.born


@dataclass
class Worker:
    """Does tasks of a study, of the first kind before those of the second."""

    study: StudyFolder
    ledger: Ledger
    work: Work
    kinds: Sequence[Kind] = ("evaluate", "train")
    driver: Driver | None = None
    signals: Sequence[int] = ()  # noted by the main thread, if the worker is in another one

    def __post_init__(self) -> None:
        self._read_study()

    def run(self) -> None:
        """Work until nothing is open, or until the main thread notes a signal."""
        while not self.signals:
            task = self.ledger.claim(self.kinds)
            if task is not None:
                self.do(task)
            elif self.ledger.open_tasks():
                time.sleep(IDLE)
            else:
                return

    def do(self, task: Task) -> None:
        """Do one task. What goes wrong with it is noted; only a stop and a full disk end the worker."""
        start = time.monotonic()
        if task.unit not in self.units or task.wanted not in ("", self.study.spec.measures):
            self._read_study()  # another driver has added to it
        unit = self.units.get(task.unit) or Unit((task.unit.removeprefix(ALONE),))
        try:
            with _Heartbeat(self.ledger, task, self.driver) as heartbeat:
                if task.kind == "train":
                    self.work.train(self.study, unit, heartbeat.note)
                else:
                    self.work.evaluate(self.study, task.id, heartbeat.note)
        except (Stopped, KeyboardInterrupt, DiskFullError):
            self.ledger.release(task)
            raise
        except Exception as error:
            note_failure(self.study, self.ledger, task, unit, *format_error(error))
        else:
            note_success(self.study, self.ledger, task, unit, time.monotonic() - start)

    def _read_study(self) -> None:
        self.study = StudyFolder(self.study.path)
        self.units = {unit.id: unit for unit in read_plan(self.study)}


def note_success(study: StudyFolder, ledger: Ledger, task: Task, unit: Unit, seconds: float) -> None:
    """Note that a task is done; errors of earlier attempts at it are removed."""
    for run in unit.runs if task.kind == "train" else [task.id]:
        (study.run_path(run) / ERROR_FILE).unlink(missing_ok=True)
    ledger.done(task, seconds)


def note_failure(study: StudyFolder, ledger: Ledger, task: Task, unit: Unit, text: str, trace: str) -> None:
    """Note what went wrong with a task; a unit that will not be tried again is split into its runs."""
    if not ledger.fail(task, text):
        return
    if task.kind == "train" and len(unit.runs) > 1:
        ledger.split(task, [(Task(ALONE + run, "train", ALONE + run), run) for run in unit.runs])
        return
    for run in unit.runs if task.kind == "train" else [task.id]:
        note = {"doing": task.kind, "error": text, "trace": trace}
        write_json(study.run_path(run) / ERROR_FILE, note)


def format_error(error: Exception) -> tuple[str, str]:
    """An error as one line for a user, and with its traceback."""
    text = str(error) if isinstance(error, UnweaveError) else f"{type(error).__name__}: {error}"
    return text, "".join(traceback.format_exception(error))


class _Heartbeat:
    """Renews a lease while work goes on; ends the process if its driver has died or the lease is lost."""

    def __init__(self, ledger: Ledger, task: Task, driver: Driver | None) -> None:
        self.path, self.task, self.driver = ledger.path, task, driver
        self.progress = 0.0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def note(self, done: int, total: int, _what: str = "") -> None:
        """Note how far the work is."""
        self.progress = done / total

    def __enter__(self) -> _Heartbeat:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        self.thread.join()

    def _run(self) -> None:
        ledger: Ledger | None = None
        due = time.monotonic() + RENEW
        while not self.over.wait(0.5):
            if self.driver is not None and not self.driver.is_alive:
                os.kill(os.getpid(), signal.SIGTERM)
                return
            if time.monotonic() < due:
                continue
            due = time.monotonic() + RENEW
            try:
                ledger = ledger or Ledger(self.path)  # a connection of this thread's own
                if not ledger.renew(self.task, self.progress):
                    os.kill(os.getpid(), signal.SIGTERM)
                    return
            except UnweaveError:
                continue  # a full disk is reported by the code that writes results
        if ledger is not None:
            ledger.close()


def stop_on_signals() -> None:
    """Let SIGTERM and SIGINT end the worker between two steps, with everything written."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise Stopped(f"stopped by signal {number}")

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
