"""The work of a study with a clock: what each task took is written down, for `benchmarks/mini_study.py`.

Worker processes import this module, so it is no part of a script.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from unweave.data import load
from unweave.evaluation.score_store import kept_scores
from unweave.progress import Progress
from unweave.runs.spec import RunSpec
from unweave.study import StudyFolder
from unweave.study.engines.local import Post, posts_for
from unweave.study.planner import Unit
from unweave.study.work import TrainAndScore, Work
from unweave.training.batches import batches_of
from unweave.training.population import Population
from unweave.training.trainer import pick_device
from unweave.training.update import Update

TIMES = "times.jsonl"  # in the folder of a study


@dataclass(frozen=True)
class Taken:
    """When a task began and ended, and what it took."""

    kind: str
    data: str
    runs: int
    start: float
    end: float
    cores: float  # seconds of all threads of the process
    encoding: float = 0.0  # of these seconds from start to end, those in which images were made and encoded
    images: int = 0  # that were encoded

    @property
    def wall(self) -> float:
        """Seconds from its start to its end."""
        return self.end - self.start


@dataclass(frozen=True)
class TimedWork:
    """Does the work of a study and writes down what each task took."""

    work: Work

    def train(self, study: StudyFolder, unit: Unit, progress: Progress) -> None:
        """Train a unit."""
        data = study.runs[unit.runs[0]].data
        self._timed(study, Taken("train", data, len(unit.runs), 0, 0, 0), self.work.train, unit, progress)

    def evaluate(self, study: StudyFolder, run_id: str, progress: Progress) -> None:
        """Measure a run."""
        task = Taken("evaluate", study.runs[run_id].data, 1, 0, 0, 0)
        self._timed(study, task, self.work.evaluate, run_id, progress)

    def _timed(self, study: StudyFolder, task: Taken, action: Callable[..., None], *given: object) -> None:
        start, cores = time.time(), time.process_time()
        action(study, *given)
        task = replace(task, start=start, end=time.time(), cores=time.process_time() - cores)
        if task.kind == "evaluate":
            records = kept_scores(study.run_folder(str(given[0])))
            task = replace(
                task,
                encoding=sum(record.seconds["encoding"] for record in records),
                images=sum(record.images for record in records),
            )
        with (study.path / TIMES).open("a") as file:  # a short line: workers do not cut each other's
            file.write(json.dumps(asdict(task)) + "\n")


def timed_posts(device: str, kinds: Iterable[str] = ("train", "evaluate")) -> list[Post]:
    """The workers that a study has on this machine, as far as they do one of these kinds, with a clock."""
    posts = [post for post in posts_for(TrainAndScore(device)) if set(post.kinds) & set(kinds)]
    return [replace(post, work=TimedWork(post.work)) for post in posts]


def times_of(study: StudyFolder) -> list[Taken]:
    """What was written down up to now."""
    path = study.path / TIMES
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [Taken(**json.loads(line)) for line in lines if line.endswith("\n")]


def keep_training(specs: Sequence[RunSpec], device: str, diary: Path) -> None:
    """Train a population until the process is ended; lines of the diary are a time and the updates so far."""
    chosen, done = pick_device(device), 0
    torch.set_num_threads(2)
    data = load(specs[0].data)
    update = Update(Population(specs, data.shape, chosen), batches_of(data, chosen), len(data))
    never: list[int] = []
    while True:
        done += update.run(64 if chosen.type == "cuda" else 1, never)
        if chosen.type == "cuda":
            torch.cuda.synchronize()
        with diary.open("a") as file:
            file.write(f"{time.time()} {done}\n")
