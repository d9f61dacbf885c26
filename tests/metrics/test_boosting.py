"""Boosted trees against scikit-learn's own, against a slow tree written here, and at the edges."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier  # type: ignore[import-untyped]

from unweave.metrics.estimators.boosting import LATER_PURITY, BoostedTrees, fit_boosted_trees, sort_codes
from unweave.metrics.estimators.tree_kernels import raw_predictions
from unweave.streams import Stream

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def trained_like(n: int, sizes: Sequence[int], d: int, seed: int = 0) -> tuple[Floats, Ints]:
    """Codes as training makes them: nonlinear mixtures of the factors plus noise, two dimensions dead."""
    stream = Stream.of(seed)
    factors = stream.child("factors").integers(n, sizes)
    scaled = factors / np.asarray(sizes) * 2 - 1
    mixing = stream.child("mixing").normal(len(sizes), d)
    codes = np.tanh(scaled @ mixing) + 0.3 * np.sin(3 * scaled @ stream.child("waves").normal(len(sizes), d))
    noise = stream.child("noise").normal(n, d)
    codes += 0.1 * noise
    codes[:, -2:] = 0.01 * noise[:, -2:]
    return codes.astype(np.float32).astype(np.float64), factors


def fit(codes: Floats, labels: Ints, *, rounds: int = 100, seed: int = 0) -> BoostedTrees:
    """Trees by the rule of the scikit-learn that is installed."""
    return fit_boosted_trees(sort_codes(codes), labels, rounds=rounds, purity=LATER_PURITY, seed=seed)


@pytest.mark.parametrize(("size", "n"), [(2, 1500), (3, 1500), (7, 1200)])
def test_importances_and_accuracy_are_those_of_scikit_learn(size: int, n: int) -> None:
    codes, factors = trained_like(n + 500, [size, 5, 8], 6)
    labels = factors[:, 0]
    theirs = GradientBoostingClassifier(random_state=0).fit(codes[:n], labels[:n])
    ours = fit(codes[:n], labels[:n])
    assert np.abs(ours.importances - theirs.feature_importances_).max() < 0.01
    for part in (slice(0, n), slice(n, None)):
        truth = labels[part]
        gap = (ours.predict(codes[part]) == truth).mean() - theirs.score(codes[part], truth)
        assert abs(gap) <= 0.02 if part.start else abs(gap) <= 0.005


@pytest.mark.parametrize("size", [2, 4])
def test_trees_of_one_code_are_exactly_those_of_scikit_learn(size: int) -> None:
    # With a single code there is nothing to draw, so every tree must be the same.
    codes, factors = trained_like(700, [size, 9], 4, seed=1)
    theirs = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(codes[:, :1], factors[:, 0])
    ours = fit(codes[:, :1], factors[:, 0], rounds=10)
    values = codes[:, :1].astype(np.float32).T
    raw = raw_predictions(values, ours.start, ours.codes, ours.thresholds, ours.leaves)
    expected = theirs.decision_function(codes[:, :1]).reshape(700, -1)
    # Raw predictions of several classes are free up to a constant.
    shift = raw.mean(axis=0) - expected.mean(axis=1) if size > 2 else np.zeros(700)
    assert np.abs(raw - shift - expected.T).max() < 1e-9


# decision_function of GradientBoostingClassifier(random_state=0) of scikit-learn 0.21.3.
STUDY_RAW = [
    [8.615405, -0.791031, -0.763045, -0.790861],
    [-0.762978, -0.79079, -0.76294, -0.790758],
    [-0.757818, -0.785689, -0.75778, -0.785657],
]


def test_trees_are_those_of_the_scikit_learn_of_the_study() -> None:
    """Nodes of a variance up to 1e-7 stay whole; later versions split them, and the first number is 17.7."""
    rows = np.arange(100)
    labels = 7 * rows % 12
    codes = (labels + 0.2 * np.sin(rows)).astype(np.float32)[:, None]
    trees = fit_boosted_trees(sort_codes(codes.astype(np.float64)), labels)
    raw = raw_predictions(codes.T.copy(), trees.start, trees.codes, trees.thresholds, trees.leaves)
    assert (raw - raw.mean(axis=0)).T[[0, 1, 5], :4] == pytest.approx(np.array(STUDY_RAW), abs=1e-4)
    two = fit_boosted_trees(sort_codes(codes.astype(np.float64)), (labels > 4).astype(np.int64))
    raw = raw_predictions(codes.T.copy(), two.start, two.codes, two.thresholds, two.leaves)
    assert raw[0, [0, 1, 5]] == pytest.approx([-7.981458764533725, 8.303225217175754, 8.303225217175754])


def test_training_predictions_are_kept() -> None:
    codes, factors = trained_like(400, [5, 3], 4)
    for column in factors.T:
        trees = fit(codes, column, rounds=20)
        assert (trees.fitted == trees.predict(codes)).all()


def best_split_by_trying_all(codes: Floats, residuals: Floats) -> tuple[float, int, float]:
    """Gain, code and threshold of the best split of all rows: every midpoint, two means each."""
    values = codes.astype(np.float32)
    best = (-1.0, 0, 0.0)
    for f in range(codes.shape[1]):
        distinct = np.unique(values[:, f]).astype(np.float64)
        for low, high in pairwise(distinct):
            threshold = low / 2 + high / 2
            left = values[:, f] <= threshold
            parts = residuals[left], residuals[~left]
            after = sum(((part - part.mean()) ** 2).sum() for part in parts)
            gain = float(((residuals - residuals.mean()) ** 2).sum() - after)
            if gain > best[0] + 1e-9:
                best = (gain, f, threshold)
    return best


@settings(deadline=None, max_examples=30)
@given(
    n=st.integers(4, 600),
    d=st.integers(1, 4),
    levels=st.sampled_from([2, 5, 1000]),
    share=st.sampled_from([0.05, 0.5]),
    seed=st.integers(0, 10_000),
)
def test_no_split_is_missed(n: int, d: int, levels: int, share: float, seed: int) -> None:
    stream = Stream.of(seed)
    codes = np.round(stream.uniform(n, d) * levels) / 7
    labels = (stream.child("labels").uniform(n, 1)[:, 0] + 0.1 * codes[:, 0] < share).astype(np.int64)
    if labels.min() == labels.max():
        return
    trees = fit(codes, labels, rounds=1)
    gain, _, _ = best_split_by_trying_all(codes, labels - labels.mean())
    if gain < 0:  # nothing to split
        assert trees.thresholds[0, 0] == np.inf
        return
    left = codes.astype(np.float32)[:, trees.codes[0, 0]] <= trees.thresholds[0, 0]
    residuals = labels - labels.mean()
    fall = n / (left.sum() * (~left).sum()) * residuals[left].sum() ** 2
    assert fall == pytest.approx(gain, abs=1e-9)


def test_copies_share_their_importance_by_chance() -> None:
    codes, factors = trained_like(500, [12, 3], 3, seed=2)
    single = fit(codes[:, :1], factors[:, 0])
    for double in (
        np.hstack([codes[:, :1], codes[:, :1]]),
        np.hstack([codes[:, :1], -codes[:, :1]]),
        np.hstack([codes[:, :1], codes[:, :1], codes[:, :1]]),
    ):
        trees = fit(double, factors[:, 0])
        assert np.abs(trees.importances - 1 / double.shape[1]).max() < 0.12
        assert abs((trees.fitted == single.fitted).mean() - 1) < 0.05


def test_same_seed_same_trees_and_other_seeds_differ_in_ties_only() -> None:
    codes, factors = trained_like(300, [4, 3], 3)
    double = np.hstack([codes, codes])
    first, again, other = (fit(double, factors[:, 0], rounds=10, seed=seed) for seed in (0, 0, 1))
    assert (first.codes == again.codes).all()
    assert (first.thresholds == again.thresholds).all()
    assert (first.codes != other.codes).any()
    assert (
        np.abs(first.importances.reshape(2, 3).sum(0) - other.importances.reshape(2, 3).sum(0)).max() < 0.01
    )


def test_one_class_is_always_predicted() -> None:
    codes, _ = trained_like(20, [2, 2], 3)
    trees = fit(codes, np.full(20, 7))
    assert (trees.predict(codes) == 7).all()
    assert (trees.fitted == 7).all()
    assert (trees.importances == 0).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_dead_codes_predict_the_most_frequent_class(classes: int) -> None:
    labels = np.array([0, 1, 1, 1, classes - 1, 1])
    trees = fit(np.full((6, 2), 3.7), labels)
    assert (trees.predict(np.zeros((4, 2))) == 1).all()
    assert (trees.importances == 0).all()


@pytest.mark.parametrize("scale", [1e-3, 1e30, 1e300])
def test_scale_of_the_codes_does_not_matter(scale: float) -> None:
    codes, factors = trained_like(300, [4, 3], 3, seed=3)
    plain, scaled = fit(codes, factors[:, 0], rounds=10), fit(codes * scale, factors[:, 0], rounds=10)
    assert np.allclose(plain.importances, scaled.importances, atol=0.01)
    assert (scaled.predict(codes * scale) == scaled.fitted).all()


def test_xor_is_learned_although_the_first_split_gains_nothing() -> None:
    codes = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 5)
    labels = (codes[:, 0] != codes[:, 1]).astype(np.int64)
    assert (fit(codes, labels).fitted == labels).all()


def test_labels_may_be_any_whole_numbers() -> None:
    codes, factors = trained_like(200, [3, 3], 3)
    names = np.array([-5, 10, 11])
    plain, named = fit(codes, factors[:, 0], rounds=5), fit(codes, names[factors[:, 0]], rounds=5)
    assert (names[plain.fitted] == named.fitted).all()


def test_two_rows_are_enough() -> None:
    trees = fit(np.array([[0.0], [1.0]]), np.array([3, 4]))
    assert trees.predict(np.array([[-1.0], [2.0]])).tolist() == [3, 4]
    assert trees.importances.tolist() == [1.0]
