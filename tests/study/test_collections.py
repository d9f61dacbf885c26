"""A study on a data set of the catalogue that is no full grid."""

from pathlib import Path

import pytest

from data.faces import write_yale
from unweave.data.sets import yale_b
from unweave.evaluation.score_store import kept_scores
from unweave.progress import no_progress
from unweave.study import StudyFolder, StudySpec
from unweave.study.folder import missing_data
from unweave.study.planner import Unit
from unweave.study.spec import grid
from unweave.study.work import TrainAndScore


def test_runs_are_trained_and_measured_by_the_metrics_that_apply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_yale(tmp_path / "files" / "yale_b")
    monkeypatch.setattr(yale_b, "PICTURES", 12)
    method = {"name": "m2", "labels": 5, "factors": "identity"}
    runs = grid([method], data="yale_b", seed="0", steps=2, batch=4, latents=2)
    spec = StudySpec("faces", runs, metrics="mig, d_lsbd", points=(8, 4), pictures=False)
    assert missing_data(spec, tmp_path) == ["yale_b"]
    assert missing_data(spec, tmp_path / "files") == []
    study = StudyFolder.create(tmp_path / "study", spec)
    work, [run] = TrainAndScore("cpu", tmp_path / "files"), list(study.runs)
    work.train(study, Unit((run,)), no_progress)
    work.evaluate(study, run, no_progress)
    records = kept_scores(study.run_folder(run))
    assert {score.metric for record in records for score in record.scores} == {"mig"}
