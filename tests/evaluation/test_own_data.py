"""Scores of a user's own data: test images were never trained on, and what cannot be measured is noted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import unweave
from metrics.grids import grid
from training.tiny import TINY
from unweave.data import Collection, from_arrays, load
from unweave.data.grid import Factor, GroundTruth
from unweave.errors import UnweaveError
from unweave.evaluation.encoders import Posterior
from unweave.evaluation.score_store import evaluate_run
from unweave.evaluation.sources import GroundTruthSource
from unweave.metrics.table import METRICS
from unweave.streams import Stream

POINTS = (400, 200)
FACTORS = grid(3, 4, 5)
IMAGES = Stream.of(0).bytes(60, 64).reshape(60, 1, 8, 8)
OPTIONS: dict[str, Any] = {"points": POINTS, "metrics": "dci, mig"}


def pixels(images: NDArray[np.float32]) -> NDArray[np.float32]:
    return images.reshape(len(images), -1)[:, :6]


def means(images: NDArray[np.uint8]) -> Posterior:
    return Posterior(images.reshape(len(images), -1)[:, :6] / 255, None)


def noise_grid() -> GroundTruth:
    """Noise whose labels mean nothing: what is predicted of unseen images is chance."""
    own = from_arrays(IMAGES, FACTORS)
    assert isinstance(own, GroundTruth)
    return own


def test_images_of_noise_are_not_predicted() -> None:
    scores = unweave.evaluate(pixels, data=noise_grid(), **OPTIONS)
    assert scores["dci.informativeness_train"] == 1.0
    assert scores["dci.informativeness_test"] < 0.5  # chance is about 0.26
    assert scores.notes == (
        "own has 60 images; scores from fewer than 1,000 are rough.",
        "Test points show 20 images of own, training points 40 others.",
    )
    assert scores.score("dci.completeness").protocol == "dci[trees100,depth3,rate0.1,n400+200,disjoint,mean]"
    assert scores.score("mig").protocol == "mig[bins20,n400,mean]"  # nothing is held out from counting


def test_points_of_one_image_are_on_one_side() -> None:
    source = GroundTruthSource(means, noise_grid())
    for seed in range(3):
        sample = source.sample(POINTS, "mean", Stream.of(seed))
        assert not {*map(tuple, sample.codes)} & {*map(tuple, sample.test_codes)}
        assert len({*map(tuple, sample.test_factors)}) == 20
        assert (len(sample.codes), len(sample.test_codes)) == POINTS


def test_rows_not_combinations_are_held_out_where_a_combination_has_several_images() -> None:
    own = from_arrays(IMAGES, FACTORS[:, :1])
    assert isinstance(own, GroundTruth)
    assert own.stochastic
    sample = GroundTruthSource(means, own).sample(POINTS, "mean", Stream.of(0))
    assert not {*map(tuple, sample.codes)} & {*map(tuple, sample.test_codes)}
    assert set(sample.test_factors[:, 0]) == set(sample.factors[:, 0]) == {0, 1, 2}
    assert sample.notes == ("Test points show 20 images of own, training points 40 others.",)


def test_data_sets_of_the_catalogue_keep_the_published_protocol() -> None:
    factors = tuple(Factor(str(size), size) for size in (4, 24, 183))  # those of Cars3D
    named = {"name": "cars3d", "factors": factors}

    def render(chosen: NDArray[np.int64], _stream: Stream) -> NDArray[np.uint8]:
        return np.ascontiguousarray(
            np.broadcast_to(chosen[:, :1, None, None], (len(chosen), 1, 8, 8)), np.uint8
        )

    cars = GroundTruth(**named, shape=(1, 8, 8), render=render, card=TINY.card, source="")  # type: ignore[arg-type]
    source = GroundTruthSource(means, cars)
    assert not source.disjoint
    sample = source.sample((10_000, 5_000), "mean", Stream.of(7))
    drawn = cars.sample_factors(15_000, Stream.of(7))
    np.testing.assert_array_equal(sample.factors, drawn[:10_000])
    np.testing.assert_array_equal(sample.test_factors, drawn[10_000:])
    [note] = sample.notes
    assert note.startswith("43% of the test points show an image that is also a training point")
    assert GroundTruthSource(means, noise_grid()).disjoint
    assert GroundTruthSource(means, load("glyphs_centred")).disjoint
    assert not GroundTruthSource(means, load("glyphs")).disjoint
    renamed = from_arrays(IMAGES, FACTORS, name="cars3d")  # a name alone does not make it that data set
    assert isinstance(renamed, GroundTruth)
    assert GroundTruthSource(means, renamed).disjoint


def test_one_image_cannot_be_held_out() -> None:
    own = from_arrays(IMAGES[:1].repeat(4, axis=0), [[0], [1], [0], [1]])
    with pytest.raises(UnweaveError, match="own has one image only, so none can be held out"):
        unweave.evaluate(pixels, data=own, metrics="sap", points=POINTS)


def test_constant_factors_are_left_out_as_abilities_promise() -> None:
    constant = from_arrays(
        IMAGES, np.hstack([FACTORS, np.zeros((60, 1), np.int64)]), names=["a", "b", "c", "one"]
    )
    plain = from_arrays(IMAGES, FACTORS, names=["a", "b", "c"])
    asked = {"points": POINTS, "metrics": "mig, sap, beta_vae_score"}
    scores = unweave.evaluate(pixels, data=constant, **asked)  # type: ignore[arg-type]
    assert scores.factors == ("a", "b", "c")
    assert scores.notes[0] == 'factor "one" was left out: it has one value only.'
    assert dict(scores) == dict(unweave.evaluate(pixels, data=plain, **asked))  # type: ignore[arg-type]


def test_continuous_factors_of_collections_are_measured() -> None:
    values = {"size": Stream.of(1).normal(60, 1)[:, 0], "shape": FACTORS[:, 0], "x": FACTORS[:, 1]}
    own = from_arrays(IMAGES, values)
    assert isinstance(own, Collection)
    scores = unweave.evaluate(pixels, data=own, metrics="quick")
    assert scores.factors == ("size", "shape", "x")
    assert scores.notes[0].startswith('Kinds of factors: "size" is continuous, "shape" is ordinal')
    assert "factor-quantiles20" in unweave.evaluate(pixels, data=own, metrics="mig").scores[0].protocol


def test_images_without_factors_have_unsupervised_scores(tmp_path: Path) -> None:
    images = np.zeros((60, 1, 32, 32), np.uint8)
    images[:, :, :8, :8] = IMAGES
    own = from_arrays(images, name="photos")
    settings: dict[str, Any] = {"steps": 2, "batch": 4, "latents": 3, "device": "cpu"}
    run = unweave.train(unweave.methods.VAE(), own, out=tmp_path, **settings)
    scores = unweave.evaluate(run, metrics="study", points=POINTS)
    assert {score.metric for score in scores.scores} == {
        *(metric.name for metric in METRICS if metric.needs == "unsupervised"),
        "elbo",
    }
    [note] = scores.notes
    assert note.endswith("and downstream_trees were left out: photos has no factors.")
    assert not scores.matrices
    with pytest.raises(
        UnweaveError, match=r"nothing that was asked .* photos has no factors\. Metrics that need no"
    ):
        unweave.evaluate(run, points=POINTS)
    with pytest.raises(UnweaveError, match=r"^mig cannot be measured here: photos has no factors\.$"):
        unweave.evaluate(run, metrics="mig", points=POINTS)
    [kept] = evaluate_run(run, "quick")
    assert not kept
    assert kept.notes == ("mig, sap, modularity and explicitness were left out: photos has no factors.",)


def test_runs_on_collections_with_factors_have_an_elbo(tmp_path: Path) -> None:
    images = TINY.observe(TINY.factors_at(np.arange(60)))
    own = from_arrays(images, TINY.factors_at(np.arange(60)), grid=False)
    settings: dict[str, Any] = {"steps": 2, "batch": 4, "latents": 3, "device": "cpu"}
    run = unweave.train(unweave.methods.VAE(), own, out=tmp_path, **settings)
    scores = unweave.evaluate(run, metrics="elbo, mig", points=POINTS)
    assert scores["elbo.elbo"] < 0
    assert scores["elbo.elbo"] == pytest.approx(-scores["elbo.reconstruction"] - scores["elbo.kl"])


@pytest.mark.usefixtures("without_perceptrons")
def test_what_says_nothing_of_one_factor_is_left_out_of_suites_and_noted_by_name() -> None:
    codes, factors = Stream.of(2).normal(200, 3), Stream.of(3).integers(200, [4])
    suite = unweave.evaluate(codes, factors, metrics="all", points=(60, 30))
    names = ["beta_vae_score", "factor_vae_score", "modularity", "med"]
    left_out = [metric.name for metric in METRICS if metric.least_factors > 1]
    assert set(names) <= set(left_out)
    assert not {score.metric for score in suite.scores} & set(left_out)
    assert suite.notes[0] == (
        f"{', '.join(left_out[:-1])} and {left_out[-1]} were left out: there is only one factor, and nothing "
        "to compare it with."
    )
    assert suite.notes[-1] == (
        "dci.disentanglement, dci_histogram.disentanglement, dci_svm.disentanglement, "
        "dci_forest.disentanglement, dci_lasso.disentanglement and infomec.modularity compare factors with "
        "each other, and with one factor that says nothing."
    )
    alone = unweave.evaluate(codes, factors, metrics=names)
    assert {value for key, value in alone.items() if "active" not in key} == {1.0}
    assert alone.notes == (
        "beta_vae_score.train_accuracy, beta_vae_score.eval_accuracy, factor_vae_score.train_accuracy, "
        "factor_vae_score.eval_accuracy, modularity and med compare factors with each other, and with one "
        "factor that says nothing.",
    )
