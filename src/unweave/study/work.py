"""What is done with a unit and with a run: train it, measure it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

import torch

from unweave.data import GroundTruth
from unweave.data.opening import Data
from unweave.data.own.reference import Reference
from unweave.evaluation.evaluate import Effort
from unweave.evaluation.generalisation_store import measure_generalisation
from unweave.evaluation.parts import parts_to_measure
from unweave.evaluation.score_store import drop_codes, evaluate_run, keep_codes
from unweave.nn.layers.precision import TORCH_SETTINGS
from unweave.progress import Progress
from unweave.runs.gallery import draw_missing_pictures
from unweave.runs.run import Run
from unweave.study.folder import StudyFolder, open_named
from unweave.study.logs import log_end, study_logs
from unweave.study.planner import Unit
from unweave.study.spec import StudySpec
from unweave.study.tasks import has_all_scores
from unweave.training.memory import train_what_fits
from unweave.training.trainer import Plan, Report, Tell, pick_device


class Work(Protocol):
    """What workers do. It travels to other processes, so it is plain data."""

    def train(self, study: StudyFolder, unit: Unit, progress: Progress) -> None:
        """Train all runs of a unit that are not trained."""

    def evaluate(self, study: StudyFolder, run_id: str, progress: Progress) -> None:
        """Measure a trained run."""


@dataclass(frozen=True)
class TrainAndScore:
    """Train on a device, measure, and draw pictures if the study wants them.

    With `hand_over`, the device that trains also encodes whole grids, and processes of their own measure.
    """

    device: str = "auto"
    data_root: Path | None = None
    checkpoint_every: int = 10_000
    log_every: int = 1_000
    keep_codes: bool = False
    hand_over: bool = False
    jobs: int = 1
    tell: Tell | None = None  # gets each report of the trainer; only within one process
    log_to: tuple[str, ...] = ()  # loggers of the runs, by name or reference

    def train(self, study: StudyFolder, unit: Unit, progress: Progress) -> None:
        """Train all runs of a unit that are not trained; fewer at a time if they do not fit."""
        specs = [study.runs[run] for run in unit.runs]
        paths = [study.run_path(run) for run in unit.runs]
        data = self._data(study, specs[0].data)

        def tell(report: Report) -> None:
            progress(report.step, report.steps)
            if self.tell:
                self.tell(report)

        plan = Plan(self.device, self.log_every, self.checkpoint_every, len(specs))
        with study_logs(self.log_to, study, unit.runs) as logs:
            folders = train_what_fits(specs, data, paths, plan, logs.after(tell))
        if self.hand_over:
            device = str(pick_device(self.device))
            ended = [folder for folder in folders if (folder.result or {}).get("outcome") == "finished"]
            unmeasured = [folder for folder in ended if not has_all_scores(study.spec, folder, specs[0].data)]
            with TORCH_SETTINGS:  # another thread may train in TF32
                keep_codes([Run(folder, device, data) for folder in unmeasured])

    def evaluate(self, study: StudyFolder, run_id: str, progress: Progress) -> None:
        """Measure a run, if it has not diverged, as far as it is not measured."""
        folder, spec, name = study.run_folder(run_id), study.spec, study.runs[run_id].data
        outcome = (folder.result or {}).get("outcome")
        if outcome != "diverged" and not has_all_scores(spec, folder, name):
            data = self._data(study, name)
            run = Run(folder, str(pick_device(self._encodes_on(data))), data)
            self._measure(run, data, spec, progress)
            if spec.pictures:
                draw_missing_pictures(run)
        if self.log_to:
            log_end(self.log_to, study, run_id)
        if not self.keep_codes:
            drop_codes(folder)

    def _measure(self, run: Run, data: Data, spec: StudySpec, progress: Progress) -> None:
        """Measure a run on all parts of its data that the study names."""
        restricted = not isinstance(data, GroundTruth) or data.allowed is not None
        parts = parts_to_measure(run.spec.data, spec.on)
        for part in parts:
            evaluate_run(
                run,
                spec.metrics,
                spec.representations,
                Effort(spec.points, seed=spec.seed, jobs=self.jobs),
                on=part,
                keep=self.keep_codes,
                lenient=restricted or spec.reference(run.spec.data) is not None,
                tell=progress,
            )
        if "held_out" in parts:
            measure_generalisation(run, (spec.points, spec.seed))

    def _data(self, study: StudyFolder, name: str) -> Data:
        return _data(name, study.spec.reference(name), self.data_root)

    def _encodes_on(self, data: Data) -> str:
        """The device that encodes for the metrics of a run.

        The whole grid of handed-over runs is encoded already. Images of stochastic data are not: a GPU makes
        and encodes them a hundred times faster than a core.
        """
        handed_over = self.hand_over and isinstance(data, GroundTruth) and not data.stochastic
        if handed_over or (self.hand_over and not torch.cuda.is_available()):
            return "cpu"
        return self.device


@cache
def _data(name: str, reference: Reference | None, root: Path | None) -> Data:
    """A data set, opened once by a process."""
    return open_named(name, reference, root)
