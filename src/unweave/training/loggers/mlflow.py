"""Runs in MLflow: on the server of `MLFLOW_TRACKING_URI`, or in its local store."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

from unweave.training.loggers.logger import LoggedRun, hyper_parameters

EXPERIMENT = "unweave"  # without MLFLOW_EXPERIMENT_NAME


@final
class MlflowLogger:
    """A run of MLflow. The client has no active run, so any number of loggers can be open."""

    def __init__(self, run: LoggedRun) -> None:
        self._entities = importlib.import_module("mlflow.entities")
        self._client = importlib.import_module("mlflow").MlflowClient()
        self._steps = run.spec.steps
        self.id = run.known_as or self._create(run)
        self._client.update_run(self.id, status="RUNNING")

    def _create(self, run: LoggedRun) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", EXPERIMENT)
        experiment = self._client.get_experiment_by_name(name)
        number = self._client.create_experiment(name) if experiment is None else experiment.experiment_id
        run_id: str = self._client.create_run(number, run_name=run.name).info.run_id
        settings = hyper_parameters(run.spec).items()
        self._client.log_batch(run_id, params=[self._entities.Param(k, str(v)) for k, v in settings])
        return run_id

    def log(self, step: int, terms: Mapping[str, float]) -> None:
        """Add a value to each metric."""
        self._client.log_batch(self.id, metrics=self._metrics(terms, step))

    def finish(self, scores: Mapping[str, float], pictures: Sequence[Path]) -> None:
        """Add the scores as metrics at the last step, and the pictures as artifacts."""
        named = {f"score/{name}": value for name, value in scores.items()}
        self._client.log_batch(self.id, metrics=self._metrics(named, self._steps))
        for path in pictures:
            self._client.log_artifact(self.id, str(path), "pictures")

    def close(self) -> None:
        """Mark the run as ended."""
        self._client.set_terminated(self.id)

    def _metrics(self, values: Mapping[str, float], step: int) -> list[Any]:
        now = int(time.time() * 1000)
        return [self._entities.Metric(name, value, now, step) for name, value in values.items()]
