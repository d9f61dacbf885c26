"""Scores of sparse features, against scikit-learn, cases worked out by hand, and chance."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from sklearn.metrics import f1_score, mutual_info_score, roc_auc_score  # type: ignore[import-untyped]

import unweave
from unweave import UnweaveError
from unweave.sparse import SparseSpec, concept_table, score, train
from unweave.sparse.detectors import (
    LEVELS,
    areas,
    concepts_of,
    correlations,
    detectors,
    f1_scores,
    read_features,
    thresholds,
)
from unweave.sparse.scores import _measured

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def drawn_factors(n: int, sizes: tuple[int, ...], seed: int = 0) -> Ints:
    return np.random.default_rng(seed).integers(0, sizes, (n, len(sizes)))


def sparse_noise(n: int, m: int, share: float = 0.2) -> Floats:
    generator = np.random.default_rng(1)
    # Few levels, so that many activations are equal.
    return generator.integers(1, 5, (n, m)) * (generator.random((n, m)) < share) / 4


def test_counts_are_those_of_scikit_learn() -> None:
    factors, features = drawn_factors(300, (3, 4)), sparse_noise(300, 5)
    table, checked = read_features(features, factors)
    labels = concepts_of(checked, ("a", "b"), None).labels
    limits = thresholds(table)
    on = detectors(table, limits).toarray()
    f1 = f1_scores(labels.T @ on, on.sum(axis=0), labels.sum(axis=0)[:, None])
    area, correlation = areas(table, labels), correlations(table, labels)
    assert len(labels.T) == 7
    for c, truth in enumerate(labels.T):
        for i, feature in enumerate(features.T):
            assert area[c, i] == pytest.approx(roc_auc_score(truth, feature))
            assert correlation[c, i] == pytest.approx(np.corrcoef(truth, feature)[0, 1])
            for level in range(len(LEVELS)):
                expected = f1_score(truth, feature > limits[level, i], zero_division=0)
                assert f1[c, level * 5 + i] == pytest.approx(expected)


def test_information_is_that_of_scikit_learn() -> None:
    factors = drawn_factors(900, (3, 4))
    features = np.stack([(factors[:, 0] == 1) * 1.0, factors[:, 1] * 1.0, sparse_noise(900, 1)[:, 0]], axis=1)
    measured = _measured(features, factors, None, None)
    limits, rows = measured.limits, 600
    information = measured._information()
    for i in range(3):
        levels = (features[:rows, i, None] > limits[:, i]).sum(axis=1)
        for j in range(2):
            truth = factors[:rows, j]
            entropy = mutual_info_score(truth, truth)
            bias = (len(np.unique(levels)) - 1) * (len(np.unique(truth)) - 1) / (2 * rows)
            expected = max(mutual_info_score(levels, truth) - bias, 0) / entropy
            assert information[i, j] == pytest.approx(expected, abs=1e-9)


def test_features_that_are_the_concepts_score_perfectly() -> None:
    factors = drawn_factors(1200, (3, 5))
    features = np.concatenate([np.eye(3)[factors[:, 0]], 2 * np.eye(5)[factors[:, 1]]], axis=1)
    scores = score(features, factors, names=["shape", "size"])
    for name in ("mcc", "auc", "f1", "f1_split", "splitting"):
        assert scores[name] == pytest.approx(1)
    assert scores["monosemanticity"] > 0.99
    assert (scores["absorption"], scores["active"], scores["dead"]) == (0, 2, 0)
    assert scores.points == (800, 400)
    assert scores.score("f1").protocol == "sparse_f1[intervals8]"
    table = concept_table(features, factors, names=["shape", "size"])
    assert table["concept"].tolist()[:4] == ["shape = 0", "shape = 1", "shape = 2", "size = 0"]
    assert table["feature"].tolist() == list(range(8))


def test_noise_scores_chance() -> None:
    factors = drawn_factors(3000, (4, 4))
    features = np.abs(np.random.default_rng(2).normal(size=(3000, 60)))
    scores = score(features * (features > 1.5), factors)
    assert scores["mcc"] == pytest.approx(0, abs=0.03)
    assert scores["auc"] == pytest.approx(0.5, abs=0.02)
    assert scores["f1"] <= 2 * 0.25 / 1.25 + 0.03
    assert scores["absorption"] == 0


def test_features_of_two_factors_are_not_monosemantic() -> None:
    """One feature for each pair of values tells both factors equally: p = (1/2, 1/2), so the score is 0."""
    factors = drawn_factors(6000, (3, 3))
    pairs = np.eye(9)[factors[:, 0] * 3 + factors[:, 1]]
    assert score(pairs, factors)["monosemanticity"] < 0.05
    pure = np.eye(3)[factors[:, 0]]
    both = score(np.concatenate([pairs, pure], axis=1), factors)["monosemanticity"]
    assert 0.2 < both < 0.8


def test_a_concept_is_split_among_the_features_that_share_it() -> None:
    factors = drawn_factors(3000, (4, 6))
    # The first value of the first factor has one feature for each third of the second factor's values.
    shares = [(factors[:, 0] == 0) & (factors[:, 1] // 2 == part) for part in range(3)]
    others = [factors[:, 0] == value for value in (1, 2, 3)]
    features = np.stack([*shares, *others], axis=1) * 1.0
    table = concept_table(features, factors[:, :1])
    assert [sorted(split) for split in table["features"]] == [[0, 1, 2], [3], [4], [5]]
    assert table["f1_split"].tolist() == [1, 1, 1, 1]
    assert table["f1"][0] == pytest.approx(0.5, abs=0.05)  # recall 1/3, precision 1
    assert score(features, factors[:, :1])["splitting"] == 1.5


def test_a_concept_is_absorbed_by_features_of_a_few_of_its_rows() -> None:
    """As in Chanin et al., 2024: the feature of a concept is silent where one of a part of its rows fires."""
    factors = drawn_factors(9000, (2, 40))
    holds, part = factors[:, 0] == 1, factors[:, 1]
    absorbing = [holds & (part == value) for value in range(4)]  # 1/40 of the rows of the concept each
    features = np.stack([holds & (part >= 4), *absorbing], axis=1) * 1.0
    (row,) = concept_table(features, factors[:, :1]).itertuples()
    assert row.features == (0,)
    truth = part[6000:][holds[6000:]]
    assert row.absorption == pytest.approx((truth < 4).mean())
    silent = np.stack([holds & (part >= 4)], axis=1) * 1.0
    assert score(silent, factors[:, :1])["absorption"] == 0  # nothing else fires there


def test_more_features_split_concepts_further() -> None:
    generator = np.random.default_rng(0)
    factors = drawn_factors(1500, (4,))
    directions = np.linalg.qr(generator.normal(size=(10, 10)))[0]
    within = generator.normal(size=(1500, 2)) @ directions[4:6]
    codes = 3 * directions[factors[:, 0]] + 1.5 * within
    few, many = (
        train(codes, SparseSpec(m, k=1, steps=200, batch=64, learning_rate=1e-2), device="cpu")
        for m in (4, 40)
    )
    splitting = [score(model.encode(codes), factors)["splitting"] for model in (few, many)]
    assert splitting[0] <= 1.5
    assert splitting[1] > 2


def test_values_are_joined_to_intervals() -> None:
    factors = np.arange(30)[:, None] % 10
    concepts = concepts_of(factors, ("x",), 4).listed
    assert [str(concept) for concept in concepts] == ["x = 0 to 2", "x = 3 to 4", "x = 5 to 7", "x = 8 to 9"]
    assert len(concepts_of(factors, ("x",), None).listed) == 10
    binary = concepts_of(factors % 2, ("on",), 8)
    assert [str(binary.listed[c]) for c in binary.scored] == ["on = 1"]


def test_sparse_arrays_score_like_dense_ones_and_stay_as_they_are() -> None:
    factors, features = drawn_factors(600, (3, 4)), sparse_noise(600, 12)
    for sparse in (csr_array(features), csc_array(features)):
        sparse.data[:5] = 0  # zeros that are stored
        stored = sparse.data.copy()
        assert dict(score(sparse, factors)) == dict(score(sparse.toarray(), factors))
        np.testing.assert_array_equal(sparse.data, stored)


def test_features_that_never_fire_score_nothing() -> None:
    scores = score(np.zeros((60, 2)), drawn_factors(60, (3, 4)))
    assert {name: scores[name] for name in ("mcc", "auc", "f1", "monosemanticity", "active", "dead")} == {
        "mcc": 0, "auc": 0.5, "f1": 0, "monosemanticity": 0, "active": 0, "dead": 1,
    }  # fmt: skip


def test_evaluate_takes_the_features() -> None:
    factors = drawn_factors(900, (3, 4))
    codes = np.concatenate([np.eye(3)[factors[:, 0]], np.eye(4)[factors[:, 1]]], axis=1)
    model = train(codes, SparseSpec(16, k=2, steps=50, batch=64), device="cpu")
    dense = unweave.evaluate(model.encode(codes), factors, metrics="mig, mcc")
    sparse = unweave.evaluate(model.encode(codes, sparse=True), factors, metrics="mig, mcc")
    assert dict(dense) == dict(sparse)


def test_bad_input_is_refused() -> None:
    factors, features = drawn_factors(30, (3, 2)), sparse_noise(30, 4)
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: score(-features, factors), "features must be >= 0, as those of a sparse autoencoder"),
        (lambda: score(features * np.nan, factors), "features must be finite"),
        (lambda: score(csr_array(features * np.nan), factors), "features must be finite"),
        (lambda: score(features[:20], factors), "rows like factors"),
        (lambda: score(csr_array(features[:20]), factors), "rows like factors"),
        (lambda: score(features, factors * 0.5), "discrete factors must be whole numbers"),
        (lambda: score(features, factors, names=["a"]), "names must name the 2 factors; got 1."),
        (lambda: score(features, factors, intervals=1), "intervals must be a whole number >= 2, or None"),
        (lambda: score(features[:2], [[0], [1]]), "holding out the last third needs at least 3 rows; got 2."),
    ]
    for call, sentence in cases:
        with pytest.raises(UnweaveError) as error:
            call()
        assert sentence in str(error.value)
