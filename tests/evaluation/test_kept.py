"""Scores in a run's folder: nothing is measured twice, and nothing that is there changes."""

import dataclasses
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import unweave
from command_line import run_here
from metrics.grids import grid
from training.tiny import TINY
from unweave.data.grid import Factors, Images
from unweave.errors import UnweaveError
from unweave.evaluation import score_store
from unweave.evaluation.evaluate import Effort
from unweave.evaluation.posterior_memory import MOST_BYTES, PosteriorMemory
from unweave.evaluation.posteriors import Posterior
from unweave.evaluation.score_store import drop_codes, evaluate_run, keep_codes, kept_scores
from unweave.evaluation.sources import GroundTruthSource
from unweave.files import write_json
from unweave.runs.store import read_tensors
from unweave.streams import Stream

EFFORT = Effort(points=(200, 100))


@pytest.fixture
def run(tmp_path: Path) -> unweave.Run:
    return unweave.train(unweave.methods.VAE(), TINY, out=tmp_path, steps=3, batch=4, latents=3, device="cpu")


def test_a_further_metric_changes_no_other_score(run: unweave.Run) -> None:
    [first] = evaluate_run(run, "mig, sap", effort=EFFORT)
    [second] = evaluate_run(run, "irs", effort=EFFORT)
    assert list(second) == ["irs"]
    [kept] = kept_scores(run.folder)
    assert dict(kept) == dict(first) | dict(second)
    assert dict(unweave.evaluate(run, metrics="mig, sap, irs", points=(200, 100))) == pytest.approx(
        dict(kept)
    )


def test_what_is_there_is_not_measured_again(run: unweave.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    both = evaluate_run(run, "mig, elbo", ["mean", "sampled"], EFFORT)
    assert list(both[0]) == ["mig", "elbo.reconstruction", "elbo.kl", "elbo.elbo", "elbo.active"]
    assert list(both[1]) == ["mig"]  # the run's own scores are kept once
    monkeypatch.setattr(unweave.Run, "posterior", None)
    again = evaluate_run(run, "mig, elbo", ["mean", "sampled"], EFFORT)
    assert [dict(record) for record in again] == [dict(record) for record in both]


@pytest.mark.parametrize("most_bytes", [MOST_BYTES, 0])
def test_representations_share_images_that_are_drawn_at_random(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_bytes: int
) -> None:
    """Each image is made and encoded once; without room to keep codes it is made again. Scores are equal."""

    def render(factors: Factors, stream: Stream) -> Images:
        return TINY.render(factors, stream) | stream.integers(len(factors), [99])[..., None, None].astype(
            np.uint8
        )

    noisy = dataclasses.replace(TINY, name="noisy", render=render, stochastic=True, binary=False)
    options: dict[str, Any] = {"steps": 3, "batch": 4, "latents": 3, "device": "cpu"}
    runs = [unweave.train(unweave.methods.VAE(), noisy, out=tmp_path / name, **options) for name in "ab"]
    monkeypatch.setattr(score_store, "PosteriorMemory", lambda: PosteriorMemory(most_bytes))
    both = evaluate_run(runs[0], "mig, sap", ["mean", "sampled"], EFFORT)
    alone = [evaluate_run(runs[1], "mig, sap", [kind], EFFORT)[0] for kind in ("mean", "sampled")]
    assert [dict(record) for record in both] == [dict(record) for record in alone]
    assert dict(both[0]) != dict(both[1])
    assert both[0].images == alone[0].images > 0
    assert both[1].images == (0 if most_bytes else alone[1].images)


def test_interventions_of_both_representations_encode_once() -> None:
    encoded = []

    def encode(images: NDArray[np.uint8]) -> Posterior:
        encoded.append(len(images))
        codes = images.reshape(len(images), -1)[:, :3].astype(np.float64)
        return Posterior(codes, np.zeros_like(codes))

    def render(factors: Factors, stream: Stream) -> Images:
        return stream.integers(len(factors), [256] * 4).astype(np.uint8).reshape(-1, 1, 2, 2)

    noise = dataclasses.replace(TINY, shape=(1, 2, 2), render=render, stochastic=True, binary=False)
    source = GroundTruthSource(encode, noise, memory=PosteriorMemory())
    factors, stream = noise.sample_factors(50, 0), Stream.of(1)
    for kind in ("mean", "sampled"):
        codes = source.interventions(kind).codes(factors, stream)
        plain = GroundTruthSource(encode, noise).interventions(kind).codes(factors, stream)
        np.testing.assert_array_equal(codes, plain)
    assert (source.images, encoded) == (50, [50] * 3)
    source.interventions("mean").codes(factors, stream.skip(1))
    source.interventions("mean").codes(factors[::-1], stream)
    assert source.images == 150, "other rows of the stream and other factors are other images"


def test_scores_of_the_run_alone_leave_a_representation_empty(run: unweave.Run) -> None:
    mean, sampled = evaluate_run(run, "elbo", ["mean", "sampled"], EFFORT)
    assert list(mean) == ["elbo.reconstruction", "elbo.kl", "elbo.elbo", "elbo.active"]
    assert (sampled.representation, len(sampled)) == ("sampled", 0)


def test_other_points_and_seeds_are_other_records(run: unweave.Run) -> None:
    evaluate_run(run, "mig", effort=EFFORT)
    evaluate_run(run, "mig", effort=Effort((100, 50)))
    evaluate_run(run, "mig", effort=Effort((200, 100), seed=1))
    assert len({record["mig"] for record in kept_scores(run.folder)}) == 3


def test_an_interval_that_is_asked_for_later_is_added(run: unweave.Run) -> None:
    [plain] = evaluate_run(run, "mig", effort=EFFORT)
    [repeated] = evaluate_run(run, "mig", effort=Effort((200, 100), repeats=3))
    assert repeated["mig"] == plain["mig"]
    assert repeated.scores[0].low is not None
    [after] = evaluate_run(run, "mig", effort=EFFORT)
    assert after.scores == repeated.scores


def test_kept_codes_are_looked_up(run: unweave.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate_run(run, "mig", effort=EFFORT, keep=True)
    expected = unweave.evaluate(run, metrics="factor_vae_score, modularity", points=(200, 100))
    monkeypatch.setattr(unweave.Run, "posterior", None)
    [found] = evaluate_run(run, "factor_vae_score, modularity", effort=EFFORT)
    assert dict(found) == pytest.approx(dict(expected), abs=1e-9)
    assert found.images == len(TINY)  # those of the first call


def test_unusable_files_are_explained(run: unweave.Run) -> None:
    path = run.path / "scores.json"
    path.write_text("{")
    with pytest.raises(UnweaveError, match=r"cannot read .*scores.json.* Delete it to measure the run again"):
        evaluate_run(run, "mig", effort=EFFORT)
    write_json(path, {"schema": 1, "evaluations": [{"schema": 1}]})
    with pytest.raises(UnweaveError, match=r"cannot use .*json: these are not scores that unweave wrote"):
        evaluate_run(run, "mig", effort=EFFORT)
    write_json(path, {"mig[bins20,mean]": 0.3})  # before scores said from which points they are
    [found] = evaluate_run(run, "mig", effort=EFFORT)
    assert json.loads(path.read_text())["schema"] == 1
    assert kept_scores(run.folder)[0]["mig"] == found["mig"]


def test_diverged_runs_are_not_measured(run: unweave.Run) -> None:
    write_json(run.path / "result.json", run.result | {"outcome": "diverged"})
    with pytest.raises(UnweaveError, match="is diverged, so its codes cannot be measured"):
        evaluate_run(run, "mig", effort=EFFORT)


def command(*words: object) -> subprocess.CompletedProcess[str]:
    return run_here("evaluate", *words)


def test_command_on_a_file(tmp_path: Path) -> None:
    factors = grid(3, 4, repeats=5)
    np.savez(tmp_path / "codes.npz", codes=factors * 1.0, factors=factors)
    done = command(tmp_path / "codes.npz", "--metrics", "mig,sap", "--json", tmp_path / "s.json",
                   "--plot", tmp_path / "m.png")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "mig[bins20,n60,mean]" in done.stdout
    assert "40 + 20 points" in done.stdout
    [record] = json.loads((tmp_path / "s.json").read_text())
    assert record["scores"][0]["value"] > 0.9
    assert (tmp_path / "m.png").exists()


@pytest.mark.parametrize(
    ("arrays", "words", "message"),
    [
        ({"codes": np.ones((9, 2))}, [], "must hold codes .* it holds codes"),
        ({"codes": np.ones((9, 2)), "factors": np.ones((8, 2), int)}, [], "9|8"),
        ({"codes": np.array([{}]), "factors": np.ones(1)}, [], "cannot read .*codes.npz"),
        ({"codes": np.ones((9, 2)), "factors": np.ones((9, 2), int)}, ["--metrics", "migg"], "Did you mean"),
    ],
)
def test_bad_files_are_one_sentence(
    tmp_path: Path, arrays: dict[str, Any], words: list[str], message: str
) -> None:
    np.savez(tmp_path / "codes.npz", **arrays)
    done = command(tmp_path / "codes.npz", *words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert re.search(message, done.stderr), done.stderr


def test_missing_and_empty_folders_are_one_sentence(tmp_path: Path) -> None:
    for path, message in ((tmp_path / "none", "there is no"), (tmp_path, "there is none in it")):
        done = command(path)
        assert done.returncode == 2
        assert message in done.stderr


def test_codes_of_several_runs_are_those_of_each(tmp_path: Path) -> None:
    runs = [
        unweave.train(
            unweave.methods.VAE(), TINY, out=tmp_path, steps=3, batch=4, latents=3, seed=seed, device="cpu"
        )
        for seed in range(2)
    ]
    keep_codes(runs)
    images = TINY.observe(TINY.factors_at(np.arange(len(TINY))))
    for run in runs:
        kept = read_tensors(run.path / "codes.safetensors")
        posterior = run.posterior(images)
        np.testing.assert_allclose(kept["mean"], posterior.mean.numpy(), atol=1e-6)
        np.testing.assert_allclose(kept["log_var"], posterior.log_var.numpy(), atol=1e-6)
    drop_codes(runs[0].folder)
    assert not (runs[0].path / "codes.safetensors").exists()
