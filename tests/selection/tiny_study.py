"""A study of two settings and three seeds whose codes say something, though hardly anything was learned."""

from pathlib import Path
from typing import Any

import pytest

from unweave.data import load
from unweave.evaluation.evaluate import Effort
from unweave.evaluation.score_store import evaluate_run
from unweave.runs.run import Run
from unweave.runs.store import RunFolder, write_tensors
from unweave.study import StudyFolder, StudySpec
from unweave.study.spec import grid
from unweave.training.trainer import Plan, train_runs

FIELDS: dict[str, Any] = {"data": "dsprites", "steps": 2, "batch": 4, "latents": 4}
METRICS, POINTS = "mig, modularity", (60, 30)
IMAGES = 400


def trained_study(folder: Path) -> StudyFolder:
    """Train six runs for two steps, make three of their four codes larger, and measure them."""
    runs = grid([{"name": "beta_vae", "beta": [1, 4]}], seed="0-2", **FIELDS)
    study = StudyFolder.create(folder, StudySpec("tiny", runs, metrics=METRICS, points=POINTS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNWEAVE_CACHE", str(folder / "cache"))
        data = load("dsprites")
        for made in train_runs(runs, data, [study.run_path(run.id) for run in runs], Plan("cpu")):
            _enlarge(made)
            evaluate_run(Run(made, data=data), METRICS, effort=Effort(POINTS), data=data)
    return study


def _enlarge(folder: RunFolder) -> None:
    """Codes 0 to 2 differ between images as much as the prior's; code 3 stays as good as dead."""
    weights = folder.weights()
    weights["encoder.heads.weight"][:, :3] *= 60
    write_tensors(folder.path / "weights.safetensors", weights)
