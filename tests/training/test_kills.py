"""SIGKILL at any file operation: the same command continues, and the end is the same bit for bit."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from training.stopping import largest_difference, stopped_after
from training.test_trainer import spec, train
from training.tiny import TINY
from unweave.data import from_arrays
from unweave.errors import UnweaveError
from unweave.locks import claim
from unweave.methods import VAE, AdaGVAE, BetaTCVAE, BetaVAE
from unweave.methods.method import Losses, Method, StepContext
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.training.trainer import Plan, Stopped, train_runs

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(("what", "kills"), [("train", 30), ("study", 10)])
def test_random_kills_change_no_bit(tmp_path: Path, what: str, kills: int) -> None:
    command = [sys.executable, "-m", "training.killing", what, str(tmp_path), str(kills), "0"]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == kills


def test_a_kill_during_the_first_checkpoint_restarts_the_whole_population(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = [spec(VAE(), seed, steps=12) for seed in range(3)]
    whole = train(tmp_path / "whole", specs, checkpoint_every=7)
    real = RunFolder.save_checkpoint

    def dies(self: RunFolder, *arguments: Any) -> None:
        if self.path.name == specs[1].id:
            raise KeyboardInterrupt
        real(self, *arguments)

    monkeypatch.setattr(RunFolder, "save_checkpoint", dies)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "parts", specs, checkpoint_every=7)
    monkeypatch.undo()
    assert [RunFolder(tmp_path / "parts" / s.id).checkpoints() for s in specs] == [[7], [], []]
    parts = train(tmp_path / "parts", specs, checkpoint_every=7)
    for one, other in zip(whole, parts, strict=True):
        assert (other.result or {})["runs_beside"] == 2
        assert largest_difference(one, other) == 0
        assert one.log() == other.log()


def test_a_run_that_started_earlier_keeps_its_progress(tmp_path: Path) -> None:
    first, second = spec(VAE(), 0, steps=12), spec(VAE(), 1, steps=12)
    with stopped_after(6):
        train(tmp_path, [first])
    steps: list[int] = []
    folders = [tmp_path / one.id for one in (first, second)]
    train_runs([first, second], TINY, folders, Plan("cpu", log_every=3), lambda r: steps.append(r.step))
    assert steps == [3, 6, 9, 12, 9, 12]


def test_a_run_continues_where_the_folder_of_another_was_deleted(tmp_path: Path) -> None:
    specs = [spec(VAE(), seed, steps=16) for seed in range(2)]
    with stopped_after(9):
        train(tmp_path, specs, checkpoint_every=4)
    for path in (tmp_path / specs[1].id).iterdir():
        path.unlink()
    steps: list[int] = []
    folders = [tmp_path / one.id for one in specs]
    train_runs(specs, TINY, folders, Plan("cpu", log_every=4), lambda report: steps.append(report.step))
    assert sorted(steps) == [4, 8, 12, 12, 16, 16]


def test_two_processes_do_not_train_the_same_run(tmp_path: Path) -> None:
    run = spec(VAE())
    with stopped_after(6):
        train(tmp_path, [run])
    with RunFolder(tmp_path / run.id).claimed():
        message = (
            rf"{run.id} is in use by process {os.getpid()} on \S+\. Wait until it has finished, or stop it"
        )
        with pytest.raises(UnweaveError, match=message):
            train(tmp_path, [run])
    [done] = train(tmp_path, [run])
    assert done.result
    assert not (done.path / "train.lock").exists()


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "train.lock"
    script = f"""
import os, signal
from pathlib import Path
from unweave.locks import claim
with claim(Path({str(path)!r}), "it"):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", script], check=False)
    assert json.loads(path.read_text())["pid"] != os.getpid()
    with claim(path, "it"):
        assert json.loads(path.read_text())["pid"] == os.getpid()
        with pytest.raises(UnweaveError, match="it is in use"), claim(path, "it"):
            pytest.fail("two have it")
    assert not path.exists()


def test_a_stop_is_not_swallowed_by_except_exception() -> None:
    assert issubclass(Stopped, KeyboardInterrupt)
    assert not issubclass(Stopped, Exception)


def test_refused_training_leaves_no_folder(tmp_path: Path) -> None:
    odd = from_arrays(np.zeros((6, 28, 28), np.uint8), name="odd")
    cases = [
        (RunSpec(VAE(), data="odd", steps=2, batch=2), odd, "must have height and width"),
        (RunSpec(AdaGVAE(), data="odd", steps=2, batch=2), odd, "collection of images without a grid"),
    ]
    for run, data, message in cases:
        with pytest.raises(UnweaveError, match=message):
            train_runs([run], data, [tmp_path / "runs" / "run"], Plan("cpu"))
        assert not (tmp_path / "runs" / "run").exists()


def test_a_log_keeps_the_order_of_its_names_after_a_resume(tmp_path: Path) -> None:
    specs = [spec(BetaVAE(4.0), 0, steps=12), spec(BetaTCVAE(), 1, steps=12)]
    whole = train(tmp_path / "whole", specs, log_every=4)
    with stopped_after(6):
        train(tmp_path / "parts", specs, log_every=4)
    parts = train(tmp_path / "parts", specs, log_every=4)
    for one, other in zip(whole, parts, strict=True):
        assert (one.path / "log.jsonl").read_bytes() == (other.path / "log.jsonl").read_bytes()


@dataclass(frozen=True)
class Outsider(Method):
    """A method that is not in METHODS."""

    name: ClassVar[str] = "outsider"
    citation: ClassVar[str] = ""

    def losses(self, step: StepContext) -> Losses:
        """The plain autoencoder's."""
        forward = step.forward
        return Losses({"autoencoder": forward.reconstruction}, {"reconstruction": forward.reconstruction})


def test_a_method_that_could_not_be_opened_again_is_refused_before_training() -> None:
    @dataclass(frozen=True)
    class Local(Outsider):
        name: ClassVar[str] = "local"

    assert RunSpec(Outsider()).plugins[0].place.endswith(":Outsider")
    with pytest.raises(UnweaveError, match=r"Local cannot be found in .*Define it at the top level"):
        RunSpec(Local())
