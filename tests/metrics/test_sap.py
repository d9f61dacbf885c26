"""SAP: the published values, scikit-learn's classifier, and codes of every kind."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from metrics.reference_cases import NAMES, load_case
from unweave.errors import UnweaveError
from unweave.metrics.sap import sap, sap_with_accuracies
from unweave.streams import Stream


def sample(
    seed: int, n: int = 300, sizes: tuple[int, ...] = (3, 4)
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    stream = Stream.of(seed).child("sap")
    factors = stream.child("factors").integers(n, sizes)
    return factors @ np.array([[1.0, 0, 0.3], [0.2, 1, 0]]) + 0.3 * stream.normal(n, 3), factors


@pytest.mark.parametrize("name", NAMES)
def test_published_values(reference: Path, name: str) -> None:
    case = load_case(reference, name)
    expected = case.expected["sap_discrete"]
    cells = sap_with_accuracies(*case.train, test=case.test).accuracy
    np.testing.assert_allclose(cells, expected["score_matrix"], atol=2e-3)
    assert abs(sap(*case.train, test=case.test) - expected["SAP_score"]) <= 2e-4
    assert abs(sap(*case.train, continuous=True) - case.expected["sap_continuous"]["SAP_score"]) <= 1e-9


def test_each_cell_is_the_accuracy_of_scikit_learns_classifier() -> None:
    svm = pytest.importorskip("sklearn.svm")
    codes, factors = sample(0)
    test = sample(1)
    cells = sap_with_accuracies(codes, factors, test=test).accuracy
    for i in range(3):
        for j in range(2):
            model = svm.LinearSVC(C=0.01, class_weight="balanced", dual=False, tol=1e-10, max_iter=10_000)
            model.fit(codes[:, [i]], factors[:, j])
            assert cells[i, j] == model.score(test[0][:, [i]], test[1][:, j])


def test_last_third_is_held_out() -> None:
    codes, factors = sample(2)
    assert sap(codes, factors) == sap(codes[:200], factors[:200], test=(codes[200:], factors[200:]))


@given(seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=15)
def test_order_and_sign_of_codes_and_order_of_points_do_not_matter(seed: int) -> None:
    (codes, factors), test = sample(seed), sample(seed + 10_000)
    score = sap(codes, factors, test=test)
    order = Stream.of(seed).permutations(1, len(codes))[0]
    assert 0 <= score <= 1
    assert sap(codes[order], factors[order], test=test) == pytest.approx(score, abs=1e-12)
    turned = np.array([-1.0, 1.0, -1.0])
    assert sap(codes[:, ::-1] * turned, factors, test=(test[0][:, ::-1] * turned, test[1])) == pytest.approx(
        score, abs=1e-12
    )


def test_a_copied_code_scores_zero() -> None:
    codes, factors = sample(3)
    assert sap(np.hstack([codes, codes]), factors) == 0
    assert sap(np.hstack([codes, codes]), factors, continuous=True) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("continuous", [False, True])
def test_a_single_code_is_compared_with_a_dead_one(continuous: bool) -> None:
    codes, factors = sample(4)
    alone = sap(codes[:, :1], factors, continuous=continuous)
    together = np.column_stack([codes[:, 0], np.full(len(codes), 3.7)])
    assert alone == sap(together, factors, continuous=continuous)
    assert alone > 0.05


def test_a_dead_code_guesses_the_largest_class() -> None:
    factors = np.repeat([0, 1, 2], [20, 50, 30])[:, None]
    dead = np.full((100, 1), 3.7)
    score = sap_with_accuracies(dead, factors, test=(dead, factors))
    assert score.score == 0
    assert score.accuracy.tolist() == [[0.5]]


def test_a_dead_code_does_not_depend_on_the_order_of_labels() -> None:
    """With 10% of one value a dead code used to be right in 0.9 or 0.1 of the points."""
    rare = Stream.of(0).uniform(900, 1) < 0.1
    codes = Stream.of(1).normal(900, 2)
    codes[:, 0] += 6 * rare[:, 0]
    with_dead = np.column_stack([codes, np.zeros(900), np.full(900, 3.7)])
    scores = []
    for turned in (False, True):
        factors = (rare ^ turned).astype(np.int64)
        cells = sap_with_accuracies(with_dead, factors).accuracy[:, 0]
        assert cells[2] == cells[3] == 0.5
        scores.append([sap(codes, factors), sap(with_dead, factors), sap(codes[:, :1], factors)])
    np.testing.assert_allclose(scores[0], scores[1], atol=0.01)
    assert scores[0][0] == pytest.approx(scores[0][1], abs=0.1)  # of a rival at 0.44 and one at 0.5


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1e20, 1e300])
@pytest.mark.parametrize("continuous", [False, True])
def test_extreme_codes_give_a_number(scale: float, continuous: bool) -> None:
    codes, factors = sample(5)
    assert 0 <= sap(codes * scale, factors, continuous=continuous) <= 1


def test_half_precision_and_whole_numbers() -> None:
    factors = sample(6)[1]
    expected = sap(factors.astype(np.float64), factors)
    assert sap(factors.astype(np.float16), factors) == sap(factors.astype(np.int8), factors) == expected


def test_values_that_only_the_test_data_have_are_never_right() -> None:
    codes, factors = sample(7)
    other = np.full_like(factors, 9)
    assert (sap_with_accuracies(codes, factors, test=(codes, other)).accuracy == 0).all()


def test_squared_correlation_by_hand() -> None:
    # (0, 1, 2) and (0, 0.5, 1.5): covariance 0.75, variances 1 and 7/12. (1, 0, 1): 1/12, 1/3 and 7/12.
    codes = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]])
    assert sap(codes, np.array([[0.0], [0.5], [1.5]]), continuous=True) == pytest.approx(27 / 28 - 1 / 28)
    nearly_dead = codes * [1.0, 1e-7]
    assert sap(nearly_dead, np.array([[0.0], [0.5], [1.5]]), continuous=True) == pytest.approx(27 / 28)


def test_inputs_stay_as_they_were() -> None:
    codes, factors = sample(8)
    before = codes.copy(), factors.copy()
    sap(codes, factors)
    np.testing.assert_array_equal(codes, before[0])
    np.testing.assert_array_equal(factors, before[1])


def test_transposed_codes_are_refused() -> None:
    codes, factors = sample(9)
    with pytest.raises(UnweaveError, match="transpose"):
        sap(codes.T, factors)
