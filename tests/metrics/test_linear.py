"""Each linear model is the optimum of its problem: zero gradient, and what other solvers find."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from unweave.metrics.estimators import linear
from unweave.metrics.estimators.linear import (
    decisions,
    lasso,
    logistic_one_vs_rest,
)
from unweave.metrics.estimators.single_code_svm import accuracy_of_one_code, svm_of_one_code
from unweave.streams import Stream


def data(seed: int, n: int, d: int, classes: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    stream = Stream.of(seed).child("linear")
    labels = stream.child("labels").integers(n, [classes])[:, 0]
    labels[:classes] = np.arange(classes)
    return stream.normal(n, d) + 0.7 * labels[:, None], labels


@given(
    seed=st.integers(0, 10**6), d=st.integers(1, 4), classes=st.integers(2, 5), c=st.sampled_from([0.1, 1.0])
)
@settings(deadline=None, max_examples=25)
def test_logistic_regression_has_zero_gradient(seed: int, d: int, classes: int, c: float) -> None:
    x, labels = data(seed, 60, d, classes)
    rows = np.hstack([x, np.ones((60, 1))])
    for i, w in enumerate(logistic_one_vs_rest(x, labels, classes, c=c)):
        s = np.where(labels == i, 1.0, -1.0)
        gradient = w - c * (rows * (s / (1 + np.exp(s * (rows @ w))))[:, None]).sum(axis=0)
        np.testing.assert_allclose(gradient, 0, atol=1e-4)


def test_logistic_regression_is_liblinears() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    multiclass = pytest.importorskip("sklearn.multiclass")
    x, labels = data(3, 300, 4, 5)
    one = linear_model.LogisticRegression(solver="liblinear", C=1.0, intercept_scaling=1, tol=1e-10)
    fitted = multiclass.OneVsRestClassifier(one).fit(x, labels)
    expected = np.array([np.append(model.coef_, model.intercept_) for model in fitted.estimators_])
    np.testing.assert_allclose(logistic_one_vs_rest(x, labels, 5), expected, atol=1e-6)


@pytest.mark.parametrize(("n", "d", "spread"), [(150, 80, 1.0), (60, 100, 1.0), (150, 70, 30.0)])
def test_many_codes_have_the_optimum_of_few(
    monkeypatch: pytest.MonkeyPatch, n: int, d: int, spread: float
) -> None:
    """All classes together, by conjugate gradients, reach what one Hessian a class reaches."""
    few, labels = data(9, n, 4, 4)
    x = few @ Stream.of(1).normal(4, d) + Stream.of(2).normal(n, d)
    x = np.hstack([x, x[:, :1], np.zeros((n, 1))]) * np.geomspace(1 / spread, spread, d + 2)
    wide = logistic_one_vs_rest(x, labels, 5)
    monkeypatch.setattr(linear, "WIDE", 1000)
    np.testing.assert_allclose(wide, logistic_one_vs_rest(x, labels, 5), atol=1e-6)


def test_two_classes_are_one_problem() -> None:
    x, labels = data(4, 100, 3, 2)
    weights = logistic_one_vs_rest(x, labels, 2)
    np.testing.assert_allclose(weights[0], -weights[1], atol=1e-9)
    lines = svm_of_one_code(x[:, 0], labels, 2)
    np.testing.assert_allclose(lines[0], -lines[1], atol=1e-9)


def test_logistic_regression_of_a_class_without_points_rejects_everything() -> None:
    x, labels = data(5, 50, 2, 3)
    weights = logistic_one_vs_rest(x, labels, 4)
    assert (decisions(x, weights)[:, 3] < 0).all()


@pytest.mark.parametrize("scale", [1e-300, 1e-8, 1e8, 1e150, 1e300])
def test_any_scale_gives_finite_models(scale: float) -> None:
    x, labels = data(6, 80, 2, 3)
    x = np.hstack([x, x[:, :1], np.full((80, 1), 2.0)]) * scale  # one copied, one dead
    assert np.isfinite(decisions(x, logistic_one_vs_rest(x, labels, 3))).all()
    for code in x.T:
        weights = svm_of_one_code(code, labels, 3)
        assert np.isfinite(weights).all()
        assert 0 <= accuracy_of_one_code(code, weights, labels) <= 1


def test_svm_by_hand() -> None:
    # 0.5 w^2 + 0.01 * 2 * (1 - w)^2 is least at w = 0.04 / 1.04.
    weights = svm_of_one_code(np.array([-1.0, 1.0]), np.array([0, 1]), 2)
    np.testing.assert_allclose(weights, [[-0.04 / 1.04, 0], [0.04 / 1.04, 0]], atol=1e-12)


@given(seed=st.integers(0, 10**6), classes=st.integers(2, 6), scale=st.sampled_from([0.01, 1.0, 30.0]))
@settings(deadline=None, max_examples=25)
def test_svm_has_zero_gradient(seed: int, classes: int, scale: float) -> None:
    x, labels = data(seed, 90, 1, classes)
    x = x[:, 0] * scale
    balanced = 90 / (classes * np.bincount(labels, minlength=classes))
    for i, (w, b) in enumerate(svm_of_one_code(x, labels, classes)):
        s = np.where(labels == i, 1.0, -1.0)
        gain = 0.01 * (balanced[labels] if classes == 2 else np.where(labels == i, balanced[i], 1.0))
        slack = gain * np.maximum(0, 1 - s * (w * x + b)) * s
        np.testing.assert_allclose([w - 2 * (slack * x).sum(), b - 2 * slack.sum()], 0, atol=1e-5)


@pytest.mark.parametrize("classes", [2, 7])
def test_svm_is_liblinears(classes: int) -> None:
    svm = pytest.importorskip("sklearn.svm")
    x, labels = data(8, 400, 1, classes)
    model = svm.LinearSVC(
        C=0.01, class_weight="balanced", loss="squared_hinge", dual=False, tol=1e-12, max_iter=100_000
    ).fit(x, labels)
    weights = svm_of_one_code(x[:, 0], labels, classes)
    expected = np.column_stack([model.coef_[:, 0], model.intercept_])
    np.testing.assert_allclose(weights[1:] if classes == 2 else weights, expected, atol=1e-6)
    assert accuracy_of_one_code(x[:, 0], weights, labels) == model.score(x, labels)


def test_a_dead_code_of_two_classes_is_half_right_in_any_order() -> None:
    labels = np.repeat([0, 1], [37, 64])
    for order in Stream.of(0).permutations(5, len(labels)):
        weights = svm_of_one_code(np.zeros(len(labels)), labels[order], 2)
        assert accuracy_of_one_code(np.zeros(len(labels)), weights, labels) == 0.5


@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([0.01, 0.1, 0.5]))
@settings(deadline=None, max_examples=25)
def test_lasso_meets_its_conditions(seed: int, alpha: float) -> None:
    x, labels = data(seed, 70, 4, 3)
    x = np.hstack([x, np.zeros((70, 1))])
    y = np.column_stack([labels, x[:, 0] - x[:, 1]]).astype(np.float64)
    w = lasso(x, y, alpha=alpha)
    pull = x.T @ (y - x @ w) / 70
    assert (np.abs(pull) <= alpha + 1e-6).all()
    np.testing.assert_allclose(pull[w != 0], alpha * np.sign(w[w != 0]), atol=1e-6)
    assert (w[4] == 0).all()


def test_lasso_of_an_orthogonal_code_is_shrunk_by_alpha() -> None:
    x = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    np.testing.assert_allclose(lasso(x, x[:, ::-1] * [1, -1], alpha=0.1), [[0, -0.9], [0.9, 0]], atol=1e-12)
