"""Runs in TensorBoard: `tensorboard --logdir runs` shows them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import final

import numpy as np
from PIL import Image

from unweave.training.loggers.logger import LoggedRun, hyper_parameters


@final
class TensorBoardLogger:
    """Writes event files into the folder `tensorboard` of a run.

    Losses are scalars, scores are scalars `score/...` and metrics of the HParams page.
    """

    def __init__(self, run: LoggedRun) -> None:
        writer = importlib.import_module("torch.utils.tensorboard").SummaryWriter
        self.id = run.name
        self._settings = hyper_parameters(run.spec)
        self._steps = run.spec.steps
        self._writer = writer(str(run.folder))
        if not run.known_as:
            rows = [f"| {name} | {value} |" for name, value in self._settings.items()]
            self._writer.add_text("spec", "\n".join(["| setting | value |", "|---|---|", *rows]))

    def log(self, step: int, terms: Mapping[str, float]) -> None:
        """Write scalars, and flush them: a killed process loses none."""
        for name, value in terms.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def finish(self, scores: Mapping[str, float], pictures: Sequence[Path]) -> None:
        """Write the scores with the settings that they belong to, and the pictures."""
        named = {f"score/{name}": value for name, value in scores.items()}
        self._writer.add_hparams(self._settings, named, run_name=".", global_step=self._steps)
        for path in pictures:
            with Image.open(path) as picture:
                pixels = np.asarray(picture.convert("RGB"))
            self._writer.add_image(path.stem, pixels, self._steps, dataformats="HWC")

    def close(self) -> None:
        """Close the event file."""
        self._writer.close()
