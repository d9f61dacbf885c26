"""Held-out images change nothing that a study trains, measures on training data, or selects by.

Two studies are the same but for the images of held-out combinations, which are noise in one of them.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from training.tiny import TINY
from unweave.progress import no_progress
from unweave.results import wide
from unweave.selection import select
from unweave.streams import Stream
from unweave.study import StudyFolder, read_study
from unweave.study.planner import plan_of
from unweave.study.table import collect
from unweave.study.work import TrainAndScore

# The autoencoder's codes have no scale and are standardised; the last method learns from labels.
STUDY = """
metrics = "mig, sap, dci, r2_linear, total_correlation, elbo"
representations = ["mean"]
points = [120, 60]
on = ["training", "held_out"]
[shared]
data = "mine.npz:hold(size=2,x>=2)"
seed = "0-1"
steps = 3
batch = 8
latents = 3
architecture = "mlp"
[[methods]]
name = "ae"
[[methods]]
name = "beta_vae"
[[methods]]
name = "s2_beta_vae"
"""


class Outcome(NamedTuple):
    """What a study found."""

    weights: dict[str, bytes]
    table: pd.DataFrame
    selected: pd.DataFrame


def outcome(folder: Path, noisy: bool) -> Outcome:
    folder.mkdir()
    factors = TINY.factors_at(np.arange(len(TINY)))
    images = TINY.observe(factors).copy()
    held = (factors[:, 0] == 2) & (factors[:, 1] >= 2)
    if noisy:
        drawn = Stream.of(0).integers(int(held.sum()), [256] * images[0].size)
        images[held] = drawn.reshape(images[held].shape)
    names = np.array([factor.name for factor in TINY.factors])
    np.savez(folder / "mine.npz", images=images, factors=factors, factor_names=names)
    (folder / "s.toml").write_text(STUDY)
    study = StudyFolder.create(folder / "s", read_study(folder / "s.toml"))
    work = TrainAndScore("cpu")
    for unit in plan_of(study, 4):
        work.train(study, unit, no_progress)
        for run in unit.runs:
            work.evaluate(study, run, no_progress)
    weights = {run: (study.run_path(run) / "weights.safetensors").read_bytes() for run in study.runs}
    chosen = select(study.path, by=["udr", "centrality", "few_labels"], images=200, labels=60, device="cpu")
    return Outcome(weights, collect(study)[0], wide(chosen.table, ""))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    folder = tmp_path_factory.mktemp("leaks")
    return [outcome(folder / str(noisy), noisy) for noisy in (False, True)]


def test_no_held_out_image_is_trained_on(outcomes: list[Outcome]) -> None:
    plain, noisy = outcomes
    assert len(plain.weights) == 6
    assert plain.weights == noisy.weights


def test_no_held_out_image_is_used_for_scores_on_training_data(outcomes: list[Outcome]) -> None:
    plain, noisy = (wide(found.table) for found in outcomes)
    assert {"sap", "dci.disentanglement", "elbo.elbo", "generalisation.accuracy"} <= set(plain)
    pd.testing.assert_frame_equal(plain, noisy)
    held = [wide(found.table, on="held_out") for found in outcomes]
    assert not held[0].equals(held[1]), "what is tested on held-out images depends on them"


def test_no_held_out_image_is_used_for_a_selection(outcomes: list[Outcome]) -> None:
    plain, noisy = (found.selected for found in outcomes)
    assert {"udr.lasso", "model_centrality"} <= set(plain)
    assert any(str(name).startswith("few_labels.") for name in plain)
    pd.testing.assert_frame_equal(plain, noisy)
