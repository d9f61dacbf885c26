"""Held-out combinations: they are measured when asked for, and enter nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import unweave
from command_line import run_here
from training.tiny import TINY
from unweave.data import GroundTruth, conditioned
from unweave.data.grid import Factors, Images
from unweave.errors import UnweaveError
from unweave.evaluation import evaluate, generalisation
from unweave.evaluation.effort import Effort
from unweave.evaluation.evaluate import source_of
from unweave.evaluation.parts import Part
from unweave.evaluation.score_store import evaluate_run, kept_scores, scores_path
from unweave.methods import AE, GVAE, AdaGVAE, BetaVAE, S2BetaVAE
from unweave.methods.method import Method
from unweave.runs.run import Run
from unweave.selection.codes import drawn_images
from unweave.streams import Stream

HELD = "hold(size=2,x>=2)"
SETTINGS: dict[str, Any] = {"steps": 3, "batch": 8, "latents": 3, "architecture": "mlp", "device": "cpu"}
POINTS = (120, 60)


def is_held(factors: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray((factors[:, 0] == 2) & (factors[:, 1] >= 2))


def watched(text: str = HELD) -> tuple[GroundTruth, list[Factors]]:
    """Tiny data with a condition, and the factors of all images that are made of it."""
    seen: list[Factors] = []

    def render(factors: Factors, stream: Stream) -> Images:
        seen.append(factors)
        return TINY.render(factors, stream)

    return conditioned(replace(TINY, render=render), text), seen


def perfect(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Size and place of the square: codes that generalise."""
    white = images[:, 0] > 0
    columns, rows = white.any(axis=1), white.any(axis=2)
    return np.stack([columns.sum(axis=1), columns.argmax(axis=1), rows.argmax(axis=1)], axis=1).astype(float)


def memorised(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The same codes, but squares that were held out look like small ones on the left."""
    codes = perfect(images)
    codes[(codes[:, 0] == 9) & (codes[:, 1] > 9), :2] = 5, 4
    return codes


@pytest.mark.parametrize(
    "method", [BetaVAE(), AE(), AdaGVAE(), GVAE(), S2BetaVAE()], ids=lambda method: method.name
)
def test_what_is_held_out_enters_no_training_batch_no_evaluation_and_no_selection(
    method: Method, tmp_path: Path
) -> None:
    data, seen = watched()
    run = unweave.train(method, data, out=tmp_path, progress=False, **SETTINGS)
    trained = np.concatenate(seen)
    assert len(trained) >= 24
    assert not is_held(trained).any()
    seen.clear()
    evaluate(run, metrics="mig,sap,dci,r2_linear,total_correlation,elbo", points=POINTS)
    drawn_images(data, 200)
    assert not is_held(np.concatenate(seen)).any()


def test_parts_draw_what_they_say() -> None:
    data, _ = watched()
    effort = Effort(POINTS)
    parts = {on: source_of(perfect, effort, data=data, on=on) for on in ("training", "all", "held_out")}
    samples = {on: source.sample(POINTS, "mean", effort.stream) for on, source in parts.items()}
    for kind in ("factors", "test_factors", "counted_factors"):
        assert not is_held(getattr(samples["training"], kind)).any()
        assert is_held(getattr(samples["all"], kind)).any()
    held = samples["held_out"]
    assert is_held(held.test_factors).all()
    assert is_held(held.counted_factors).all()
    # What is fitted does not depend on what it is tested on.
    assert np.array_equal(held.codes, samples["training"].codes)
    assert np.array_equal(held.factors, samples["training"].factors)


def test_the_protocol_states_the_part_and_other_protocols_stay_as_they_are() -> None:
    data, _ = watched()
    protocols = {
        on: evaluate(perfect, data=data, on=on, metrics="sap", points=POINTS).score("sap").protocol
        for on in ("training", "all", "held_out")
    }
    assert protocols["training"] == "sap[svm-ovr,C0.01,n120+60,disjoint,mean]"
    assert ",on:all,mean]" in protocols["all"]
    assert ",on:held_out,mean]" in protocols["held_out"]


def test_what_cannot_be_measured_on_a_part_is_refused() -> None:
    data, _ = watched()
    with pytest.raises(UnweaveError, match="it needs all combinations of factors, and some are held out"):
        evaluate(perfect, data=data, metrics="factor_vae_score", points=POINTS)
    assert evaluate(perfect, data=data, on="all", metrics="factor_vae_score", points=POINTS)
    # Of the codes alone: the factors of held-out points do not matter.
    codes_only = evaluate(perfect, data=data, on="held_out", metrics="total_correlation", points=POINTS)
    assert np.isfinite(codes_only["total_correlation"])
    with pytest.raises(UnweaveError, match=r'such as mig, .* because "size" has one value in all of them'):
        evaluate(perfect, data=data, on="held_out", metrics="mig", points=POINTS)
    with pytest.raises(UnweaveError, match=r'factor "size" has one.* leave explicitness out or use --on all'):
        evaluate(perfect, data=data, on="held_out", metrics="explicitness", points=POINTS)
    with pytest.raises(UnweaveError, match='on must be training, all or held_out; got "test"'):
        evaluate(perfect, data=data, on="test")  # type: ignore[arg-type]
    with pytest.raises(UnweaveError, match="is for data with a full grid of factors"):
        evaluate(np.eye(9), np.arange(9)[:, None], on="all")
    with pytest.raises(UnweaveError, match="no combination of tiny was held out"):
        evaluate(perfect, data=TINY, on="held_out", metrics="sap", points=POINTS)


def test_held_out_codes_are_scaled_by_the_training_data() -> None:
    """Codes without a scale are standardised; a held-out part has another mean and deviation."""
    data, _ = watched()
    options: dict[str, Any] = {
        "data": data,
        "on": "held_out",
        "metrics": "downstream_logistic",
        "points": POINTS,
    }
    shifted = evaluate(lambda images: 100 * perfect(images) + 7, standardise=True, **options)
    plain = evaluate(perfect, standardise=True, **options)
    for name in plain:
        assert shifted[name] == pytest.approx(plain[name])


def test_a_factor_that_is_constant_in_training_is_left_out() -> None:
    scores = evaluate(perfect, data=conditioned(TINY, "only(size=1)"), metrics="mig", points=POINTS)
    assert scores.factors == ("x", "y")
    assert 'factor "size" was left out: it has one value only.' in scores.notes


def test_the_number_of_images_is_that_of_the_part() -> None:
    """TINY has 3 x 4 x 5 images, of which 10 are held out."""
    data, _ = watched()
    for on, images in (("training", 50), ("all", 60), ("held_out", 10)):
        notes = evaluate(perfect, data=data, on=on, metrics="sap", points=POINTS).notes  # type: ignore[arg-type]
        assert any(f" has {images} images" in note for note in notes)


@pytest.mark.parametrize(
    ("condition", "on", "noted"),
    [
        ("x~y=0.1", "training", True),
        ("x~y=0.1", "all", False),
        ("weigh(x=0)=0.1", "training", True),
        ("noise", "training", False),
    ],
)
def test_metrics_that_count_all_combinations_the_same_say_so(condition: str, on: Part, noted: bool) -> None:
    data = conditioned(replace(TINY, shape=(1, *TINY.shape[1:])), condition)
    codes = lambda images: perfect(images.max(axis=1, keepdims=True))  # noqa: E731
    notes = evaluate(codes, data=data, on=on, metrics="mig,factor_vae_score", points=POINTS).notes
    found = [note for note in notes if "counts each combination of factors the same" in note]
    assert bool(found) == noted
    assert all(note.startswith("factor_vae_score counts") for note in found)


def test_codes_that_generalise_and_codes_that_do_not() -> None:
    data, _ = watched()
    good, bad = (
        generalisation(encode, data=data, points=(400, 200), model="linear")
        for encode in (perfect, memorised)
    )
    for factor in ("size", "x", "y"):
        assert good["accuracy", factor].training == good["accuracy", factor].held_out == 1
        assert good["r2", factor].held_out == pytest.approx(1)
        assert bad["accuracy", factor].training == 1
    assert bad["accuracy", "x"].held_out < 0.5
    assert bad["accuracy", "y"].held_out == 1  # only size and x are mistaken
    assert bad["r2", "size"].difference < -1
    assert "accuracy size" in str(bad)
    assert list(bad.frame()["measure"]) == ["accuracy"] * 3 + ["r2"] * 3


def test_r2_is_relative_to_the_variance_of_the_full_grid() -> None:
    """Schott et al.: predicting 0 for x = 2 or 3 of 0 .. 3 has R2 = 1 - (4 + 9) / 2 / 1.25."""
    data = conditioned(TINY, "hold(x>=2)")

    def without_x(images: NDArray[np.uint8]) -> NDArray[np.float64]:
        codes = perfect(images)
        place = (codes[:, 1] + (codes[:, 0] - 1) / 2 - 6) / 6
        return np.stack([np.where(place >= 2, 0, place), codes[:, 2]], axis=1)

    result = generalisation(without_x, data=data, points=(300, 2000), model="linear")
    assert result["r2", "x"].training == pytest.approx(1)
    assert result["r2", "x"].held_out == pytest.approx(1 - 6.5 / 1.25, abs=0.2)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run on named data with a condition."""
    folder = tmp_path_factory.mktemp("runs")
    data = "dsprites:hold(x>=16,shape=heart)"
    return unweave.train("beta_vae", data, out=folder, progress=False, **SETTINGS)


def test_a_run_on_named_data_is_opened_and_measured_by_its_name(run: Run) -> None:
    assert run.spec.data == "dsprites:hold(shape=2,x=16..31)"
    loaded = unweave.load(run.path)
    assert isinstance(loaded.data, GroundTruth)
    assert loaded.data.drawn == "uniformly; without shape 2 & x 16-31"
    again = unweave.train("beta_vae", run.spec.data, out=run.path.parent, progress=False, **SETTINGS)
    assert again.path == run.path
    result = generalisation(loaded, points=(60, 40), model="linear")
    assert {row.measure for row in result.rows} == {"accuracy", "r2", "reconstruction", "squared_error"}
    assert result["reconstruction"].held_out > 0


def test_scores_on_parts_are_kept_apart(run: Run) -> None:
    effort = Effort(POINTS)
    scores = {on: evaluate_run(run, "mig", effort=effort, on=on)[0] for on in ("training", "all")}
    assert [path.name for path in sorted(run.path.glob("scores*.json"))] == ["scores-all.json", "scores.json"]
    for on, record in scores.items():
        [kept] = kept_scores(run.folder, on)  # type: ignore[arg-type]
        assert kept["mig"] == record["mig"]
        assert evaluate_run(run, "mig", effort=effort, on=on)[0]["mig"] == record["mig"]  # type: ignore[arg-type]


def test_the_command_measures_a_part(run: Run) -> None:
    done = run_here("evaluate", run.path, "--on", "held_out", "--metrics", "sap", "--points", 100, 50)
    assert "on:held_out" in " ".join(done.stdout.split())
    record = json.loads(scores_path(run.folder, "held_out").read_text())
    assert record["evaluations"][0]["scores"]


def test_a_trained_model_does_not_extrapolate(tmp_path: Path) -> None:
    """Montero et al. (2021), Schott et al. (2022): reconstruction and R2 of x fail beyond its range."""
    small = Path(__file__).parents[1] / "integrations" / "small_architecture.py"
    settings = SETTINGS | {"steps": 300, "batch": 32, "latents": 4, "learning_rate": 0.01}
    settings["architecture"] = f"{small}:SMALL"
    data = conditioned(TINY, "hold(x=3)")
    trained = unweave.train(BetaVAE(beta=1), data, out=tmp_path, progress=False, **settings)
    result = generalisation(trained, points=(300, 150), model="linear")
    assert result["reconstruction"].held_out > 1.4 * result["reconstruction"].training
    assert result["squared_error"].difference > 0
    assert result["r2", "x"].held_out < 0 < result["r2", "x"].training
    assert result["accuracy", "x"].held_out == 0  # this value was never seen
