"""Training: the same numbers alone, in a population, after a stop, and after a kill."""

import errno
import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from training.stopping import largest_difference, stopped_after
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.methods import AE, DIPVAE1, DIPVAE2, VAE, AnnealedVAE, BetaTCVAE, BetaVAE, FactorVAE
from unweave.methods.method import Method
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.training import trainer
from unweave.training.batches import HostBatches, ResidentBatches
from unweave.training.population import Population
from unweave.training.trainer import Plan, Report, Stopped, pick_device, train_runs

CPU = torch.device("cpu")
MIXED: list[Method] = [
    VAE(),
    AE(),
    BetaVAE(4.0),
    AnnealedVAE(c_max=5.0),
    FactorVAE(10.0),
    BetaTCVAE(beta=6.0),
    DIPVAE1(5.0),
    DIPVAE2(5.0),
]


def spec(method: Method, seed: int = 0, steps: int = 12, **more: Any) -> RunSpec:
    return RunSpec(method, data="tiny", seed=seed, steps=steps, batch=8, latents=4, **more)


def train(folder: Path, specs: list[RunSpec], **plan: Any) -> list[RunFolder]:
    chosen = replace(Plan(device="cpu", log_every=4, checkpoint_every=1000), **plan)
    return train_runs(specs, TINY, [folder / run.id for run in specs], chosen)


def test_a_run_alone_equals_the_run_in_a_mixed_population(tmp_path: Path) -> None:
    specs = [spec(method, seed=i) for i, method in enumerate(MIXED)]
    together = train(tmp_path / "together", specs)
    for which in (1, 4, 5):
        [alone] = train(tmp_path / "alone", [specs[which]])
        assert largest_difference(alone, together[which]) < 1e-4, specs[which].method
        assert [line["step"] for line in alone.log()] == [4, 8, 12]
        for mine, theirs in zip(alone.log(), together[which].log(), strict=True):
            assert mine == pytest.approx(theirs, rel=2e-3, abs=2e-3)


def test_a_second_batch_is_the_runs_own(tmp_path: Path) -> None:
    specs = [spec(VAE(), 7), spec(FactorVAE(20.0, second_batch=True), 1), spec(FactorVAE(20.0), 1)]
    together = train(tmp_path / "together", specs)
    [alone] = train(tmp_path / "alone", [specs[1]])
    assert largest_difference(alone, together[1]) < 1e-4
    assert largest_difference(together[1], together[2]) > 1e-4


def test_training_lowers_the_loss_and_seeds_differ(tmp_path: Path) -> None:
    runs = train(tmp_path, [spec(VAE(), seed=seed, steps=60, learning_rate=1e-3) for seed in (0, 1)])
    for run in runs:
        log = run.log()
        assert log[-1]["elbo"] > log[0]["elbo"] + 100
        result = run.result
        assert result is not None
        assert result["outcome"] == "finished"
        assert result["steps"] == 60
    assert largest_difference(*runs) > 0.01


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    log_every = 5  # neither the steps nor the checkpoint are a multiple
    specs = [spec(method, seed=i) for i, method in enumerate(MIXED[:6])]
    whole = train(tmp_path / "whole", specs, log_every=log_every)
    with stopped_after(7):
        train(tmp_path / "parts", specs, log_every=log_every)
    assert RunFolder(tmp_path / "parts" / specs[0].id).checkpoints() == [7]
    parts = train(tmp_path / "parts", specs, log_every=log_every)
    for one, other in zip(whole, parts, strict=True):
        assert largest_difference(one, other) == 0
        assert one.log() == other.log()
        assert other.checkpoints() == []


def test_runs_of_different_length_leave_the_population_when_they_are_done(tmp_path: Path) -> None:
    specs = [spec(VAE(), 0, steps=4), spec(FactorVAE(5.0), 1, steps=10), spec(FactorVAE(9.0), 2, steps=7)]
    together = train(tmp_path / "together", specs)
    for one in specs:
        result = RunFolder(tmp_path / "together" / one.id).result
        assert result is not None
        assert result["steps"] == one.steps
    for which, one in enumerate(specs):
        [alone] = train(tmp_path / "alone", [one])
        assert largest_difference(alone, together[which]) < 1e-4


def test_a_diverged_run_is_recorded_and_the_others_continue(tmp_path: Path) -> None:
    specs = [spec(BetaVAE(4.0), 0), spec(BetaVAE(1e38), 1, learning_rate=1e20), spec(BetaVAE(2.0), 2)]
    together = train(tmp_path / "together", specs)
    outcomes = [(folder.result or {})["outcome"] for folder in together]
    assert outcomes == ["finished", "diverged", "finished"]
    assert (together[1].result or {})["steps"] == 4
    [alone] = train(tmp_path / "alone", [specs[2]])
    assert largest_difference(alone, together[2]) < 1e-4
    json.loads((together[1].path / "result.json").read_text(), parse_constant=pytest.fail)


def test_finished_runs_are_not_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(tmp_path, [spec(VAE())])
    monkeypatch.setattr(trainer, "Population", pytest.fail)
    train(tmp_path, [spec(VAE())])


def test_checkpoints_are_written_for_all_before_any_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = [spec(VAE(), seed) for seed in range(3)]
    whole = train(tmp_path / "whole", specs, checkpoint_every=4)
    real = RunFolder.save_checkpoint

    def dies(self: RunFolder, step: int, *arguments: Any) -> None:
        if step == 8 and self.path.name == specs[1].id:
            raise KeyboardInterrupt
        real(self, step, *arguments)

    monkeypatch.setattr(RunFolder, "save_checkpoint", dies)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "parts", specs, checkpoint_every=4)
    monkeypatch.undo()
    steps = [RunFolder(tmp_path / "parts" / run.id).checkpoints() for run in specs]
    assert steps == [[4, 8], [4], [4]]
    parts = train(tmp_path / "parts", specs, checkpoint_every=4)
    for one, other in zip(whole, parts, strict=True):
        assert largest_difference(one, other) == 0
        assert one.log() == other.log()


def test_batches_from_the_device_equal_those_from_the_host() -> None:
    population = Population([spec(VAE(), seed) for seed in (3, 4)], TINY.shape, CPU)
    resident, host = ResidentBatches(TINY, CPU), HostBatches(TINY, CPU)
    for step in (0, 1, 77):
        population.step.fill_(step)
        one = resident.draw(population.draws, step, "batch", 8, population.sampling).images
        other = host.draw(population.draws, step, "batch", 8, population.sampling).images
        assert torch.equal(one, other)
        assert one.shape == (2, 8, 1, 32, 32)
    assert not torch.equal(one[0], one[1])


def test_progress_is_reported(tmp_path: Path) -> None:
    reports: list[Report] = []
    specs = [spec(VAE(), 0), spec(BetaTCVAE(), 1)]
    train_runs(specs, TINY, [tmp_path / s.id for s in specs], Plan("cpu", log_every=4), reports.append)
    assert [report.step for report in reports] == [4, 8, 12]
    assert {"reconstruction", "kl", "elbo"} <= reports[0].terms[0].keys()


def test_clipped_gradients_and_schedules_change_training(tmp_path: Path) -> None:
    plain, clipped, cosine = train(
        tmp_path, [spec(VAE()), spec(VAE(), gradient_clip=1e-3), spec(VAE(), schedule="cosine")]
    )
    assert largest_difference(plain, clipped) > 1e-5
    assert largest_difference(plain, cosine) > 1e-5


def test_a_signal_saves_and_stops(tmp_path: Path) -> None:
    """A test of the command sends a signal to another process."""
    specs = [spec(BetaVAE(4.0), 0), spec(BetaTCVAE(beta=6.0), 1)]
    folders = [tmp_path / one.id for one in specs]

    def interrupt(_report: Report) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Stopped, match="stopped by signal 15 after step 4"):
        train_runs(specs, TINY, folders, Plan("cpu", log_every=4, checkpoint_every=1000), interrupt)
    assert [RunFolder(folder).checkpoints() for folder in folders] == [[4], [4]]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_full_disk_is_an_error_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [spec(VAE(), 0)]
    whole = train(tmp_path / "whole", specs, checkpoint_every=4)
    real = os.fsync
    writes = 0

    def full(file: int) -> None:
        nonlocal writes
        writes += 1
        if writes > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UnweaveError, match=r"the disk is full\. Make room and run the same command again"):
        train(tmp_path / "parts", specs, checkpoint_every=4)
    monkeypatch.undo()
    assert not [path for path in (tmp_path / "parts").rglob("*") if path.name.endswith(".part")]
    parts = train(tmp_path / "parts", specs, checkpoint_every=4)
    assert largest_difference(whole[0], parts[0]) == 0


def test_folders_of_others_are_refused(tmp_path: Path) -> None:
    one, other = spec(VAE(), 0), spec(VAE(), 1)
    train_runs([one], TINY, [tmp_path / "run"], Plan("cpu"))
    with pytest.raises(UnweaveError, match="is the folder of another run"):
        train_runs([other], TINY, [tmp_path / "run"], Plan("cpu"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("keep")
    with pytest.raises(UnweaveError, match="has files that are not of a run"):
        train_runs([other], TINY, [tmp_path / "mine"], Plan("cpu"))


def test_devices_that_are_not_here_are_refused() -> None:
    if not torch.cuda.is_available():
        with pytest.raises(UnweaveError, match="a GPU was requested, but torch finds none"):
            pick_device("cuda")
    with pytest.raises(UnweaveError, match='there is no device "gpu"'):
        pick_device("gpu")


def test_global_generators_play_no_part(tmp_path: Path) -> None:
    torch.manual_seed(1)
    [one] = train(tmp_path / "one", [spec(FactorVAE(5.0), steps=4)])
    torch.manual_seed(2)
    np.random.seed(3)  # noqa: NPY002
    [other] = train(tmp_path / "other", [spec(FactorVAE(5.0), steps=4)])
    assert largest_difference(one, other) == 0
