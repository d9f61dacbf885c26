"""The Ray engine: the same work on the machines of a Ray cluster.

A Ray task trains the runs of a unit together and measures them. Ray finds a machine for it, and another one
when that dies. The driver alone writes the ledger, and into folders that machines do not see.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unweave.errors import UnweaveError
from unweave.study.engines.engine import Crew, EngineJob, drive
from unweave.study.engines.ray_cluster import Portion, cluster, portion_for, ray_module
from unweave.study.engines.remote import Answer, Files, Job, Outcome, do_job, files_of, receive
from unweave.study.folder import StudyFolder
from unweave.study.ledger import DEATHS, Ledger, Task
from unweave.study.planner import Unit, read_plan
from unweave.study.progress import Status, StatusCallback, status_of
from unweave.study.tasks import open_ledger
from unweave.study.work import TrainAndScore, Work
from unweave.study.worker import ALONE, RENEW, format_error, note_failure, note_success

GRACE = 60.0  # seconds that stopped tasks have to write their checkpoints


@dataclass(frozen=True)
class RayEngine:
    """Tasks of a Ray cluster.

    Without an address, Ray takes the one in $RAY_ADDRESS, a cluster that runs on this machine, or starts one.
    At most `in_flight` tasks are given to it at a time, by default twice as many as it can do at once.
    Machines that see the study's folder work in it, unless `in_place` is False; the others send back their
    files.
    """

    address: str | None = None
    portion: Portion | None = None
    in_flight: int | None = None
    in_place: bool = True

    @contextmanager
    def start(self, job: EngineJob) -> Iterator[Crew]:
        """Connect to the cluster and open the ledger."""
        if self.in_flight is not None and self.in_flight < 1:
            raise UnweaveError(f"at least one task must be on its way; got in_flight = {self.in_flight}.")
        with (
            cluster(self.address),
            contextlib.closing(open_ledger(job.study, job.units, job.ledger_path)) as ledger,
            _beacon(job.study, self.in_place) as beacon,
        ):
            yield _Driver(job, ledger, self.portion or portion_for(job.work), self.in_flight, beacon)


def run_ray(
    study: StudyFolder,
    units: Sequence[Unit],
    work: Work,
    address: str | None = None,
    tell: StatusCallback | None = None,
    *,
    portion: Portion | None = None,
    in_flight: int | None = None,
    in_place: bool = True,
    ledger_path: Path | None = None,
) -> Status:
    """Work on units on a Ray cluster until all are done or failed; the options are those of RayEngine."""
    engine = RayEngine(address, portion, in_flight, in_place)
    return drive(engine, EngineJob(study, units, work, ledger_path), tell)


class _Driver:
    """Gives tasks to Ray and notes how they went."""

    def __init__(
        self,
        job: EngineJob,
        ledger: Ledger,
        portion: Portion,
        in_flight: int | None,
        beacon: str | None,
    ) -> None:
        ray = ray_module()
        self.job, self.study, self.ledger = job, job.study, ledger
        self.portion, self.beacon = portion, beacon
        self.work, self.in_flight = _fitted(job.work, portion), in_flight
        self.flying: dict[Any, Job] = {}
        self.early: dict[tuple[str, str], Outcome] = {}  # of runs that were measured right after training
        self.function = ray.remote(_task)
        self.board = ray.remote(_Board).options(num_cpus=0, max_restarts=-1).remote()
        self.due, self.limit = 0.0, 1  # when to renew leases; how many tasks may be on their way
        self._read_study()

    def advance(self) -> bool:
        """Give Ray what it can take, and record what has come back; False when nothing is open."""
        if time.monotonic() >= self.due:
            self._renew()
        while len(self.flying) < self.limit and (task := self.ledger.claim(("evaluate", "train"))):
            self._begin(task)
        for reference in self._ended(timeout=0):
            self._settle(reference)
        return bool(self.flying) or self.ledger.open_tasks() > 0

    def wait(self, seconds: float) -> None:
        """Wait for the tasks that Ray has; without one, other drivers work on those that are open."""
        if self.flying:
            self._ended(seconds)
        else:
            time.sleep(seconds)

    def _ended(self, timeout: float) -> list[Any]:
        """The tasks that have ended, as soon as all have or the time is over."""
        if not self.flying:
            return []
        ended, _ = ray_module().wait(list(self.flying), num_returns=len(self.flying), timeout=timeout)
        return list(ended)

    def status(self) -> Status:
        """What the ledger says."""
        return status_of(self.job.study, self.job.units, self.ledger)

    def stop(self) -> str:
        """Ask all tasks to stop, wait until they have written their checkpoints, and open them again."""
        ray = ray_module()
        for reference in self.flying:
            ray.cancel(reference, force=False, recursive=False)
        for reference in self._ended(GRACE):
            with contextlib.suppress(UnweaveError):
                self._settle(reference)
        for reference, job in self.flying.items():
            ray.cancel(reference, force=True, recursive=False)
            self.ledger.release(job.task)
        return ""

    def _begin(self, task: Task) -> None:
        if task.unit not in self.units or task.wanted not in ("", self.study.spec.measures):
            self._read_study()  # another driver has added to it
        if early := self.early.pop((task.id, task.wanted), None):
            self._note(task, early)
            return
        unit = self._unit(task) if task.kind == "train" else Unit((task.id,))
        spec = replace(self.study.spec, runs=tuple(self.study.runs[run] for run in unit.runs))
        folder, threads = self.study.path.absolute(), max(1, self.portion.cpus)
        self._send(Job(task, unit, spec, folder, self.beacon, self.work, threads))

    def _send(self, job: Job) -> None:
        """Give a job to Ray; with the files of its runs only to a machine that does not see them."""
        begun = any(self.study.run_path(run).exists() for run in job.unit.runs)
        files: Files | None = {}
        if begun:
            files = None if job.beacon else files_of(self.study, job.unit)
        function = self.function.options(
            name=f"unweave {job.task.kind} {job.task.id}",
            num_cpus=self.portion.cpus,
            num_gpus=self.portion.gpus,
            max_retries=DEATHS - 1,
        )
        self.flying[function.remote(job, files, self.board)] = job

    def _settle(self, reference: Any) -> None:
        """Take what a task made and note how it went."""
        job, answer = self.flying[reference], self._answer(reference)
        receive(self.study, answer.files)
        for run, outcome in answer.outcomes.items():
            if run != job.task.id:
                self.early[run, job.spec.measures] = outcome
        if answer.needs_files:
            self._send(replace(job, beacon=None))
        elif job.task.id in answer.outcomes:
            self._note(job.task, answer.outcomes[job.task.id])
        else:
            self.ledger.release(job.task)
        del self.flying[reference]
        if answer.halt:
            raise UnweaveError(f"{answer.machine} of the Ray cluster: {answer.halt}")

    def _answer(self, reference: Any) -> Answer:
        ray = ray_module()
        try:
            answer: Answer = ray.get(reference)
        except ray.exceptions.TaskCancelledError:
            answer = Answer()
        except ray.exceptions.RayTaskError as error:  # not in the work itself
            last = str(error).strip().rpartition("\n")[2]
            answer = Answer("a machine", halt=f"{last}. Do all of them have the same unweave and Python?")
        except ray.exceptions.RayError as error:  # it died once too often
            answer = Answer(outcomes={self.flying[reference].task.id: Outcome(0.0, *format_error(error))})
        return answer

    def _note(self, task: Task, outcome: Outcome) -> None:
        unit = self._unit(task)
        if outcome.error:
            note_failure(self.study, self.ledger, task, unit, outcome.error, outcome.trace)
        else:
            note_success(self.study, self.ledger, task, unit, outcome.seconds)

    def _unit(self, task: Task) -> Unit:
        return self.units.get(task.unit) or Unit((task.unit.removeprefix(ALONE),))

    def _read_study(self) -> None:
        self.study = StudyFolder(self.study.path)
        self.units = {unit.id: unit for unit in read_plan(self.study)}

    def _renew(self) -> None:
        """Say that the work goes on; forget what another driver has taken over."""
        ray = ray_module()
        self.due = time.monotonic() + RENEW
        self.limit = self.in_flight or 2 * self.portion.slots()
        try:
            shares = ray.get(self.board.read.remote(), timeout=1.0) if self.flying else {}
        except ray.exceptions.RayError:  # not there yet, or its machine died
            shares = {}
        for reference, job in list(self.flying.items()):
            if not self.ledger.renew(job.task, shares.get(job.task.id, 0.0)):
                ray.cancel(reference, force=False, recursive=False)
                del self.flying[reference]


class _Board:
    """An actor on which tasks write how far they are."""

    def __init__(self) -> None:
        self.shares: dict[str, float] = {}

    def write(self, task_id: str, share: float) -> None:
        """Note how far a task is."""
        self.shares[task_id] = share

    def read(self) -> dict[str, float]:
        """How far all tasks are."""
        return self.shares


def _task(job: Job, files: Files | None, board: Any) -> Answer:
    def progress(done: int, total: int, _what: str = "") -> None:
        board.write.remote(job.task.id, done / total)

    return do_job(job, files, progress)


def _fitted(work: Work, portion: Portion) -> Work:
    """The work on a portion of a machine: Ray says which GPU it is; who trains also measures."""
    if not isinstance(work, TrainAndScore):
        return work
    device = "cuda" if portion.gpus else "cpu"
    return replace(work, device=device, hand_over=False, jobs=max(1, portion.cpus))


@contextmanager
def _beacon(study: StudyFolder, in_place: bool) -> Iterator[str | None]:
    """A file by which machines check that they see the study's folder; None if they must not use it."""
    if not in_place:
        yield None
        return
    with tempfile.NamedTemporaryFile(prefix=".driver-", dir=study.path) as file:
        yield Path(file.name).name
