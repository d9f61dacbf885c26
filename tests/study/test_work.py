"""Training when the device has too little memory: fewer runs at a time, nothing twice, nothing lost."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from study.tiny import tiny_spec
from unweave import cli
from unweave.data import load
from unweave.errors import UnweaveError
from unweave.progress import no_progress
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.study import StudyFolder
from unweave.study.planner import Unit
from unweave.study.work import TrainAndScore
from unweave.training import memory
from unweave.training.batches import Data
from unweave.training.trainer import Plan, Report, Tell, train_runs

FULL = "CUDA out of memory. Tried to allocate 2.00 GiB."
STEPS = 5
Trains = Callable[[Sequence[RunSpec], Data, Sequence[Path], Plan, Tell | None], list[RunFolder]]


def trains_at_most(largest: int, tried: list[int], first: int = 0) -> Trains:
    """`train_runs` on a device with room for so many runs, which is noticed when `first` runs are trained."""

    def train(
        specs: Sequence[RunSpec], data: Data, paths: Sequence[Path], plan: Plan, tell: Tell | None
    ) -> list[RunFolder]:
        tried.append(plan.largest)
        if plan.largest > largest:
            if first:
                train_runs(specs[:first], data, paths[:first], plan, tell)
            raise torch.cuda.OutOfMemoryError(FULL)
        return train_runs(specs, data, paths, plan, tell)

    return train


def ten_runs(folder: Path) -> tuple[StudyFolder, Unit]:
    study = StudyFolder.create(folder, tiny_spec("0-4"))
    return study, Unit(tuple(study.runs))


@pytest.mark.parametrize(("room", "sizes"), [(10, [10]), (9, [10, 5]), (2, [10, 5, 2]), (1, [10, 5, 2, 1])])
def test_all_runs_are_trained_once_whatever_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int, sizes: list[int]
) -> None:
    tried: list[int] = []
    updates: Counter[tuple[str, int]] = Counter()

    def tell(report: Report) -> None:
        updates.update((run, report.step) for run in report.runs)

    monkeypatch.setattr(memory, "train_runs", trains_at_most(room, tried, first=3))
    study, unit = ten_runs(tmp_path)
    TrainAndScore("cpu", log_every=1, tell=tell).train(study, unit, no_progress)
    assert tried == sizes
    assert updates == {(run, step): 1 for run in unit.runs for step in range(1, STEPS + 1)}
    outcomes = [(study.run_folder(run).result or {})["outcome"] for run in unit.runs]
    assert outcomes == ["finished"] * 10


def test_what_was_finished_before_the_memory_was_full_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, unit = ten_runs(tmp_path)
    early = [study.run_path(run) / "weights.safetensors" for run in unit.runs[:3]]
    written: list[list[int]] = []
    real = trains_at_most(2, [], first=3)

    def train(
        specs: Sequence[RunSpec], data: Data, paths: Sequence[Path], plan: Plan, tell: Tell | None
    ) -> list[RunFolder]:
        try:
            return real(specs, data, paths, plan, tell)
        finally:
            written.append([file.stat().st_mtime_ns for file in early])

    monkeypatch.setattr(memory, "train_runs", train)
    TrainAndScore("cpu").train(study, unit, no_progress)
    assert len(written) == 3
    assert written[0] == written[1] == written[2]


def test_memory_is_given_back_before_the_next_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that is still being handled holds the tensors of the try that failed."""
    handled: list[object] = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: handled.append(sys.exc_info()[1]))
    monkeypatch.setattr(memory, "train_runs", trains_at_most(2, []))
    study, unit = ten_runs(tmp_path)
    TrainAndScore("cpu").train(study, unit, no_progress)
    assert handled == [None, None]


def test_a_run_that_does_not_fit_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    monkeypatch.setattr(memory, "train_runs", trains_at_most(0, tried))
    study, unit = ten_runs(tmp_path)
    message = (
        r"not even one run of beta_vae fits into the memory of cpu, with batches of 4: end other programs "
        r"on it, or use a smaller batch or --device cpu\."
    )
    with pytest.raises(UnweaveError, match=message):
        TrainAndScore("cpu").train(study, unit, no_progress)
    assert tried == [10, 5, 2, 1]


@pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens")  # as it is by its users
@pytest.mark.parametrize("more", [[], ["--no-scores"], ["--seeds", "0-1"], ["--seeds", "0-1", "--no-scores"]])
def test_the_command_says_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    monkeypatch.setattr(memory, "train_runs", trains_at_most(0, []))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        sys, "argv", ["unweave", "train", "beta_vae", "--device", "cpu", "--steps", "2", *more]
    )
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("unweave: ")
    assert "not even one run of beta_vae fits into the memory of cpu, with batches of 64" in line


@pytest.mark.parametrize(
    ("name", "handed_over", "gpu", "place"),
    [
        ("dsprites", True, True, "cpu"),  # its grid was encoded by the process that trains
        ("color_dsprites", True, True, "cuda:1"),
        ("color_dsprites", True, False, "cpu"),
        ("dsprites", False, False, "cuda:1"),  # stated, and alone
    ],
)
def test_where_a_run_encodes_for_its_measures(
    name: str, handed_over: bool, gpu: bool, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    doing = TrainAndScore("cuda:1", hand_over=handed_over)
    assert doing._encodes_on(load(name)) == place
