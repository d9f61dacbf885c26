"""Unfairness: known counts, a plain loop over the definition, and codes whose unfairness is known."""

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier  # type: ignore[import-untyped]

import unweave
from metrics.grids import grid
from unweave.errors import UnweaveError
from unweave.evaluation.scores import Scores
from unweave.metrics import METRICS, Representation, fairness, metric_named
from unweave.metrics.downstream import Predictor
from unweave.metrics.fairness import summarised, total_variation
from unweave.streams import Stream

SIZES = (3, 4, 2)
Table = NDArray[np.float64]


def recorded(
    encode: Callable[[NDArray[np.int64]], Table], sizes: tuple[int, ...] = SIZES
) -> tuple[Representation, list[NDArray[np.int64]]]:
    """A representation, and the factors that were asked for: those to train on, then those of each s."""
    asked: list[NDArray[np.int64]] = []

    def keep(factors: NDArray[np.int64], stream: Stream) -> Table:
        asked.append(factors.copy())
        return encode(factors)

    return Representation(keep, sizes), asked


def loop_unfairness(predicted: NDArray[np.int64], sensitive: NDArray[np.int64]) -> tuple[float, float]:
    """The definition of the paper, value by value, and the largest; all values of s occur equally often."""
    distances = []
    for value in set(sensitive.tolist()):
        distance = 0.0
        for answer in set(predicted.tolist()):
            distance += abs(
                float((predicted == answer).mean()) - float((predicted[sensitive == value] == answer).mean())
            )
        distances.append(distance / 2)
    return sum(distances) / len(distances), max(distances)


def test_known_counts() -> None:
    # From fairness_test.py of disentanglement_lib: distances 1/3 and 1/6 with weights 1/3 and 2/3.
    assert total_variation([[0, 100], [100, 100]]) == pytest.approx(2 / 9)
    assert total_variation([[30, 30, 30], [70, 70, 70]]) == 0
    # s decides the prediction: 1 - 1 / (number of values of s), the largest possible.
    assert total_variation(100 * np.eye(4)) == pytest.approx(3 / 4)


def test_known_pairs() -> None:
    # From the same file: mean_pred:mean_sens is 5 and max_pred:max_sens is 10.
    summary = summarised(np.array([[0.0, 2, 4], [4, 0, 8], [2, 10, 0]]))
    assert summary == (5.0, 10.0)
    assert summarised(np.zeros((1, 1))) == (0.0, 0.0)


def test_it_is_what_a_plain_loop_with_scikit_learn_gives() -> None:
    """The protocol of disentanglement_lib on the same points, with its predictor."""
    mixing = np.array([[1.0, 0.31], [0.43, 1.0], [0.6, 0.29]])

    def encode(factors: NDArray[np.int64]) -> Table:
        return np.asarray(np.floor(factors @ mixing))  # some combinations look the same

    representation, asked = recorded(encode)
    measured = fairness(representation, train=150, points=20)
    train, *tests = asked
    assert len(train) == 150
    assert [len(test) for test in tests] == [60, 80, 40]
    for target in range(3):
        model = GradientBoostingClassifier(random_state=0).fit(encode(train), train[:, target])
        for sensitive, test in enumerate(tests):
            groups = [test[test[:, sensitive] == value] for value in range(SIZES[sensitive])]
            for group in groups:  # an intervention: nothing but the sensitive factor differs
                np.testing.assert_array_equal(
                    np.delete(group, sensitive, axis=1), np.delete(groups[0], sensitive, axis=1)
                )
            mean, largest = loop_unfairness(model.predict(encode(test)), test[:, sensitive])
            value = measured.unfairness[target, sensitive], measured.worst_value[target, sensitive]
            assert value == pytest.approx((0, 0) if target == sensitive else (mean, largest), abs=1e-9)
    assert measured.mean_unfairness > 0.05


@pytest.mark.parametrize("predictor", ["trees", "logistic"])
def test_perfect_codes_are_fair_and_mixed_ones_are_not(predictor: Predictor) -> None:
    fair = Representation(lambda factors, _: factors, (3, 3))
    assert fairness(fair, predictor=predictor, train=400).mean_unfairness <= 0.02
    # Only the sum is seen: what is predicted for one factor rises with the other.
    mixed = Representation(lambda factors, _: factors.sum(axis=1, keepdims=True), (3, 3))
    assert fairness(mixed, predictor=predictor, train=400).mean_unfairness > 0.2


def test_a_target_that_shows_at_one_value_only_is_unfair_for_the_best_predictor() -> None:
    """The paper's point: y and s are independent, and the best predictor of y is still unfair.

    The code is y where s = 0, and 1 where s = 1. The best prediction is the code, so that of y = 0 occurs
    for s = 0 only, and both values of s are half its share away from the mean.
    """
    representation, asked = recorded(
        lambda factors: np.where(factors[:, 1:] == 1, 1.0, factors[:, :1]), (2, 2)
    )
    measured = fairness(representation, train=400, points=50)
    drawn = asked[2][:50, 0]  # y in the groups of s
    assert measured.unfairness[0, 1] == pytest.approx((drawn == 0).mean() / 2)
    assert measured.unfairness[0, 1] == pytest.approx(0.25, abs=0.1)


def test_codes_that_only_show_the_sensitive_factor() -> None:
    """Nothing is known of y, yet each answer follows s: unfair without being accurate."""
    leaking = Representation(lambda factors, _: factors[:, 1:], (2, 5))
    assert fairness(leaking, train=100).unfairness[0, 1] > 0.3
    constant = Representation(lambda factors, _: np.zeros((len(factors), 1)), (2, 5))
    assert fairness(constant, train=100).mean_unfairness == 0


def test_chance_level() -> None:
    """Where codes are noise, groups differ by counting alone: sqrt((c - 1) / (2 pi points))."""
    noise = Representation(lambda factors, stream: stream.normal(len(factors), 2), (4, 10))
    values = [fairness(noise, train=400, seed=seed).unfairness[0, 1] for seed in range(4)]
    assert np.mean(values) == pytest.approx(math.sqrt(3 / (2 * math.pi * 100)), rel=0.25)


def test_rows_are_compared_with_other_rows() -> None:
    """Of rows no intervention is possible: perfect codes score the chance level, and noise no more."""
    factors = Stream.of(3).integers(2000, [4, 5])
    rows = fairness(Representation.from_rows(factors * 0.5, factors))
    assert 0 < rows.mean_unfairness < 2 * math.sqrt(4 / (2 * math.pi * 100))
    mixed = factors.sum(axis=1, keepdims=True)
    assert fairness(Representation.from_rows(mixed, factors)).mean_unfairness > 0.2


def test_evaluate_gives_the_matrix_of_pairs() -> None:
    factors = grid(3, 4, repeats=20)
    factors = factors[Stream.of(2).permutations(1, len(factors))[0]]
    codes = np.hstack([factors.sum(axis=1, keepdims=True), factors[:, :1], factors[:, 1:]])
    scores = unweave.evaluate(codes, factors, metrics="fairness_trees, fairness_logistic, mig")
    matrix = scores.matrix("fairness_trees.unfairness")
    assert list(matrix.index) == list(matrix.columns) == list(scores.factors)
    assert scores["fairness_trees.max_unfairness"] == matrix.to_numpy().max()
    assert scores.score("fairness_trees.mean_unfairness").protocol == (
        "fairness[trees100,train10000,group100,rows240,halves,mean]"
    )
    assert len(scores.matrix()) == len(scores.code_names) == 3
    again = Scores.from_dict(scores.to_dict())
    assert again.matrix("fairness_logistic.unfairness").shape == (2, 2)
    assert len(scores.plot().axes) == 3


def test_only_the_images_that_are_asked_for_are_encoded() -> None:
    """10,000 to train on, and 100 for each value of each factor: not the 737,280 of dSprites."""
    encoded = 0

    def encode(images: NDArray[np.float32]) -> NDArray[np.float32]:
        nonlocal encoded
        encoded += len(images)
        return np.asarray(images.mean(axis=(1, 2, 3))[:, None])

    metric = dataclasses.replace(metric_named("fairness_trees"), options={"train": 100, "points": 2})
    scores = unweave.evaluate(encode, data="dsprites", metrics=metric, points=(10, 10))
    assert encoded <= 100 + 2 * (3 + 6 + 40 + 32 + 32)
    assert 0 < scores["fairness_trees.mean_unfairness"] <= scores["fairness_trees.max_unfairness"] < 1


@pytest.mark.parametrize("needs", ["representation", "interventions"])
def test_arrays_are_refused_with_what_to_do(needs: str) -> None:
    for metric in METRICS:
        if metric.needs == needs:
            with pytest.raises(UnweaveError, match=r"got ndarray\. Make one of arrays with Representation"):
                metric.function(np.zeros((6, 2)))


def test_errors() -> None:
    representation = Representation(lambda factors, _: factors, (2, 2))
    with pytest.raises(UnweaveError, match="predictor must be one of the known ones; got 'tree'\\. Did you"):
        fairness(representation, predictor="tree")  # type: ignore[arg-type]
    with pytest.raises(UnweaveError, match="train must be a whole number, 1 or more; got 0"):
        fairness(representation, train=0)
    with pytest.raises(UnweaveError, match="points must be a whole number, 1 or more; got 0"):
        fairness(representation, points=0)
