"""A task done on another machine: what it is given, where it works, and what it answers.

Where the machine sees the study's folder, it works there. Where it does not, it works in a folder of its own,
gets the files that are there already and sends back those that are new.
"""

from __future__ import annotations

import json
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import torch

from unweave.errors import DiskFullError, MissingFileError
from unweave.files import write_bytes, write_json
from unweave.layout import ENDING_FILE, LOG_FILE, RESULT_FILE, SCORES_FILE, SPEC_FILE, STUDY_FILE
from unweave.locks import hold
from unweave.progress import Progress, no_progress
from unweave.study.folder import StudyFolder
from unweave.study.ledger import Task
from unweave.study.planner import Unit
from unweave.study.spec import StudySpec
from unweave.study.work import Work
from unweave.study.worker import format_error
from unweave.training.trainer import Stopped

Files: TypeAlias = dict[str, dict[str, bytes]]  # of a run, by names inside its folder
UNFINISHED = (SPEC_FILE, LOG_FILE)  # what is worth sending of a run that has not ended


@dataclass(frozen=True)
class Job:
    """A task, and all that a machine must know to do it: a unit to train and measure, or a run to measure."""

    task: Task
    unit: Unit  # of an evaluation: of the one run
    spec: StudySpec  # with the runs of this unit only
    folder: Path  # of the study, where its driver is
    beacon: str | None  # a file in it: who sees this sees the folder itself, and not a copy of it
    work: Work
    threads: int


@dataclass(frozen=True)
class Outcome:
    """How a task went: how long it took, and what went wrong with it."""

    seconds: float
    error: str = ""
    trace: str = ""


@dataclass
class Answer:
    """What a machine says of a job."""

    machine: str = field(default_factory=socket.gethostname)
    outcomes: dict[str, Outcome] = field(default_factory=dict)  # by task; none if it was stopped
    files: Files = field(default_factory=dict)
    halt: str = ""  # what is wrong with the machine, and not with the runs
    needs_files: bool = False  # it does not see the study's folder, and cannot begin without what is there


def do_job(job: Job, files: Files | None, progress: Progress) -> Answer:
    """Train and measure a unit, or measure a run. What goes wrong is part of the answer.

    `files` are those that the runs have already; None if they were not sent, because they may be seen.
    """
    torch.set_num_threads(job.threads)
    answer, seen = Answer(), _sees_folder(job)
    if files is None and not seen:
        return Answer(needs_files=True)
    try:
        with _in_folder(job) if seen else _in_scratch(job, files or {}, answer) as study:
            _do(job, study, progress, answer)
    except (Stopped, KeyboardInterrupt):
        pass  # by its driver, or because the machine goes down: what has no outcome is done again
    except (DiskFullError, MissingFileError) as error:
        answer.halt = str(error)
    return answer


def _do(job: Job, study: StudyFolder, progress: Progress, answer: Answer) -> None:
    if job.task.kind == "train":
        with _noted(answer, job.task.id):
            job.work.train(study, job.unit, progress)
        if answer.outcomes[job.task.id].error:
            return
    for run in job.unit.runs:
        with _noted(answer, run):
            job.work.evaluate(study, run, no_progress)


@contextmanager
def _noted(answer: Answer, task_id: str) -> Iterator[None]:
    """Note how a task went. A stop, and what is the machine's fault, go on upwards."""
    start = time.monotonic()
    try:
        yield
    except (Stopped, DiskFullError, MissingFileError):
        raise
    except Exception as error:
        answer.outcomes[task_id] = Outcome(time.monotonic() - start, *format_error(error))
    else:
        answer.outcomes[task_id] = Outcome(time.monotonic() - start)


@contextmanager
def _in_folder(job: Job) -> Iterator[StudyFolder]:
    """The study's own folder."""
    # A machine that was given up may still be at work; two must not write into the same folders.
    with hold(job.folder / "locks" / job.task.id):
        yield _study(job.folder, (job.folder / STUDY_FILE).stat().st_mtime_ns)


@lru_cache(1)
def _study(path: Path, _changed: int) -> StudyFolder:
    """A study, read once by a process that does many of its tasks."""
    return StudyFolder(path)


@contextmanager
def _in_scratch(job: Job, files: Files, answer: Answer) -> Iterator[StudyFolder]:
    """A folder of this machine's own; what is new in it goes into the answer."""
    with tempfile.TemporaryDirectory(prefix="unweave-") as scratch:
        study = StudyFolder.create(scratch, job.spec)
        for run, parts in files.items():
            for name, content in parts.items():
                write_bytes(study.run_path(run) / name, content)
        try:
            yield study
        finally:
            answer.files = _new_files(study, job.unit, files)


def _sees_folder(job: Job) -> bool:
    if job.beacon is None or not (job.folder / job.beacon).exists():
        return False
    try:
        with tempfile.TemporaryFile(dir=job.folder):
            return True
    except OSError:
        return False


def files_of(study: StudyFolder, unit: Unit) -> Files:
    """All files of the runs of a unit that are there."""
    return {
        run: {
            str(path.relative_to(study.run_path(run))): path.read_bytes()
            for path in sorted(study.run_path(run).rglob("*"))
            if path.is_file() and path.suffix not in (".lock", ".part")
        }
        for run in unit.runs
    }


def _new_files(study: StudyFolder, unit: Unit, sent: Files) -> Files:
    """What is worth sending back."""
    new: Files = {}
    for run, parts in files_of(study, unit).items():
        ended = RESULT_FILE in parts
        before = sent.get(run, {})
        new[run] = {
            name: content
            for name, content in parts.items()
            if (ended or name in UNFINISHED) and content != before.get(name)
        }
    return new


def receive(study: StudyFolder, files: Mapping[str, Mapping[str, bytes]]) -> None:
    """Put files that came from elsewhere into the folders of their runs.

    Runs that trained together end together, as in training itself: a kill in between leaves all of them
    prepared to end, or open. Scores come last: they are of a run that has ended.
    """
    ended = [run for run, parts in files.items() if RESULT_FILE in parts]
    for run, parts in files.items():
        for name, content in parts.items():
            if name not in (RESULT_FILE, SCORES_FILE):
                write_bytes(study.run_path(run) / name, content)
        if run in ended:
            ending = {"result": json.loads(parts[RESULT_FILE]), "together": ended}
            write_json(study.run_path(run) / ENDING_FILE, ending)
    for run in ended:
        study.run_folder(run).complete()
    for run, parts in files.items():
        if SCORES_FILE in parts:
            write_bytes(study.run_path(run) / SCORES_FILE, parts[SCORES_FILE])
