"""Prediction under a shift: a plain loop with scikit-learn, and codes whose accuracy is known."""

from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier  # type: ignore[import-untyped]

import unweave
from unweave.errors import UnweaveError
from unweave.metrics import Representation, downstream_strong

SIZES = (3, 4, 2)
Factors = NDArray[np.int64]
Floats = NDArray[np.float64]


def recorded(
    encode: Callable[[Factors], Floats], sizes: tuple[int, ...] = SIZES
) -> tuple[Representation, list[Factors]]:
    """A representation, and the factors that were asked for: training and test points in turn."""
    asked: list[Factors] = []

    def keep(factors: Factors, _stream: object) -> Floats:
        asked.append(factors.copy())
        return encode(factors)

    return Representation(keep, sizes), asked


def test_it_is_what_a_plain_loop_with_scikit_learn_gives() -> None:
    """The protocol of disentanglement_lib on the same points, with its predictor.

    Its strong_downstream_task.py, run on these points and codes with the same shifts, gave the same numbers.
    """

    def encode(factors: Factors) -> Floats:
        return np.asarray(factors.sum(axis=1, keepdims=True), np.float64)

    representation, asked = recorded(encode)
    measured = downstream_strong(representation, train=150, test=80, experiments=3)
    pairs = iter(zip(asked[::2], asked[1::2], strict=True))

    def accuracies(train: Factors, test: Factors, target: int) -> tuple[float, float]:
        model = GradientBoostingClassifier(random_state=0).fit(encode(train), train[:, target])
        both = (float((model.predict(encode(part)) == part[:, target]).mean()) for part in (train, test))
        return next(both), next(both)

    train, test = next(pairs)
    assert (len(train), len(test)) == (150, 80)
    plain = [accuracies(train, test, target) for target in range(3)]
    for target in range(3):
        found = []
        for shifted_train, shifted_test in islice(pairs, 3):
            [column] = np.flatnonzero((shifted_train != train).any(axis=0))
            assert column != target
            [value] = set(shifted_train[:, column].tolist())
            assert value not in shifted_test[:, column]
            rest = np.delete(shifted_test, column, axis=1)
            np.testing.assert_array_equal(rest, np.delete(test, column, axis=1))
            found.append(accuracies(shifted_train, shifted_test, target))
        assert measured.strong_train_accuracies[target] == pytest.approx(np.mean(found, axis=0)[0])
        assert measured.strong_test_accuracies[target] == pytest.approx(np.mean(found, axis=0)[1])
    assert next(pairs, None) is None
    assert np.stack([measured.train_accuracies, measured.test_accuracies], 1) == pytest.approx(
        np.array(plain)
    )
    assert measured.test_accuracy == pytest.approx(np.mean(plain, axis=0)[1])
    assert measured.strong_test_accuracy == pytest.approx(measured.strong_test_accuracies.mean())
    assert measured.gap == pytest.approx(1 - measured.strong_test_accuracy / measured.test_accuracy)
    assert measured.gap > 0.05


def test_perfect_and_leaking_codes_lose_nothing() -> None:
    """Trees look at the code of the target only, whatever else the other codes show."""
    perfect = Representation(lambda factors, _: factors * 0.5, SIZES)
    leaking = Representation(lambda factors, _: np.hstack([factors, factors[:, ::-1] ** 2]), SIZES)
    for representation in (perfect, leaking):
        task = downstream_strong(representation, train=300, test=100, experiments=4)
        assert (task.test_accuracy, task.strong_test_accuracy, task.gap) == (1, 1, 0)


def test_entangled_codes_are_wrong_wherever_they_were_not_trained() -> None:
    """The code is (y + s) mod 2: known for one value of s it says y, and for the other one the opposite."""
    representation = Representation(lambda factors, _: factors.sum(axis=1, keepdims=True) % 2, (2, 2))
    task = downstream_strong(representation, train=100, test=50, experiments=2)
    assert (task.strong_train_accuracies == 1).all()
    assert (task.strong_test_accuracies == 0).all()
    assert task.gap == 1
    # y + s: what is learned from 0 and 1 is asked about 1 and 2, or the other way round.
    representation, asked = recorded(lambda factors: factors.sum(axis=1, keepdims=True) * 1.0, (2, 2))
    task = downstream_strong(representation, train=100, test=50, experiments=1)
    for target, train, test in zip((0, 1), asked[2::2], asked[3::2], strict=True):
        answer = 1 - train[0, 1 - target]
        assert task.strong_test_accuracies[target] == (test[:, target] == answer).mean()


def test_a_single_factor_has_no_shift_and_constant_factors_are_known() -> None:
    alone = downstream_strong(Representation(lambda factors, _: factors, (3,)), train=50, test=20)
    assert (alone.test_accuracy, alone.strong_test_accuracy) == (1, 1)
    constant = Representation(lambda factors, _: np.zeros((len(factors), 1)), (4, 1))
    task = downstream_strong(constant, train=50, test=20)
    assert task.test_accuracies[1] == task.strong_test_accuracies[1] == 1
    assert task.test_accuracies[0] == task.strong_test_accuracies[0] < 0.6


def test_rows_are_refused_and_bad_counts_named() -> None:
    factors = unweave.Stream.of(0).integers(60, [2, 3])
    with pytest.raises(UnweaveError, match="downstream_strong needs a representation of all combinations"):
        downstream_strong(Representation.from_rows(factors, factors))
    with pytest.raises(UnweaveError, match="downstream_strong needs a representation of all combinations"):
        unweave.evaluate(factors, factors, metrics="downstream_strong")
    representation = Representation(lambda factors, _: factors, (2, 2))
    for name in ("train", "test", "experiments"):
        with pytest.raises(UnweaveError, match=f"{name} must be a whole number, 1 or more; got 0"):
            downstream_strong(representation, **{name: 0})  # type: ignore[arg-type]
    with pytest.raises(UnweaveError, match="predictor must be one of the known ones"):
        downstream_strong(representation, predictor="tree")  # type: ignore[arg-type]
