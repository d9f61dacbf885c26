"""evaluate: the same scores from arrays, from any encoder and from a run."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import unweave
from metrics.grids import drawn, grid, noise
from training.tiny import TINY
from unweave.data import Collection, from_arrays
from unweave.errors import UnweaveError
from unweave.evaluation import Scores
from unweave.metrics import elbo, mig, modularity, sap
from unweave.metrics.lookup import metrics_named
from unweave.metrics.table import SUITES
from unweave.streams import Stream

SIZES = (3, 4, 5)
POINTS = (300, 150)


def codes_of(factors: NDArray[np.int64]) -> NDArray[np.float64]:
    return factors + 0.4 * noise(len(factors), len(SIZES))


@pytest.fixture
def run(tmp_path: Path) -> unweave.Run:
    return unweave.train(unweave.methods.VAE(), TINY, out=tmp_path, steps=3, batch=4, latents=3, device="cpu")


def test_given_test_data_scores_are_those_of_the_functions() -> None:
    factors, held_out = drawn(SIZES, 400), drawn(SIZES, 200, seed=5)
    test = (codes_of(held_out), held_out)
    codes = codes_of(factors)
    scores = unweave.evaluate(codes, factors, test=test, metrics="mig, modularity, sap")
    assert dict(scores) == {
        "mig": mig(codes, factors),
        "modularity": modularity(codes, factors),
        "sap": sap(codes, factors, test=test),
    }
    assert [score.protocol for score in scores.scores] == [
        "mig[bins20,n400,mean]",
        "modularity[bins20,dead0,n400,mean]",
        "sap[svm-ovr,C0.01,n400+200,mean]",
    ]
    assert scores.points == (400, 200)


def test_rows_in_the_order_of_a_grid_are_shuffled_before_a_third_is_held_out() -> None:
    factors = grid(*SIZES, repeats=5)
    scores = unweave.evaluate(factors * 1.0, factors, metrics="explicitness")
    assert scores.points == (200, 100)
    assert scores["explicitness.test"] > 0.8  # held-out rows of classes never seen would score 0.5


def test_more_rows_than_points_are_thinned() -> None:
    factors = drawn(SIZES, 2000)
    scores = unweave.evaluate(codes_of(factors), factors, metrics="mig", points=POINTS)
    assert scores.points == POINTS
    assert scores["mig"] == pytest.approx(mig(codes_of(factors), factors), abs=0.1)


def test_interventions_on_arrays_say_what_they_had_to_do() -> None:
    factors = grid(*SIZES)
    whole = unweave.evaluate(factors * 1.0, factors, metrics="factor_vae_score")
    assert whole["factor_vae_score.eval_accuracy"] == 1.0
    assert "rows" not in whole.scores[0].protocol
    some = unweave.evaluate(factors[7:] * 1.0, factors[7:], metrics="factor_vae_score")
    assert "rows53,halves,mean]" in some.scores[0].protocol
    assert some["factor_vae_score.eval_accuracy"] > 0.9


@pytest.mark.usefixtures("without_perceptrons")
def test_suites_leave_out_what_cannot_be_had_and_names_are_refused() -> None:
    factors = drawn(SIZES, 300)
    assert not unweave.evaluate(codes_of(factors), factors, metrics=["quick", "irs"]).notes
    noted = unweave.evaluate(codes_of(factors), factors, metrics="all", points=(40, 20))
    assert noted.notes[0].startswith("mig_posterior")
    assert noted.notes[0].endswith(" left out: it needs the log variances of q(z|x): give log_var=.")
    assert "elbo was left out: it needs a trained run." in noted.notes
    with pytest.raises(UnweaveError, match="elbo cannot be measured here: it needs a trained run"):
        unweave.evaluate(codes_of(factors), factors, metrics="elbo")
    with pytest.raises(UnweaveError, match=r'no metric or suite "migg"\. Did you mean "mig"'):
        unweave.evaluate(codes_of(factors), factors, metrics="migg")


def test_suites_hold_known_metrics() -> None:
    for name, members in SUITES.items():
        assert [metric.name for metric in metrics_named(name)] == list(members)
    assert set(SUITES["headline"]) < set(SUITES["study"]) < set(SUITES["all"])


def test_every_metric_gives_the_same_score_whatever_is_asked_with_it() -> None:
    factors = grid(*SIZES, repeats=4)
    codes, log_var = codes_of(factors), np.full((len(factors), 3), -2.0)
    options: dict[str, Any] = {"log_var": log_var, "points": (100, 50)}
    together = unweave.evaluate(codes, factors, metrics="mig, dci, irs, mig_posterior", **options)
    for name in ("mig", "dci", "irs", "mig_posterior"):
        alone = unweave.evaluate(codes, factors, metrics=name, jobs=1, **options)
        assert dict(alone).items() <= dict(together).items()


def test_sampled_codes_are_drawn_from_the_posterior() -> None:
    factors = drawn(SIZES, 400)
    wide = np.full((400, 3), np.log(25.0))
    mean = unweave.evaluate(factors, factors, log_var=wide, metrics="mig")
    sampled = unweave.evaluate(factors, factors, log_var=wide, metrics="mig", representation="sampled")
    assert mean["mig"] > 0.9
    assert sampled["mig"] < 0.2
    assert sampled.scores[0].protocol == "mig[bins20,n400,sampled]"
    with pytest.raises(UnweaveError, match="needs the log variances"):
        unweave.evaluate(factors, factors, metrics="mig", representation="sampled")
    with pytest.raises(UnweaveError, match='must be "mean" or "sampled"; got \'means\''):
        unweave.evaluate(factors, factors, metrics="mig", representation="means")


def test_repeats_give_intervals_and_leave_the_value() -> None:
    factors = drawn(SIZES, 300)
    once = unweave.evaluate(codes_of(factors), factors, metrics="mig, sap")
    often = unweave.evaluate(codes_of(factors), factors, metrics="mig, sap", repeats=12)
    assert dict(once) == dict(often)
    for score in often.scores:
        assert score.low is not None
        assert score.high is not None
        assert score.low <= score.value <= score.high
        assert 0 < score.high - score.low < 0.5
    assert list(often.table()) == ["name", "value", "low", "high", "protocol"]
    assert list(once.table()) == ["name", "value", "protocol"]
    again = unweave.evaluate(codes_of(factors), factors, metrics="mig, sap", repeats=12)
    assert [score.low for score in again.scores] == [score.low for score in often.scores]


def test_results_are_dictionaries_with_matrices_that_go_through_json(tmp_path: Path) -> None:
    factors = drawn(SIZES, 300)
    scores = unweave.evaluate(codes_of(factors), factors, metrics="dci, sap")
    assert set(scores.matrices) == {"mutual_information", "importance", "accuracy"}
    assert all(matrix.shape == (3, 3) for matrix in scores.matrices.values())
    assert (scores.matrices["importance"].argmax(axis=0) == np.arange(3)).all()
    again = Scores.from_dict(json.loads(scores.to_json()))
    assert dict(again) == dict(scores)
    assert again.to_dict() == scores.to_dict()
    assert str(scores).splitlines()[-1].split() == ["sap", f"{scores['sap']:.4f}"]
    figure = scores.plot(tmp_path / "matrix.png")
    assert (tmp_path / "matrix.png").stat().st_size > 5000
    assert [axes.get_title() for axes in figure.axes] == [
        "mutual information (nats)",
        "importance (DCI)",
        "accuracy of one code (SAP)",
    ]
    with pytest.raises(UnweaveError, match=r'no matrix "importances"\. Did you mean "importance"'):
        scores.plot(matrix="importances")
    with pytest.raises(KeyError, match="no score"):
        scores["migg"]
    newer = scores.to_dict() | {"schema": 99}
    with pytest.raises(UnweaveError, match="format 99 by a newer unweave"):
        Scores.from_dict(newer)


def test_function_module_and_transformer_give_the_same_scores() -> None:
    class Half(torch.nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            assert not self.training
            assert images.dtype == torch.float32
            return images.flatten(1)[:, ::300]

    class Transformer:
        def transform(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
            assert rows.ndim == 2
            return rows[:, ::300]

    module = Half()
    options: dict[str, Any] = {"data": TINY, "metrics": "mig, factor_vae_score", "points": POINTS}
    function = unweave.evaluate(lambda images: images.reshape(len(images), -1)[:, ::300], **options)
    assert module.training
    for other in (unweave.evaluate(module, **options), unweave.evaluate(Transformer(), **options)):
        assert dict(other) == pytest.approx(dict(function), abs=1e-6)
    assert module.training
    assert function.images == len(TINY)  # the whole grid, once
    assert function.seconds["encoding"] > 0


def test_encoders_that_give_something_else_are_refused() -> None:
    def three(images: NDArray[np.float32]) -> Any:
        return images, images, images

    with pytest.raises(UnweaveError, match="it gave 3 things"):
        unweave.evaluate(three, data=TINY, metrics="mig", points=POINTS)
    with pytest.raises(UnweaveError, match=r"codes of shape \(60, d\) for 60 images; it gave"):
        unweave.evaluate(lambda images: images, data=TINY, metrics="mig", points=POINTS)
    with pytest.raises(UnweaveError, match="NaN or infinite"):
        unweave.evaluate(lambda images: np.nan * images[:, 0, 0, :2], data=TINY, metrics="mig", points=POINTS)
    with pytest.raises(UnweaveError, match="an encoder needs data to encode"):
        unweave.evaluate(lambda images: images)
    with pytest.raises(
        UnweaveError, match=r"a run, a torch module, an ONNX file, an object with transform.* got int"
    ):
        unweave.evaluate(3, data=TINY)


def test_a_run_is_scored_by_its_codes(run: unweave.Run) -> None:
    scores = unweave.evaluate(run, metrics="mig, elbo", points=POINTS)
    stream = Stream.of(0).child("evaluation")
    factors = TINY.sample_factors(450, stream)
    assert scores["mig"] == pytest.approx(
        mig(run.encode(TINY.observe(factors))[:300], factors[:300]), abs=1e-6
    )
    own = stream.child("likelihood")
    images = TINY.observe(TINY.sample_factors(300, own))
    posterior = run.posterior(images)
    mean, log_var = posterior.mean.numpy(), posterior.log_var.numpy()
    z = mean + np.exp(log_var / 2) * own.child("noise").normal(300, 3)
    s = run.decode(z).astype(np.float64)
    x = images / 255.0
    losses = -(x * np.log(s) + (1 - x) * np.log1p(-s)).sum(axis=(1, 2, 3))
    expected = elbo(losses, mean, log_var)
    for field, value in expected._asdict().items():
        assert scores[f"elbo.{field}"] == pytest.approx(value, rel=1e-4)
    assert scores.score("elbo.kl").representation == ""


def test_looking_up_and_encoding_agree(run: unweave.Run) -> None:
    """Codes that were looked up in the grid are those that encoding the points gives."""
    alone = unweave.evaluate(run, metrics="mig", points=POINTS)
    together = unweave.evaluate(run, metrics="beta_vae_score, mig", points=POINTS)
    assert alone["mig"] == pytest.approx(together["mig"], abs=1e-9)
    assert alone.images == together.images == len(TINY)
    few = unweave.evaluate(run, metrics="mig", points=(20, 9))
    assert few.images == 58, "points are encoded as they are drawn where the grid is larger"


def test_collections_are_scored_by_their_rows() -> None:
    factors = grid(3, 4, repeats=30)[5:]
    images = np.zeros((len(factors), 1, 8, 8), np.uint8)
    images[:, 0, 0, 0], images[:, 0, 0, 1] = factors[:, 0] * 80, factors[:, 1] * 60
    own = from_arrays(images, factors, name="own", grid=False)
    assert isinstance(own, Collection)
    scores = unweave.evaluate(lambda x: x[:, 0, 0, :2], data=own, metrics="mig, factor_vae_score")
    assert scores["mig"] > 0.98
    assert scores["factor_vae_score.eval_accuracy"] == 1.0
    assert scores.images == len(factors)


def test_progress_is_told_by_one_metric_at_a_time() -> None:
    shown, busy = [], False

    def tell(done: int, total: int, what: str = "") -> None:
        nonlocal busy
        assert not busy
        busy = True
        time.sleep(0.01)
        shown.append((done, total, what))
        busy = False

    factors = drawn(SIZES, 100)
    unweave.evaluate(codes_of(factors), factors, metrics="mig, modularity, irs, med", jobs=4, tell=tell)
    assert shown == [(i, 4, "measuring") for i in range(1, 5)]


def test_progress_counts_the_repeats() -> None:
    seen: list[tuple[int, int]] = []
    factors = drawn(SIZES, 100)
    unweave.evaluate(
        codes_of(factors),
        factors,
        metrics="mig, sap",
        repeats=2,
        tell=lambda done, total, *_: seen.append((done, total)),
    )
    assert seen == [(done, 6) for done in range(1, 7)]
