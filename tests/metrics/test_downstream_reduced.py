"""Prediction without the most important codes: a plain loop with scikit-learn, and codes that leak."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier  # type: ignore[import-untyped]

import unweave
from unweave.errors import UnweaveError
from unweave.metrics import DownstreamReduced, downstream_reduced
from unweave.streams import Stream

FACTORS, TEST = Stream.of(0).integers(300, [2, 3]), Stream.of(1).integers(120, [2, 3])
MIXING = np.array([[1.0, 0.4, 0.1], [0.2, 1.0, -0.7]])
Floats = NDArray[np.float64]


def noisy(factors: NDArray[np.int64], seed: int) -> Floats:
    return np.asarray(factors @ MIXING + 0.3 * Stream.of(seed).normal(len(factors), 3))


@pytest.mark.parametrize("removed", [1, 2])
def test_it_is_what_a_plain_loop_with_scikit_learn_gives(removed: int) -> None:
    """The protocol of disentanglement_lib.

    Its reduced_downstream_task.py, run on the same arrays, gave the same numbers up to equally good splits.
    """
    codes, test = noisy(FACTORS, 2), noisy(TEST, 3)
    measured = downstream_reduced(codes, FACTORS, test=(test, TEST), removed=removed)
    expected = np.empty((2, 2))
    for factor in range(2):
        left = [0, 1, 2]
        for place in range(removed):
            trees = GradientBoostingClassifier(random_state=0).fit(codes[:, left], FACTORS[:, factor])
            gone = left.pop(int(trees.feature_importances_.argmax()))
            assert measured.removed[factor, place] == gone
        for target in range(2):
            model = GradientBoostingClassifier(random_state=0).fit(codes[:, left], FACTORS[:, target])
            expected[factor, target] = (model.predict(test[:, left]) == TEST[:, target]).mean()
    assert measured.test_accuracies == pytest.approx(expected, abs=0.02)
    accuracies = measured.test_accuracies
    assert measured.reduced_accuracy == pytest.approx((accuracies[0, 0] + accuracies[1, 1]) / 2)
    assert measured.other_accuracy == pytest.approx((accuracies[0, 1] + accuracies[1, 0]) / 2)
    assert measured.score == pytest.approx(measured.other_accuracy - measured.reduced_accuracy)


def task(encode: Callable[[NDArray[np.int64]], NDArray[Any]], removed: int = 1) -> DownstreamReduced:
    return downstream_reduced(encode(FACTORS), FACTORS, test=(encode(TEST), TEST), removed=removed)


def test_perfect_copied_entangled_and_leaking_codes() -> None:
    perfect = task(lambda factors: factors)
    assert perfect.removed.tolist() == [[0], [1]]
    # Nothing is left of the factor itself; the other one is known.
    assert perfect.test_accuracies == pytest.approx(np.array([[0.5, 1], [1, 1 / 3]]), abs=0.1)
    assert perfect.other_accuracy == 1
    copied = task(lambda factors: np.tile(factors, 2))
    assert (copied.score, copied.reduced_accuracy) == (0, 1)
    both = task(lambda factors: np.tile(factors, 2), removed=2)
    assert np.sort(both.removed).tolist() == [[0, 2], [1, 3]]
    assert both.test_accuracies == pytest.approx(perfect.test_accuracies)
    # One code for both factors: without it, the most frequent value is the answer.
    entangled = task(lambda factors: factors @ [[3], [1]])
    frequent = [(TEST[:, j] == np.bincount(FACTORS[:, j]).argmax()).mean() for j in range(2)]
    assert entangled.test_accuracies == pytest.approx(np.array([frequent, frequent]))
    # A further code says whether the second factor is 0.
    leaking = task(lambda factors: np.hstack([factors, factors[:, 1:] > 0]))
    assert leaking.test_accuracies == pytest.approx(np.array([[0.5, 1], [1, 2 / 3]]), abs=0.1)


def test_fewer_training_rows_than_classes() -> None:
    """Of 12 rows no two have the same value of the second factor; most values are never predicted."""
    factors = np.stack([np.arange(12) % 2, np.arange(12) * 3], axis=1)
    others = np.stack([factors[:, 0], factors[:, 1] + 1], axis=1)
    measured = downstream_reduced(factors, factors, test=(others, others))
    assert measured.test_accuracies[0, 1] == 0  # the code is there, the values are not
    assert measured.test_accuracies[1, 0] == 1


def test_evaluate_has_its_numbers_and_bad_input_is_named() -> None:
    scores = unweave.evaluate(FACTORS, FACTORS, metrics="downstream_reduced")
    assert scores["downstream_reduced.other_accuracy"] == 1
    assert scores["downstream_reduced"] == pytest.approx(1 - scores["downstream_reduced.reduced_accuracy"])
    for removed in (0, 1.5, True):
        with pytest.raises(UnweaveError, match="removed must be a whole number, 1 or more"):
            downstream_reduced(FACTORS, FACTORS, removed=removed)  # type: ignore[arg-type]
    with pytest.raises(UnweaveError, match="removed must be at most the 2 codes; got 3"):
        downstream_reduced(FACTORS, FACTORS, removed=3)
    with pytest.raises(UnweaveError, match="predictor must be one of the known ones"):
        downstream_reduced(FACTORS, FACTORS, predictor="tree")  # type: ignore[arg-type]
