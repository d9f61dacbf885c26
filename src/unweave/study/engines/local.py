"""The local engine: worker processes of this machine, started again when they die."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import torch

from unweave.cpu_settings import wait_asleep
from unweave.errors import DiskFullError, UnweaveError
from unweave.layout import WORKERS_LOG_FILE
from unweave.study.engines.engine import Crew, EngineJob, drive
from unweave.study.folder import StudyFolder
from unweave.study.ledger import Kind, Ledger
from unweave.study.planner import Unit, population_size
from unweave.study.progress import Status, StatusCallback, status_of
from unweave.study.side_by_side import work_side_by_side
from unweave.study.tasks import open_ledger
from unweave.study.work import TrainAndScore, Work
from unweave.study.worker import Driver, Worker, stop_on_signals
from unweave.training.trainer import Stopped, pick_device

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext  # Windows does not have the former

FULL = 3  # exit status of a worker that found the disk full
STOPPED = 0  # a worker that was asked to stop has done what was asked
HELD_BACK = {signal.SIGINT}
MAX_IDLE_DEATHS = 20  # deaths of workers in a row without any task done: then something else is wrong


@dataclass(frozen=True)
class Post:
    """What one worker process does, with how many threads, and on which GPU."""

    kinds: tuple[Kind, ...]
    work: Work
    threads: int
    gpu: str | None = None  # the only GPU that the process sees, as CUDA_VISIBLE_DEVICES names it
    side_by_side: int = 1  # populations that the process trains at the same time


def posts_for(work: Work, workers: int | None = None, side_by_side: int = 1) -> list[Post]:
    """How many workers of which kind this machine takes.

    Each GPU has one that trains and encodes, and the cores measure meanwhile; without a GPU all do both.
    Only a GPU has room for several populations `side_by_side`.
    """
    available = cores()
    if isinstance(work, TrainAndScore) and (gpus := gpus_for(work.device)):
        on_gpu = replace(work, device="cuda", hand_over=True)
        trains = [Post(("train",), on_gpu, 2, gpu, side_by_side) for gpu in gpus]
        measures = workers if workers is not None else max(1, available - len(trains))
        shares = [gpus[number % len(gpus)] for number in range(measures)]
        return trains + [Post(("evaluate",), on_gpu, 1, gpu) for gpu in shares]
    if side_by_side > 1:
        raise UnweaveError(
            f"only a GPU trains populations side by side; got side_by_side={side_by_side} for a CPU. Leave "
            "it out, or use more workers."
        )
    number = workers if workers is not None else max(1, available // 2)
    threads = max(1, available // number)
    if isinstance(work, TrainAndScore):
        work = replace(work, jobs=threads)
    return [Post(("evaluate", "train"), work, threads)] * number


def gpus_for(device: str) -> list[str]:
    """The GPUs that the device of a study stands for, as CUDA_VISIBLE_DEVICES names them; none for a CPU.

    "cuda" stands for all GPUs that this process sees, "cuda:1" for the second of these.
    """
    chosen = pick_device(device)
    if chosen.type != "cuda":
        return []
    numbers = range(torch.cuda.device_count()) if chosen.index is None else [chosen.index]
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    return [visible[number] if any(visible) else str(number) for number in numbers]


def cores() -> int:
    """The cores that this process may use, which a scheduler may have made fewer than there are."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@dataclass(frozen=True)
class LocalEngine:
    """Worker processes of this machine: `workers` of them, or one for each entry of `posts`.

    `side_by_side` is how many populations train at the same time on a GPU, with at most as many runs together
    as the largest population may have. It changes no number.
    """

    workers: int | None = None
    posts: tuple[Post, ...] | None = None
    side_by_side: int = 1

    def __post_init__(self) -> None:
        if self.side_by_side < 1:
            raise UnweaveError(f"side_by_side must be a whole number >= 1; got {self.side_by_side}.")

    @contextmanager
    def start(self, job: EngineJob) -> Iterator[Crew]:
        """Open the ledger; other drivers on this machine may work on the same study."""
        posts = self.posts or posts_for(job.work, self.workers, self.side_by_side)
        with closing(open_ledger(job.study, job.units, job.ledger_path)) as ledger:
            yield _Workers(job, posts, ledger)


def run_local(
    study: StudyFolder,
    units: Sequence[Unit],
    posts: Sequence[Post],
    tell: StatusCallback | None = None,
    ledger_path: Path | None = None,
) -> Status:
    """Work on units until all are done or failed. Other drivers may work on the same study meanwhile."""
    job = EngineJob(study, units, posts[0].work, ledger_path)
    return drive(LocalEngine(posts=tuple(posts)), job, tell)


class _Workers:
    """The worker processes of a driver."""

    def __init__(self, job: EngineJob, posts: Sequence[Post], ledger: Ledger) -> None:
        self.study, self.units, self.posts, self.ledger = job.study, job.units, posts, ledger
        self.context = _context()
        self.processes: dict[int, BaseProcess] = {}
        self.deaths, self.open_before = 0, ledger.open_tasks()

    def advance(self) -> bool:
        """Start workers where one is missing; False when nothing is open."""
        left = self.ledger.open_tasks()
        if left < self.open_before:
            self.deaths, self.open_before = 0, left
        for place, process in list(self.processes.items()):
            if process.exitcode is None:
                continue
            process.join()
            del self.processes[place]
            if process.exitcode == FULL:
                raise DiskFullError(
                    f"the disk of {self.study.path} is full. Make room and run the same command again: all "
                    "that is done is kept."
                )
            self.deaths += process.exitcode != 0
            if self.deaths > MAX_IDLE_DEATHS:
                raise UnweaveError(
                    f"workers ended {self.deaths} times in a row with status {process.exitcode} before any "
                    f"task was done; {self.study.path / 'workers.log'} says why."
                )
        if not left:
            return False
        for place, post in enumerate(self.posts):
            if place not in self.processes:
                self.processes[place] = self._start(post)
        return True

    def wait(self, seconds: float) -> None:
        """Let the workers work, until one of them ends."""
        connection.wait([process.sentinel for process in self.processes.values()], seconds)

    def status(self) -> Status:
        """What the ledger says."""
        return status_of(self.study, self.units, self.ledger)

    def stop(self) -> str:
        """Ask all workers to stop, and wait until they have written their checkpoints."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.join()
        return ""

    def _start(self, post: Post) -> BaseProcess:
        arguments = (self.study.path, self.ledger.path, post, Driver.of_this_process())
        process = self.context.Process(target=_worker, args=arguments, name=f"unweave {'/'.join(post.kinds)}")
        with _without_main_script():
            process.start()
        return process


def _context() -> ForkServerContext | SpawnContext:
    """How processes start: from a server that has imported what they need, where there is such a thing."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    wait_asleep()  # for the processes, which have not loaded torch
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["unweave.study.engines.local"])
    _start_server()
    return context


def _start_server() -> None:
    """Start the server of processes with Ctrl-C held back, which its processes inherit until they can stop.

    A process that is stopped while it starts would print a traceback to the terminal.
    """
    from multiprocessing import forkserver, resource_tracker

    resource_tracker.ensure_running()  # its start would let signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_main_script() -> Iterator[None]:
    """Start processes that do not import the caller's script, which would run this very call again.

    Workers need modules of unweave only, so scripts need no `if __name__ == "__main__"`.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _worker(path: Path, ledger_path: Path, post: Post, driver: Driver) -> None:
    try:
        stop_on_signals()
        # What a worker says goes into a file, so that it does not tear the driver's progress apart.
        log = (path / WORKERS_LOG_FILE).open("a", buffering=1)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)
        if post.gpu is not None:
            # The process has not used CUDA yet. It sees one GPU, so kernels and graphs cannot be on another.
            os.environ["CUDA_VISIBLE_DEVICES"] = post.gpu
        torch.set_num_threads(post.threads)
        worker = Worker(StudyFolder(path), Ledger(ledger_path), post.work, post.kinds, driver)
        if post.side_by_side > 1:
            runs = population_size(torch.device("cpu" if post.gpu is None else "cuda"))
            work_side_by_side(worker, post.side_by_side, runs)
        else:
            worker.run()
    except (Stopped, KeyboardInterrupt):
        sys.exit(STOPPED)
    except DiskFullError:
        sys.exit(FULL)
