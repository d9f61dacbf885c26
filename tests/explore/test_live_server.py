"""The server of runs in training: what is shown first, what is refused, and pictures of a checkpoint."""

import json
from pathlib import Path

import pytest

from explore.conftest import Serve
from explore.live_folders import end_run, locked, spec_of, write_run, write_study
from explore.test_server import ask, error
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.explore.api.live import changes, traversals
from unweave.explore.api.request import Request
from unweave.explore.live.folders import spec_hash
from unweave.explore.subject import Subject, subject_at
from unweave.methods import BetaVAE
from unweave.runs import run as run_module
from unweave.runs.spec import RunSpec
from unweave.training.trainer import Plan, Report, Stopped, train_runs


def test_what_is_shown_first(tmp_path: Path, run_folder: Path) -> None:
    """Runs that are not finished are watched; finished runs and studies with a table have their own pages."""
    assert not subject_at(run_folder).describe()["live"]
    folder = write_run(tmp_path / "runs", spec_of())
    end_run(folder)
    described = subject_at(tmp_path / "runs").describe()
    assert [described[name] for name in ("kind", "run", "logs", "live")] == ["live", None, True, True]
    assert list(subject_at(tmp_path / "runs")._folders) == [spec_hash(spec_of())]
    write_study(tmp_path, spec_of())
    study = subject_at(tmp_path)
    assert study.kind == "study"
    assert study.describe()["live"], "it has no table yet"
    (tmp_path / "results.parquet").touch()
    assert not study.describe()["live"]
    (folder / "result.json").unlink()
    with locked(folder):
        assert study.describe()["live"]
    table = subject_at(tmp_path / "results.parquet")
    assert not table.describe()["logs"]
    assert changes(table, Request({}, {})) is None


def test_a_folder_may_come_later(tmp_path: Path) -> None:
    with pytest.raises(UnweaveError, match=r"there is no .*later\. Give the folder of a run or a study"):
        subject_at(tmp_path / "later")
    subject = subject_at(tmp_path / "later", wait=True)
    assert subject.describe()["live"]
    write_run(tmp_path / "later", spec_of())
    assert subject.run_path(spec_hash(spec_of())).parent.name == "later"
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnweaveError, match=r"neither the folder of a run .* and has no folders of runs"):
        subject_at(tmp_path / "empty", wait=False)


def test_questions_and_refusals(tmp_path: Path, serve: Serve) -> None:
    write_run(tmp_path / "runs", spec_of(), {"step": 10, "kl": 1.5})
    key = spec_hash(spec_of())
    with serve(tmp_path / "runs") as server:
        answer = json.loads(ask(server, f"/api/live?shown={key}~")[1])
        assert answer["shown"][key]["terms"] == {"kl": [1.5]}
        cursor = answer["shown"][key]["cursor"]
        again = json.loads(ask(server, f"/api/live?since={answer['version']}&shown={key}~{cursor},ab~")[1])
        assert (again["runs"], again["shown"][key]["steps"], list(again["shown"])) == ([], [], [key])
        for query, sentence in (
            ("since=-1", "since must be the version"),
            ("since=" + "9" * 30, "since must be the version"),
            ("shown=../../etc~", "shown must be keys and cursors"),
            (f"shown={key}~1", "shown must be keys and cursors"),
        ):
            status, said = error(ask(server, f"/api/live?{query}"))
            assert status == 409
            assert said.startswith(sentence)
        at = "/api/live/traversals?run="
        assert error(ask(server, at + key))[1].startswith("the run has no checkpoint yet.")
        assert error(ask(server, at + "zz"))[1] == 'there is no run "zz" in runs.'
        assert ask(server, "/api/study")[0] == 404


def test_traversals_of_the_last_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The picture is that of the newest weights, is drawn once, and again when there are newer ones."""
    spec = RunSpec(BetaVAE(1.0), "tiny", steps=8, batch=4, latents=2, architecture="mlp")

    def stop(report: Report) -> None:
        if report.step == end:
            raise Stopped

    monkeypatch.setattr(run_module, "reopen", lambda *_: TINY)
    subject = Subject(tmp_path, "live")
    monkeypatch.setattr("unweave.explore.live.watch.PAUSE", 0.0)
    pictures = []
    for end in (4, 6):
        with pytest.raises(Stopped):
            train_runs([spec], TINY, [tmp_path / "run"], Plan("cpu", log_every=1, checkpoint_every=1), stop)
        key = spec_hash(spec.to_dict())
        news = subject.live.changes(0, {key: ""})["shown"][key]
        assert news["weights"] == f"checkpoint-{end - 1}.safetensors"
        drawn = [traversals(subject, Request({"run": key}, {})) for _ in range(2)]
        assert drawn[0] is not None
        assert drawn[1] is not None
        assert drawn[0].body is drawn[1].body
        assert drawn[0].body.startswith(b"\x89PNG")
        pictures.append(drawn[0].body)
    assert pictures[0] != pictures[1]
