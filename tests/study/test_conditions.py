"""Studies on data with conditions: the names go through study files, plans, run folders and the table."""

from pathlib import Path

import numpy as np
import pytest

from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.progress import no_progress
from unweave.study import StudyFolder
from unweave.study.folder import check_data, open_named
from unweave.study.measure import Kind
from unweave.study.planner import plan_of
from unweave.study.spec import read_study
from unweave.study.table import collect
from unweave.study.work import TrainAndScore

STUDY = """
name = "conditions"
metrics = "mig, factor_vae_score"
representations = ["mean"]
points = [60, 30]
[shared]
data = ["dsprites:hold(x>=16,shape=heart)", "dsprites:noise:y~x=0.2", "mine.npz:hold(x<2)"]
steps = 2
batch = 4
latents = 2
architecture = "mlp"
[[methods]]
name = "beta_vae"
"""
NAMES = ["dsprites:hold(shape=2,x=16..31)", "dsprites:noise:x~y=0.2", "mine:hold(x=0..1)"]


def test_a_study_file_with_conditions_is_trained_measured_and_collected(tmp_path: Path) -> None:
    factors = TINY.factors_at(np.arange(len(TINY)))
    names = np.array([factor.name for factor in TINY.factors])
    np.savez(tmp_path / "mine.npz", images=TINY.observe(factors), factors=factors, factor_names=names)
    (tmp_path / "s.toml").write_text(STUDY)
    spec = read_study(tmp_path / "s.toml")
    assert [run.data for run in spec.runs] == NAMES
    check_data(spec, None)
    assert [Kind.of(run, spec.reference(run.data)).channels for run in spec.runs] == [1, 3, 1]
    assert [open_named(name, spec.reference(name), None).name for name in NAMES] == NAMES
    study = StudyFolder.create(tmp_path / "s", spec)
    work = TrainAndScore("cpu")
    for unit in plan_of(study, 4):
        if "hold" in study.runs[unit.runs[0]].data:
            work.train(study, unit, no_progress)
            work.evaluate(study, unit.runs[0], no_progress)
    frame, _ = collect(StudyFolder(study.path))
    assert set(frame["data"]) == {NAMES[0], NAMES[2]}
    assert set(frame["score"]) == {"mig"}  # the other one needs all combinations


def test_a_wrong_condition_is_found_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(STUDY.replace("shape=heart", "shape=star"))
    with pytest.raises(
        UnweaveError, match=r"s\.toml: cannot read the condition .* at character 18: expected"
    ):
        read_study(tmp_path / "s.toml")
