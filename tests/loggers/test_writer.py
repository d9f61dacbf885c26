"""Loggers get every line of the log once, and never disturb training."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import unweave
from loggers.trained import SCORES, SMALL, STEPS, own_log, specs, train
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.runs.store import RunFolder
from unweave.training.loggers.logger import logger_named
from unweave.training.loggers.writer import LogWriter
from unweave.training.trainer import Report

PLACE = Path(__file__).with_name("recording.py")
RECORDER, BROKEN = f"{PLACE}:Recorder", f"{PLACE}:Broken"


def calls(path: Path) -> list[list[Any]]:
    return [json.loads(line) for line in (path / "Recorder" / "calls.jsonl").read_text().splitlines()]


def logged(path: Path, term: str = "kl") -> list[tuple[int, float]]:
    return [(call[1], call[2][term]) for call in calls(path) if call[0] == "log"]


def test_a_resumed_run_continues_its_record(tmp_path: Path) -> None:
    assert train(tmp_path, RECORDER, kill_at=6) == []
    train(tmp_path, RECORDER)
    path = tmp_path / "seed0"
    assert logged(path) == own_log(path)
    assert [step for step, _ in own_log(path)] == STEPS
    opened = [call[1] for call in calls(path) if call[0] == "open"]
    assert opened[0] == ""
    assert set(opened[1:]) == {"record of seed0"}
    assert [call for call in calls(path) if call[0] == "finish"] == [["finish", SCORES, []]]
    before = calls(path)
    train(tmp_path, RECORDER)  # all is done: nothing is trained, and nothing recorded
    assert calls(path) == before


def test_lines_from_before_the_logger_are_added(tmp_path: Path) -> None:
    path = tmp_path / "seed0"
    train(tmp_path, kill_at=6)
    train(tmp_path, RECORDER, kill_at=8)
    train(tmp_path, finish=False)
    assert logged(path) == own_log(path)
    train(tmp_path / "later", finish=False)
    train(tmp_path / "later", RECORDER)  # a finished run
    assert logged(tmp_path / "later" / "seed0") == own_log(path)


def test_runs_of_a_population_have_their_own_records(tmp_path: Path) -> None:
    train(tmp_path, RECORDER, seeds=(0, 1))
    a, b = (logged(tmp_path / f"seed{seed}") for seed in (0, 1))
    assert a == own_log(tmp_path / "seed0")
    assert b == own_log(tmp_path / "seed1")
    assert a != b


def test_training_with_loggers_gives_the_same_numbers(tmp_path: Path) -> None:
    train(tmp_path / "without")
    train(tmp_path / "with", RECORDER, BROKEN)
    a, b = (RunFolder(tmp_path / kind / "seed0") for kind in ("without", "with"))
    assert a.log() == b.log()
    assert (a.path / "weights.safetensors").read_bytes() == (b.path / "weights.safetensors").read_bytes()


def test_a_logger_that_fails_is_left_out_with_one_sentence(tmp_path: Path) -> None:
    [problem] = train(tmp_path, BROKEN, RECORDER, seeds=(0, 1))
    assert "Broken has failed (ConnectionError: the server is gone) and gets nothing more" in problem
    assert [step for step, _ in logged(tmp_path / "seed1")] == STEPS
    assert all(RunFolder(tmp_path / f"seed{seed}").result for seed in (0, 1))


def test_other_runs_of_a_population_are_not_recorded(tmp_path: Path) -> None:
    [run] = specs()
    problems: list[str] = []
    with LogWriter([RECORDER], {run.id: (run, tmp_path)}, problems.append) as logs:
        logs(Report(2, 8, ("another", run.id), ({"kl": 1.0}, {"kl": 2.0}), 0.0))
    assert logged(tmp_path) == [(2, 2.0)]
    assert problems == []


def test_wrong_loggers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnweaveError, match=r'no logger "tensorbord". Did you mean "tensorboard"\?'):
        logger_named("tensorbord")
    with pytest.raises(
        UnweaveError, match=r"NoLogger is not a logger: it has no method finish and no method"
    ):
        logger_named(f"{PLACE}:NoLogger")
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UnweaveError, match=r'wandb needs a package. Run: pip install "unweave\[wandb\]"'):
        logger_named("wandb")


def test_the_function_logs_too(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"steps": 3, "batch": 4, "latents": 2, "architecture": SMALL, "device": "cpu"}
    run = unweave.train("vae", TINY, out=tmp_path, progress=False, log_to=RECORDER, **settings)
    assert logged(run.path) == own_log(run.path)
    monitored = [call[0] for call in calls(run.path)]
    assert monitored == ["open", "log", "close", "open", "finish", "close"]
    with pytest.warns(UserWarning, match="has failed"):
        unweave.train("vae", TINY, out=tmp_path, seed=1, progress=False, log_to=[BROKEN], **settings)
