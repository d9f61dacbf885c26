"""Clusters against classes: scores of hand-made clusters, and those of short runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import normalized_mutual_info_score  # type: ignore[import-untyped]

import unweave
from methods.marks import MARKS
from unweave.data import Collection, GroundTruth, conditioned, from_arrays, load
from unweave.errors import UnweaveError
from unweave.evaluation import clusters, found_clusters
from unweave.evaluation.clusters import FoundClusters, agreement, class_frequencies
from unweave.methods import ElasticInfoGAN, InfoGAN, InfoGANCR
from unweave.methods.method import Method
from unweave.runs.run import Run
from unweave.streams import Stream

UNEQUAL = conditioned(MARKS, "weigh(shape=1)=0.5:weigh(shape=2)=0.25")


def test_agreement_of_hand_made_clusters() -> None:
    classes = np.repeat([0, 1, 2], [6, 3, 1])
    assert agreement(2 - classes, classes) == pytest.approx((1.0, 0.0))
    one = agreement(np.zeros(10, int), classes)
    share = np.array([0.6, 0.3, 0.1])
    assert one.nmi == 0.0
    # One row with the entropy of the classes, and three columns of one cluster each.
    assert one.entropy == pytest.approx(-(share * np.log(share)).sum() / 4)
    # The first class is split into two clusters of three images.
    split = agreement([0, 0, 0, 3, 3, 3, 1, 1, 1, 2], classes)
    assert split.entropy == pytest.approx(math.log(2) / 7)
    assert split.nmi < 1
    assert agreement([4, 4], [1, 1]) == (0.0, 0.0)


def test_nmi_is_that_of_scikit_learn() -> None:
    drawn = Stream.of(0).integers(500, [4, 3])
    classes = np.where(drawn[:, 0] == 0, drawn[:, 1], drawn[:, 0])
    expected = normalized_mutual_info_score(drawn[:, 1], classes)
    assert agreement(drawn[:, 1], classes).nmi == pytest.approx(expected)


def test_no_images_are_refused() -> None:
    with pytest.raises(UnweaveError, match="clusters and classes have no rows"):
        agreement([], [])


def test_frequencies_of_classes_are_exact() -> None:
    assert class_frequencies(MARKS, 2) == pytest.approx([1 / 3] * 3)
    assert class_frequencies(UNEQUAL, 2) == pytest.approx(np.array([4, 2, 1]) / 7)
    assert class_frequencies(UNEQUAL, 0) == pytest.approx([1 / 4] * 4)
    held_out = conditioned(MARKS, "hold(shape=0,x<2)")
    assert class_frequencies(held_out, 2) == pytest.approx(np.array([1, 2, 2]) / 5)
    # The first of the authors' 50 imbalances: 6,300, 1,585, 1,408 images of the first three classes, ...
    counts = np.array([6300, 1585, 1408, 6134, 5813, 4882, 2424, 4785, 6125, 3340])
    frequencies = class_frequencies(load("glyphs_centred:ojha_imbalance"), 0)
    assert frequencies == pytest.approx(counts / counts.sum(), abs=1e-4)


def test_a_prior_is_compared_by_rank_and_may_have_more_values() -> None:
    def with_prior(prior: list[float]) -> FoundClusters:
        return FoundClusters("shape", agreement([0], [0]), None, np.array(prior), frequencies, table)

    frequencies, table = np.array([0.5, 0.3, 0.2]), np.array([[3, 0, 0], [0, 0, 0], [0, 2, 2]])
    assert with_prior([0.2, 0.5, 0.3]).prior_distance == pytest.approx(0)
    uniform = with_prior([1 / 3] * 3)
    assert uniform.prior_distance == pytest.approx(0.5 - 1 / 3)
    rmse = math.sqrt(((0.5 - 1 / 3) ** 2 + (1 / 3 - 0.3) ** 2 + (1 / 3 - 0.2) ** 2) / 3)
    assert uniform.prior_rmse == pytest.approx(rmse)
    assert with_prior([0.25] * 4).prior_distance == pytest.approx(0.25 + 0.05)
    assert uniform.used == 2


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Method], Run]:
    """Runs of two steps on marks of unequal frequencies."""

    def train(method: Method) -> Run:
        folder = tmp_path_factory.mktemp("clusters")
        return unweave.train(
            method, UNEQUAL, out=folder, device="cpu", progress=False, steps=2, batch=4, latents=2
        )

    return train


class FirstValues:
    """A judge that reads the first value of each factor."""

    def read(self, images: NDArray[np.float32]) -> NDArray[np.int64]:
        assert images.shape[1:] == MARKS.shape
        return np.zeros((len(images), 3), np.int64)


def test_clusters_of_runs(trained: Callable[[Method], Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "judge_of", lambda *_, **__: FirstValues())
    monkeypatch.setattr(clusters, "PER_CLUSTER", 4)
    monkeypatch.setattr(clusters, "CHUNK", 2)
    run = trained(ElasticInfoGAN(categories=5, noise=2))
    result = found_clusters(run, images=50, generated=True)
    assert result.factor == "shape"
    assert result.table.shape == (5, 3)
    assert result.table.sum() == 50
    factors = UNEQUAL.sample_factors(50, Stream.of(0).child("clusters"))
    codes = run.encode(UNEQUAL.observe(factors))[:, 0] * math.sqrt(2) + 2  # places of 5 categories
    assert result.images == agreement(codes.round().astype(int), factors[:, 2])
    assert result.generated is not None
    assert result.generated.nmi == 0
    assert result.generated.entropy == pytest.approx(math.log(5) / 6), "one column of five rows"
    assert result.prior.sum() == pytest.approx(1)
    assert np.ptp(result.prior) > 0
    uniform = found_clusters(trained(InfoGAN(categories=3, noise=2)), "x", images=50)
    assert uniform.prior_distance == pytest.approx(0.25)
    assert uniform.generated is None
    assert uniform.factor == "x"


def digits(known: int = 40) -> Collection:
    """48 grey images of three classes, 6 : 4 : 2, whose shade is their class; some classes are unknown."""
    classes = np.tile(np.repeat([0, 1, 2], [6, 4, 2]), 4)
    images = np.broadcast_to(classes[:, None, None, None] * 100, (48, 1, 32, 32)).astype(np.uint8)
    numbers = np.where(np.arange(48) < known, classes, np.nan)
    weight = np.linspace(0, 1, 48)
    data = from_arrays(images, {"weight": weight, "digit": numbers}, kinds={"digit": "categorical"})
    assert isinstance(data, Collection)
    return data


class ReadsShades:
    """A judge that was made for a data set of one factor, and reads the second value of it."""

    def __init__(self, truth: GroundTruth) -> None:
        assert [(factor.name, factor.size) for factor in truth.factors] == [("digit", 3)]
        shades = truth.observe([[0], [1], [2]], seed=0)[:, 0, 0, 0]
        assert shades.tolist() == [0, 100, 200], "each value shows images of its class"

    def read(self, images: NDArray[np.float32]) -> NDArray[np.int64]:
        return np.ones((len(images), 1), np.int64)


def test_images_with_a_class_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MNIST, the data of the paper, is no grid: classes are unequal, and other factors are not known."""
    monkeypatch.setattr(clusters, "judge_of", lambda truth, **_: ReadsShades(truth))
    monkeypatch.setattr(clusters, "PER_CLUSTER", 4)
    monkeypatch.setattr(clusters, "CHUNK", 4)
    data = digits()
    options: dict[str, Any] = {"device": "cpu", "progress": False, "steps": 2, "batch": 4, "latents": 1}
    run = unweave.train(ElasticInfoGAN(categories=4, noise=2), data, out=tmp_path, **options)
    found = found_clusters(run, images=30, generated=True)
    assert found.factor == "digit"
    # 22, 12 and 6 of the first 40 images.
    assert found.frequencies == pytest.approx([22 / 40, 12 / 40, 6 / 40])
    assert found.table.shape == (4, 3)
    assert found.table.sum() == 30
    assert found.generated is not None
    assert found.generated.entropy == pytest.approx(math.log(4) / 5), "one column of four rows"
    with pytest.raises(UnweaveError, match='separate values, and "weight" is continuous'):
        found_clusters(run, "weight")
    with pytest.raises(UnweaveError, match="images must be a whole number >= 1; got 0"):
        found_clusters(run, images=0)
    with pytest.raises(UnweaveError, match="found_clusters needs a trained run, or its folder; got int"):
        found_clusters(3)  # type: ignore[arg-type]


def test_what_has_no_clusters_is_refused(trained: Callable[[Method], Run]) -> None:
    with pytest.raises(UnweaveError, match=r"this info_gan has no categories\. Train it with categories=10"):
        found_clusters(trained(InfoGAN(noise=2)))
    with pytest.raises(
        UnweaveError, match=r"info_gan_cr finds no clusters\. Train elastic_info_gan, or info_gan"
    ):
        found_clusters(trained(InfoGANCR()))
