"""Runs in Weights & Biases, online or offline (`WANDB_MODE=offline`)."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import final

from unweave.training.loggers.logger import LoggedRun, hyper_parameters

PROJECT = "unweave"  # without WANDB_PROJECT


@final
class WandbLogger:
    """A run of W&B; its local files are in the folder `wandb` of the run."""

    def __init__(self, run: LoggedRun) -> None:
        self._wandb = importlib.import_module("wandb")
        self._run = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            id=run.known_as or None,  # None: a new one
            name=run.name,
            config=hyper_parameters(run.spec),
            dir=str(run.folder.parent),  # W&B adds the folder `wandb`
            resume="allow",
            reinit="create_new",  # the runs of a population are open at the same time
            settings=self._wandb.Settings(console="off", quiet=True),
        )
        self.id: str = self._run.id

    def log(self, step: int, terms: Mapping[str, float]) -> None:
        """Add a row to the history."""
        self._run.log(dict(terms), step=step)

    def finish(self, scores: Mapping[str, float], pictures: Sequence[Path]) -> None:
        """Put scores and pictures into the summary."""
        self._run.summary.update({f"score/{name}": value for name, value in scores.items()})
        self._run.summary.update({path.stem: self._wandb.Image(str(path)) for path in pictures})

    def close(self) -> None:
        """End the process that sends the data."""
        self._run.finish()
