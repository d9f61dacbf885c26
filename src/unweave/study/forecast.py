"""How long a study takes on this machine: its tasks, timed one by one, given to as many workers as it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapreplace
from pathlib import Path

from unweave.data import GroundTruth
from unweave.layout import SCORES_FILE
from unweave.study.engines.local import Post, posts_for
from unweave.study.evaluation_time import EvaluationTime, evaluation_time
from unweave.study.folder import StudyFolder, open_named
from unweave.study.measure import Timed, parts_of, timed
from unweave.study.planner import Unit
from unweave.study.work import TrainAndScore
from unweave.training.trainer import pick_device

START_UP = 8.0  # seconds until a worker has started, has imported torch and has opened its data


@dataclass(frozen=True)
class Crew:
    """The worker processes of this machine, as far as they decide how long a study takes."""

    training: int  # processes that train
    measuring: int  # processes that measure; on a CPU, those that train
    threads: int  # of a process that trains
    jobs: int  # metrics that a process measures at a time
    separate: bool  # whether others measure while some train

    @classmethod
    def of(cls, posts: Sequence[Post]) -> Crew:
        """The processes of some posts."""
        trains = [post for post in posts if "train" in post.kinds]
        measures = [post for post in posts if "evaluate" in post.kinds]
        jobs = [post.work.jobs for post in measures if isinstance(post.work, TrainAndScore)]
        separate = all("train" not in post.kinds for post in measures)
        return cls(len(trains), len(measures), trains[0].threads, min(jobs, default=1), separate)


def crew_for(device: str) -> Crew:
    """The processes that a study starts on this machine."""
    return Crew.of(posts_for(TrainAndScore(device)))


@dataclass(frozen=True)
class Forecast:
    """The seconds that a study takes."""

    parts: Sequence[Timed]
    crew: Crew
    evaluation: EvaluationTime = field(default_factory=EvaluationTime)
    runs: int = 0  # that are evaluated

    @property
    def training(self) -> float:
        """Seconds until all runs are trained, if nothing else is done."""
        return spread_over(
            [seconds for part in self.parts for seconds in part.unit_seconds], self.crew.training
        )

    @property
    def measuring(self) -> float:
        """Seconds that evaluation takes, if nothing else is done."""
        return self.evaluation.seconds / min(self.crew.measuring, max(self.runs, 1))

    @property
    def encoding(self) -> float:
        """Seconds by which the GPUs train longer, because they encode for the processes that measure."""
        return self.evaluation.gpu / self.crew.training

    @property
    def total(self) -> float:
        """Seconds from the start to the last score.

        Without a GPU the same processes train and measure. With one, scores of the last population come
        after all training, and all others meanwhile.
        """
        if not self.crew.separate:
            return START_UP + self.training + self.measuring
        units = sum(len(part.unit_seconds) for part in self.parts)
        last = self.measuring / max(units, 1)
        return START_UP + max(self.training + self.encoding + last, self.measuring)


def forecast_of(
    study: StudyFolder, units: Sequence[Unit], missing: Sequence[str], device: str, data_root: Path | None
) -> Forecast:
    """How long the rest of a study takes, from some seconds of training and one evaluation.

    Runs on data that is missing here are trained on a stand-in, and their evaluation is not counted.
    """
    crew = crew_for(device)
    parts = timed(parts_of(study, units, missing), device, data_root, crew.threads)
    runs = [run for run in study.spec.runs if run.data not in missing]
    left = [run for run in runs if not (study.run_path(run.id) / SCORES_FILE).exists()]
    names = dict.fromkeys(run.data for run in left)
    opened = {name: open_named(name, study.spec.reference(name), data_root) for name in names}
    truths = {name: data for name, data in opened.items() if isinstance(data, GroundTruth)}
    left = [run for run in left if run.data in truths]
    if not left:
        return Forecast(parts, crew)
    evaluation = evaluation_time(study.spec, left, truths, pick_device(device), crew.jobs)
    return Forecast(parts, crew, evaluation, len(left))


def spread_over(seconds: Sequence[float], workers: int) -> float:
    """When the last of some tasks ends, if each of the workers takes the next one as soon as it is free.

    >>> spread_over([3, 3, 2, 4], 2)
    7.0
    """
    ends = [0.0] * max(1, workers)
    for task in seconds:
        heapreplace(ends, ends[0] + task)
    return max(ends)
