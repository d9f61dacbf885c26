"""Populations that train at the same time in one process: the same numbers, a clean stop, room for all."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from command_line import run_here
from study.tiny import Pretend, tiny_spec
from training.stopping import largest_difference
from unweave.errors import DiskFullError, UnweaveError
from unweave.nn.layers.precision import Precision
from unweave.progress import Progress
from unweave.runs.store import RunFolder
from unweave.study import StudyFolder
from unweave.study.engines.local import LocalEngine, posts_for
from unweave.study.ledger import Ledger
from unweave.study.planner import Unit, plan_of
from unweave.study.side_by_side import Room, work_side_by_side
from unweave.study.tasks import open_ledger
from unweave.study.work import TrainAndScore, Work
from unweave.study.worker import Worker, stop_on_signals
from unweave.training.trainer import SIGNALS, Report, Stopped

SECONDS = 30.0  # that a test waits for threads which should be quick
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def study_in(folder: Path, seeds: str = "0-5", largest: int = 4, **fields: Any) -> StudyFolder:
    study = StudyFolder.create(folder, tiny_spec(seeds, **fields))
    open_ledger(study, plan_of(study, largest)).close()
    return study


def worker_of(study: StudyFolder, work: Work) -> Worker:
    return Worker(study, Ledger(study.path / "ledger.sqlite"), work)


@dataclass(frozen=True)
class Meets(Pretend):
    """Each training waits until another one has begun; how many runs train at a time is noted."""

    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(2))
    training: list[int] = field(default_factory=list)
    most: list[int] = field(default_factory=list)

    def train(self, study: StudyFolder, unit: Unit, progress: Progress) -> None:
        """Pretend to train."""
        self.training.append(len(unit.runs))
        self.most.append(sum(self.training))
        self.barrier.wait(SECONDS)
        super().train(study, unit, progress)
        self.training.remove(len(unit.runs))


def test_two_populations_train_at_the_same_time(tmp_path: Path) -> None:
    study = study_in(tmp_path / "s", "0-7")  # four units of four runs
    work = Meets()
    work_side_by_side(worker_of(study, work), threads=4, runs=8)
    assert max(work.most) == 8, "there is no room for a third one"
    assert all((study.run_path(run) / "scores.json").exists() for run in study.runs)


def test_a_population_that_is_too_large_trains_alone() -> None:
    room, order = Room(4), list[str]()
    begun, end = threading.Event(), threading.Event()

    def train(runs: int) -> None:
        with room.taken(runs, ()):
            order.append(f"{runs} begin")
            begun.set()
            end.wait(SECONDS)
            order.append(f"{runs} end")

    threads = [threading.Thread(target=train, args=(runs,)) for runs in (9, 1)]
    threads[0].start()
    assert begun.wait(SECONDS)
    threads[1].start()
    end.set()
    for thread in threads:
        thread.join(SECONDS)
    assert order == ["9 begin", "9 end", "1 begin", "1 end"]


def trained_in(folder: Path, do: Callable[[Worker], None], work: Work) -> list[RunFolder]:
    """Three populations of a study, in three precisions that set torch's settings in different ways."""
    runs = tuple(
        replace(run, steps=6, precision=precision)
        for precision in get_args(Precision)
        for run in tiny_spec(seeds="0-1").runs
    )
    study = StudyFolder.create(folder, replace(tiny_spec(), runs=runs))
    units = plan_of(study, 4)
    assert len(units) == 3
    open_ledger(study, units).close()
    do(worker_of(study, work))
    return [study.run_folder(run) for run in study.runs]


def three_threads(worker: Worker) -> None:
    work_side_by_side(worker, threads=3, runs=128)


def test_numbers_are_those_of_populations_one_after_another(tmp_path: Path) -> None:
    """Bit by bit, also after a signal that stops all populations."""
    work, signalled = TrainAndScore(DEVICE, log_every=1), list[int]()
    alone = trained_in(tmp_path / "alone", Worker.run, work)

    def interrupt(report: Report) -> None:
        if report.step == 2 and not signalled:
            signalled.append(1)
            signal.raise_signal(signal.SIGTERM)
            while not SIGNALS.get():  # the main thread notes it at its next look
                time.sleep(0.01)

    with raising_handler(), pytest.raises(Stopped):
        trained_in(tmp_path / "several", three_threads, replace(work, tell=interrupt))
    several = StudyFolder(tmp_path / "several")
    with closing(Ledger(several.path / "ledger.sqlite")) as ledger:
        assert ledger.counts()["train", "ready"] >= 1, "tasks are given back"
        assert ("train", "running") not in ledger.counts()
    assert any(several.run_folder(run).checkpoints() for run in several.runs)
    three_threads(worker_of(several, work))
    for one, run in zip(alone, several.runs, strict=True):
        other = several.run_folder(run)
        assert largest_difference(one, other) == 0
        assert one.log() == other.log()
        assert (other.path / "scores.json").exists()


@contextmanager
def raising_handler() -> Iterator[None]:
    """What a worker process does: a signal raises in the main thread."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    stop_on_signals()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Full(Pretend):
    """The disk is full."""

    def train(self, study: StudyFolder, unit: Unit, progress: Progress) -> None:  # noqa: ARG002
        raise DiskFullError("the disk is full")


def test_a_full_disk_stops_all_threads(tmp_path: Path) -> None:
    study = study_in(tmp_path / "s")
    with pytest.raises(DiskFullError):
        work_side_by_side(worker_of(study, Full()), threads=3, runs=128)


def test_a_population_that_fails_leaves_the_others(tmp_path: Path) -> None:
    study = study_in(tmp_path / "s")
    bad = sorted(study.runs)[0]
    work_side_by_side(worker_of(study, Pretend(fails=(bad,))), threads=3, runs=128)
    trained = [run for run in study.runs if (study.run_path(run) / "result.json").exists()]
    assert len(trained) == len(study.runs) - 1


def test_who_trains_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnweaveError, match="only a GPU trains populations side by side"):
        posts_for(TrainAndScore("cpu"), side_by_side=2)
    with pytest.raises(UnweaveError, match="side_by_side must be a whole number >= 1; got 0"):
        LocalEngine(side_by_side=0)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    posts = posts_for(TrainAndScore("cuda"), workers=2, side_by_side=4)
    assert [post.side_by_side for post in posts] == [4, 1, 1]


def test_the_command_refuses_what_cannot_be(tmp_path: Path) -> None:
    for words, message in (
        (["--side-by-side", "0"], "side_by_side must be a whole number >= 1; got 0."),
        (["--side-by-side", "2", "--device", "cpu"], "only a GPU trains populations side by side"),
        (["--side-by-side", "2", "--engine", "ray"], "--side-by-side is not an option of the engine ray"),
    ):
        done = run_here("study", "run", "locatello2019_mini", "--preset", "smoke", *words, cwd=tmp_path)
        assert done.returncode == 2
        assert message in done.stderr
