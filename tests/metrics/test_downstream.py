"""Downstream tasks: the logistic regression against scikit-learn's, and accuracies that are known."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegressionCV  # type: ignore[import-untyped]
from sklearn.model_selection import KFold  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits

from metrics.reference_cases import load_case
from unweave.errors import UnweaveError
from unweave.metrics.downstream import Downstream, Predictor, downstream, statistical_efficiency
from unweave.metrics.estimators.logistic import PENALTIES, fit_logistic_cv
from unweave.streams import Stream

PREDICTORS: list[Predictor] = ["logistic", "trees"]


def some_data(n: int, sizes: list[int], noise: float = 0.3) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    factors = Stream.of(1).integers(n, sizes)
    codes = Stream.of(2).normal(n, len(sizes) + 2)
    codes[:, : len(sizes)] = (factors - np.mean(factors, axis=0)) / np.std(factors, axis=0) + (
        noise * codes[:, : len(sizes)]
    )
    return codes, factors


@pytest.mark.parametrize(("size", "n"), [(2, 200), (3, 500), (5, 203)])
def test_logistic_regression_is_that_of_scikit_learn(size: int, n: int) -> None:
    codes, factors = some_data(n, [size, 4])
    ours = fit_logistic_cv(codes, factors[:, 0])
    targets = range(size) if size > 2 else [1]
    for target, weights, penalty in zip(targets, ours.weights, ours.penalties, strict=True):
        with threadpool_limits(1):  # its threads wait for each other where tests share the cores
            theirs = LogisticRegressionCV(
                Cs=10, cv=KFold(5), scoring="accuracy", tol=1e-7, max_iter=5000, l1_ratios=(0.0,),
                use_legacy_attributes=False,
            ).fit(codes, factors[:, 0] == target)  # fmt: skip
        assert penalty == pytest.approx(theirs.C_)
        assert np.allclose(weights, np.append(theirs.coef_[0], theirs.intercept_[0]), atol=1e-3, rtol=1e-3)


def test_logistic_weights_are_the_optimum() -> None:
    codes, factors = some_data(150, [3])
    model = fit_logistic_cv(codes, factors[:, 0])
    for target, (weights, penalty) in enumerate(zip(model.weights, model.penalties, strict=True)):
        inside = factors[:, 0] == target
        wrong = 1 / (1 + np.exp(-(codes @ weights[:-1] + weights[-1]))) - inside
        assert np.abs(weights[:-1] + penalty * codes.T @ wrong).max() < 1e-4 * penalty * len(codes)
        assert abs(wrong.sum()) < 1e-4 * len(codes)


def test_equally_good_penalties_give_the_smallest() -> None:
    codes, factors = some_data(60, [3])
    model = fit_logistic_cv(np.zeros_like(codes), factors[:, 0])
    assert (model.penalties == PENALTIES[0]).all()
    assert (model.predict(codes) == np.bincount(factors[:, 0]).argmax()).all()


# Mean test accuracy after 100 points of GradientBoostingClassifier(random_state=0) of scikit-learn 0.21.3.
STUDY_TREES = {"dsp_perfect": 0.6818, "dsp_small_scale": 0.7301, "cars_perfect": 0.5570}


@pytest.mark.parametrize("name", STUDY_TREES)
def test_trees_have_the_accuracy_of_the_scikit_learn_of_the_study(reference: Path, name: str) -> None:
    case = load_case(reference, name)
    task = downstream(*case.train, test=case.test, predictor="trees", sizes=[100])
    assert task.mean_test_accuracy(100) == pytest.approx(STUDY_TREES[name], abs=0.01)


def test_middle_values_of_an_ordered_factor_get_the_smallest_penalty() -> None:
    # No line tells them from the rest, so "no" is the best answer at every C. Hence more points can do harm.
    factors = np.arange(700) % 7
    codes = Stream.of(3).normal(700, 3) * 0.01
    codes[:, 0] += (factors - 3) / 2
    model = fit_logistic_cv(codes, factors)
    assert (model.penalties[1:-1] == PENALTIES[0]).all()
    assert (model.penalties[[0, -1]] > PENALTIES[0]).all()
    for value in (0, 1, 3):
        with threadpool_limits(1):
            theirs = LogisticRegressionCV(
                Cs=10, cv=KFold(5), scoring="accuracy", l1_ratios=(0.0,), use_legacy_attributes=False,
            ).fit(codes, factors == value)  # fmt: skip
        assert model.penalties[value] == pytest.approx(theirs.C_)


def test_logistic_regression_reaches_its_optimum_for_any_offset_and_scale() -> None:
    codes, factors = some_data(300, [3, 5])
    expected = downstream(codes, factors).test_accuracy
    plain = fit_logistic_cv(codes, factors[:, 0])
    for offset in (100.0, -300.0, 1e4, 1e10):
        moved = fit_logistic_cv(codes + offset, factors[:, 0])
        assert np.allclose(moved.weights[:, :-1], plain.weights[:, :-1], rtol=1e-3, atol=1e-4)
        assert np.abs(downstream(codes + offset, factors).test_accuracy - expected).max() <= 0.02
    dependent = np.hstack([codes, codes.sum(axis=1, keepdims=True)])
    for scale in (1e6, 1e10):  # next to no penalty is left
        task = downstream(dependent * scale + scale, factors)
        assert (task.test_accuracy[1] > 0.5).all()


def test_logistic_regression_of_separable_and_huge_codes() -> None:
    labels = np.arange(40) % 2
    for scale in (1.0, 1e-3, 1e100):
        codes = np.stack([labels * scale, np.zeros(40)], axis=1)
        assert (fit_logistic_cv(codes, labels).predict(codes) == labels).all()


@pytest.mark.parametrize("predictor", PREDICTORS)
def test_perfect_codes_are_predicted_perfectly(predictor: Predictor) -> None:
    factors = Stream.of(0).integers(600, [2, 3])
    codes = np.concatenate([np.eye(2)[factors[:, 0]], np.eye(3)[factors[:, 1]]], axis=1)
    task = downstream(codes, factors, predictor=predictor, sizes=[100, 400])
    assert task.sizes == (100, 400)
    assert (task.test_accuracy == 1).all()
    assert (task.train_accuracy == 1).all()
    assert statistical_efficiency(task, few=100, many=400) == 1


@pytest.mark.parametrize("predictor", PREDICTORS)
def test_noise_is_predicted_by_chance(predictor: Predictor) -> None:
    factors, codes = Stream.of(0).integers(4000, [2, 4]), Stream.of(9).normal(4000, 3)
    task = downstream(codes, factors, predictor=predictor, sizes=[1000])
    assert np.abs(task.test_accuracy[0] - [1 / 2, 1 / 4]).max() < 0.06


@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_fewer_points_than_folds_and_classes(predictor: Predictor, size: int) -> None:
    codes, factors = some_data(300, [2, 40])
    task = downstream(codes, factors, predictor=predictor, sizes=[size])
    assert ((task.test_accuracy >= 0) & (task.test_accuracy <= 1)).all()
    if size == 1:  # the only label that was seen is always predicted
        held_out = factors[200:]
        assert (task.train_accuracy == 1).all()
        assert np.allclose(task.test_accuracy[0], (held_out == factors[0]).mean(axis=0))


def test_fewer_training_rows_than_classes_may_be_given_alone() -> None:
    """10 rows of a factor of 40 values, as in the smallest size of the study; the rest is to test on."""
    codes, factors = some_data(300, [2, 40])
    few, rest = (codes[:10], factors[:10]), (codes[200:], factors[200:])
    assert len(np.unique(factors[:10, 1])) > 5
    expected = downstream(codes, factors, sizes=[10])
    measured = downstream(*few, test=rest)
    assert measured.sizes == (10,)
    assert (measured.test_accuracy == expected.test_accuracy).all()


def test_sizes_are_those_that_fit_and_use_the_first_rows() -> None:
    codes, factors = some_data(450, [3, 2])
    task = downstream(codes, factors)
    assert task.sizes == (10, 100)
    alone = downstream(codes[:100], factors[:100], test=(codes[300:], factors[300:]), sizes=[100])
    assert (alone.test_accuracy[0] == task.test_accuracy[1]).all()
    assert downstream(codes[:9], factors[:9]).sizes == (6,)


def test_trees_do_not_depend_on_the_other_sizes() -> None:
    codes, factors = some_data(300, [3, 2])
    both = downstream(codes, factors, predictor="trees", sizes=[50, 150], seed=4)
    one = downstream(codes, factors, predictor="trees", sizes=[150], seed=4)
    assert (both.test_accuracy[1] == one.test_accuracy[0]).all()


def test_statistical_efficiency_by_hand() -> None:
    task = Downstream((100, 10_000), np.ones((2, 2)), np.array([[0.2, 0.4], [0.8, 0.4]]))
    assert statistical_efficiency(task) == pytest.approx(0.5)
    nothing = Downstream((100, 10_000), np.ones((2, 1)), np.zeros((2, 1)))
    assert statistical_efficiency(nothing) == 0
    with pytest.raises(UnweaveError, match="sizes of this downstream task are 100, 10000; got 50"):
        statistical_efficiency(task, few=50)


def test_bad_settings() -> None:
    codes, factors = some_data(90, [3, 2])
    with pytest.raises(UnweaveError, match=r"got 'tree'\. Did you mean \"trees\""):
        downstream(codes, factors, predictor="tree")  # type: ignore[arg-type]
    with pytest.raises(UnweaveError, match="sizes must be a list of numbers of rows"):
        downstream(codes, factors, sizes=[])
    with pytest.raises(UnweaveError, match="such as \\[10, 100\\]; got 10"):
        downstream(codes, factors, sizes=10)  # type: ignore[arg-type]
    for size in (0, 61, 2.5, True):
        with pytest.raises(UnweaveError, match="from 1 to the 60 training rows"):
            downstream(codes, factors, sizes=[size])  # type: ignore[list-item]
