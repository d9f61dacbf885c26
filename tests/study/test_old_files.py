"""Files that earlier versions wrote: they are read, or refused with a sentence, and never lost.

The files in old/ are as they were written; a new version of a format adds one and changes none.
"""

import json
import shutil
from pathlib import Path

import pytest

from unweave.errors import UnweaveError
from unweave.evaluation.score_store import kept_scores
from unweave.runs.store import RunFolder
from unweave.study import StudyFolder
from unweave.study.planner import read_plan

OLD = Path(__file__).parent / "old"


def test_scores_of_version_1(tmp_path: Path) -> None:
    shutil.copy(OLD / "scores-1.json", tmp_path / "scores.json")
    mean, sampled = kept_scores(RunFolder(tmp_path))
    assert (mean.representation, sampled.representation) == ("mean", "sampled")
    assert (
        mean["mig"] == json.loads((OLD / "scores-1.json").read_text())["evaluations"][0]["scores"][0]["value"]
    )
    assert mean.score("mig").protocol == "mig[bins20,mean]"
    assert (mean.asked, mean.seed) == ((60, 30), 0)


def test_scores_without_a_version_are_measured_anew(tmp_path: Path) -> None:
    shutil.copy(OLD / "scores-0.json", tmp_path / "scores.json")
    assert kept_scores(RunFolder(tmp_path)) == []


def test_studies_of_version_1(tmp_path: Path) -> None:
    for name in ("study", "plan"):
        shutil.copy(OLD / f"{name}-1.json", tmp_path / f"{name}.json")
    study = StudyFolder(tmp_path)
    assert study.spec.name == "tiny"
    assert [run.method.name for run in study.spec.runs] == ["beta_vae", "beta_vae"]
    [unit] = read_plan(study)
    assert sorted(unit.runs) == sorted(study.runs)  # the ids of specs have not changed


def test_newer_files_are_refused(tmp_path: Path) -> None:
    for name, key in (("study", "schema"), ("scores", "schema")):
        record = json.loads((OLD / f"{name}-1.json").read_text())
        (record["evaluations"][0] if name == "scores" else record)[key] = 99
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    with pytest.raises(UnweaveError, match="of version 99"):
        _ = StudyFolder(tmp_path).spec
    with pytest.raises(UnweaveError, match="format 99 by a newer unweave"):
        kept_scores(RunFolder(tmp_path))
