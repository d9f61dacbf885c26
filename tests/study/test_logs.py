"""Runs of a study in trackers, and their page while they train."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from loggers import recording
from study.tiny import tiny_spec
from unweave.commands.study import study_app
from unweave.errors import UnweaveError
from unweave.progress import no_progress
from unweave.study import StudyFolder
from unweave.study.engines.slurm_script import shard_command
from unweave.study.logs import checked_loggers
from unweave.study.planner import Unit
from unweave.study.session import prepare_study
from unweave.study.table import collect
from unweave.study.tasks import open_ledger
from unweave.study.work import TrainAndScore
from unweave.study.worker import Worker

FILE = Path(recording.__file__)
RECORDER = f"{FILE}:Recorder"


def calls(run: Path) -> list[list[Any]]:
    """What the logger of a run was called with."""
    return [json.loads(line) for line in (run / "Recorder" / "calls.jsonl").read_text().splitlines()]


def test_workers_send_losses_scores_and_pictures(tmp_path: Path) -> None:
    spec = tiny_spec("0")
    session = prepare_study(spec, out=tmp_path, device="cpu", log_to=RECORDER)
    study = session.folder
    Worker(study, open_ledger(study, session.units), session.work).run()
    scored, _ = collect(study)
    for run in study.runs:
        made = calls(study.run_path(run))
        assert [call[0] for call in made] == ["open", "log", "close", "open", "finish", "close"]
        assert made[1][1] == 5, "the last step"
        own = [json.loads(line) for line in (study.run_path(run) / "log.jsonl").read_text().splitlines()]
        assert made[1][2]["elbo"] == pytest.approx(own[-1]["elbo"])
        scores = made[4][1]
        table = scored[(scored["run"] == run) & (scored["representation"] == "mean")]
        assert {name: scores[name] for name in table["score"]} == dict(
            zip(table["score"], table["value"], strict=True)
        )
        assert any(name.endswith(" (sampled)") for name in scores) == ("sampled" in spec.representations)


def test_a_logger_that_fails_stops_no_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = StudyFolder.create(tmp_path, tiny_spec("0"))
    work = TrainAndScore("cpu", log_every=1, log_to=(f"{FILE}:Broken",))
    work.train(study, Unit(tuple(study.runs)), no_progress)
    assert "Broken has failed (ConnectionError: the server is gone)" in capsys.readouterr().err
    assert all(study.run_folder(run).result for run in study.runs)


def test_loggers_are_checked_before_there_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnweaveError, match=r'no logger "tensorbord". Did you mean "tensorboard"\?'):
        prepare_study(tiny_spec("0"), out=tmp_path / "study", log_to="tensorbord", device="cpu")
    assert not (tmp_path / "study").exists()
    # Workers of other machines have other working directories.
    monkeypatch.chdir(FILE.parent)
    assert checked_loggers(["recording.py:Recorder"] * 2) == (RECORDER,)


def test_slurm_jobs_get_the_loggers() -> None:
    work = TrainAndScore("cpu", log_to=("wandb", "/my files/logger.py:Mine"))
    command = shard_command(["unweave"], Path("/study"), 2, work)
    assert "--log-to wandb --log-to '/my files/logger.py:Mine' --shard" in command


def test_the_page_is_served_while_a_study_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER", "true")  # a command that opens nothing
    monkeypatch.chdir(tmp_path)
    printed: list[str] = []
    monkeypatch.setattr("unweave.commands.watch.say", printed.append)
    answers: list[dict[str, Any]] = []

    def look(*_: object) -> None:
        address = re.search(r"http://127\.0\.0\.1:\d+/", printed[0])
        assert address
        with urlopen(f"{address[0]}api/live", timeout=60) as answer:  # noqa: S310  our own server
            answers.append(json.load(answer))

    monkeypatch.setattr("unweave.commands.study._run_and_collect", look)
    words: Sequence[str] = ["run", "smoke", "--out", "s", "--device", "cpu", "--watch"]
    study_app()(words, exit_on_error=False, result_action="return_value")
    assert printed[0].startswith("watch s: http://127.0.0.1:")
    assert answers[0]["counts"] == {"waiting": len(StudyFolder(tmp_path / "s").runs)}
    assert {run["method"] for run in answers[0]["runs"]} >= set(answers[0]["labels"]["method"])
