"""Explicitness: the published values, scikit-learn's area, dead codes and missing values."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from metrics.reference_cases import NAMES, load_case
from unweave.errors import UnweaveError
from unweave.metrics.explicitness import _mean_area, explicitness
from unweave.streams import Stream


def sample(seed: int, n: int = 300) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    stream = Stream.of(seed).child("explicitness")
    factors = stream.child("factors").integers(n, (3, 4))
    return factors @ np.array([[1.0, 0, 0.3], [0.2, 1, 0]]) + 0.5 * stream.normal(n, 3), factors


@pytest.mark.parametrize("name", NAMES)
def test_published_values(reference: Path, name: str) -> None:
    case = load_case(reference, name)
    expected = case.expected["modularity_explicitness"]
    if "error" in expected:
        pytest.skip("the published metric stopped with an error here")
    score = explicitness(*case.train, test=case.test)
    assert abs(score.train - expected["explicitness_score_train"]) <= 1e-5
    assert abs(score.test - expected["explicitness_score_test"]) <= 1e-5


def test_dead_codes_change_nothing(reference: Path) -> None:
    case = load_case(reference, "dsp_dead_dims")
    codes, test_codes = case.train[0], case.test[0]
    with_dead = explicitness(*case.train, test=case.test)
    without = explicitness(codes[:, :5], case.train[1], test=(test_codes[:, :5], case.test[1]))
    np.testing.assert_allclose(with_dead, without, atol=1e-6)


def test_a_code_that_is_dead_in_training_only_changes_nothing() -> None:
    (codes, factors), (test_codes, test_factors) = sample(0), sample(1)
    dead, alive = np.full((300, 1), 0.1), Stream.of(0).normal(300, 1)
    more = explicitness(
        np.hstack([codes, dead]), factors, test=(np.hstack([test_codes, alive]), test_factors)
    )
    np.testing.assert_allclose(more, explicitness(codes, factors, test=(test_codes, test_factors)), atol=1e-9)


def test_all_codes_dead_is_chance() -> None:
    factors = sample(2)[1]
    assert explicitness(np.full((300, 2), 3.7), factors) == (0.5, 0.5)


@given(seed=st.integers(0, 1000), ties=st.booleans())
@settings(deadline=None, max_examples=15)
def test_area_counts_pairs_in_the_right_order(seed: int, ties: bool) -> None:
    stream = Stream.of(seed)
    truth = stream.integers(25, [3])[:, 0]
    truth[:3] = [0, 1, 2]
    scores = stream.child("scores").uniform(25, 3).round(1 if ties else 9)
    areas = []
    for value in range(3):
        inside, outside = scores[truth == value, value], scores[truth != value, value]
        wins = (inside[:, None] > outside) + 0.5 * (inside[:, None] == outside)
        areas.append(wins.mean())
    assert _mean_area(scores, truth, np.arange(3)) == pytest.approx(np.mean(areas))


def test_whole_metric_is_that_of_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    multiclass = pytest.importorskip("sklearn.multiclass")
    metrics = pytest.importorskip("sklearn.metrics")
    (codes, factors), (test_codes, test_factors) = sample(3), sample(4)
    x, y = ((c - codes.mean(axis=0)) / codes.std(axis=0) for c in (codes, test_codes))
    train: list[float] = []
    test: list[float] = []
    for j in range(2):
        one = linear_model.LogisticRegression(solver="liblinear", tol=1e-10)
        model = multiclass.OneVsRestClassifier(one).fit(x, factors[:, j])
        for areas, z, truth in ((train, x, factors), (test, y, test_factors)):
            areas.append(metrics.roc_auc_score(truth[:, j], model.predict_proba(z), multi_class="ovr"))
    score = explicitness(codes, factors, test=(test_codes, test_factors))
    np.testing.assert_allclose(list(score), [float(np.mean(train)), float(np.mean(test))], atol=1e-6)


@given(seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=10)
def test_order_sign_scale_and_place_do_not_matter(seed: int) -> None:
    (codes, factors), (test_codes, test_factors) = sample(seed, 90), sample(seed + 10_000, 60)
    score = explicitness(codes, factors, test=(test_codes, test_factors))

    def changed(z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(z[:, ::-1] * [-1e30, 2e-30, 3.0] + [0.0, 0.0, 100.0])

    other = explicitness(changed(codes), factors, test=(changed(test_codes), test_factors))
    np.testing.assert_allclose(score, other, atol=1e-4)
    order = Stream.of(seed).permutations(1, len(codes))[0]
    shuffled = explicitness(codes[order], factors[order], test=(test_codes, test_factors))
    np.testing.assert_allclose(score, shuffled, atol=1e-4)
    assert 0 <= score.test <= score.train + 0.3 <= 1.3


def test_copied_codes_and_extreme_codes_give_a_number() -> None:
    codes, factors = sample(5)
    for scale in (1e-300, 1e300):
        score = explicitness(np.hstack([codes, codes]) * scale, factors)
        assert all(0.5 < value <= 1 for value in score)
    half = explicitness(codes.astype(np.float16), factors)
    np.testing.assert_allclose(half, explicitness(codes, factors), atol=0.01)


def test_values_missing_on_one_side_are_left_out() -> None:
    (codes, factors), (test_codes, test_factors) = sample(6), sample(7)
    kept = test_factors[:, 1] != 3
    fewer = explicitness(codes, factors, test=(test_codes[kept], test_factors[kept]))
    assert 0.5 < fewer.test < 1
    renamed = np.where(test_factors == 2, 77, test_factors)
    assert 0.5 < explicitness(codes, factors, test=(test_codes, renamed)).test < 1


def test_test_data_of_one_value_are_refused() -> None:
    codes, factors = sample(8)
    constant = np.column_stack([factors[:, 0], np.zeros(300, int)])
    with pytest.raises(UnweaveError, match="factor 1 has one"):
        explicitness(codes, factors, test=(codes, constant))


def test_transposed_codes_are_refused() -> None:
    codes, factors = sample(9)
    with pytest.raises(UnweaveError, match="transpose"):
        explicitness(codes.T, factors)
