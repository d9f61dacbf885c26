"""Histogram trees against scikit-learn's exact trees, with many codes, and at the edges."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier  # type: ignore[import-untyped]

import unweave
from unweave.metrics import dci
from unweave.metrics.estimators.histogram_boosting import bin_codes, fit_histogram_trees
from unweave.metrics.estimators.tree_kernels import HISTOGRAM_BINS, raw_predictions
from unweave.metrics.table import SUITES
from unweave.streams import Stream

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def planted(n: int, d: int, seed: int = 0) -> tuple[Floats, Ints]:
    """Code j holds factor j with some noise for j < 3; the others are noise."""
    factors = Stream.of(seed).integers(n, [2, 3, 4])
    codes = Stream.of(seed).child("noise").normal(n, d)
    codes[:, :3] = factors + 0.2 * codes[:, :3]
    return codes, factors


@pytest.mark.parametrize("size", [2, 4])
def test_trees_of_one_code_with_few_values_are_exactly_those_of_scikit_learn(size: int) -> None:
    labels = Stream.of(1).integers(700, [size])[:, 0]
    codes = np.clip(np.round(2 * labels[:, None] + Stream.of(2).normal(700, 1), 1), -2, 4)
    bins = bin_codes(codes)
    assert len(np.unique(codes)) <= HISTOGRAM_BINS
    theirs = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(codes, labels)
    (ours,) = fit_histogram_trees(bins, labels[:, None], rounds=10)
    raw = raw_predictions(bins.cells, ours.start, ours.codes, ours.places, ours.leaves)
    expected = theirs.decision_function(codes).reshape(700, -1)
    if size > 2:  # only differences between classes matter, and scikit-learn starts from other logarithms
        raw, expected = raw - raw.mean(axis=0), expected - expected.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(raw.T, expected, atol=1e-5)


def test_importances_and_accuracy_are_those_of_scikit_learn() -> None:
    codes, factors = planted(900, 8)
    bins = bin_codes(codes[:600])
    (ours,) = fit_histogram_trees(bins, factors[:600, 1:2])
    theirs = GradientBoostingClassifier(random_state=0).fit(codes[:600], factors[:600, 1])
    assert np.abs(ours.importances - theirs.feature_importances_).max() < 0.02
    accuracy = (ours.predict(bins.bin_like(codes[600:])) == factors[600:, 1]).mean()
    assert abs(accuracy - theirs.score(codes[600:], factors[600:, 1])) <= 0.03


def test_dci_of_more_codes_than_a_tree_looks_at_is_close_to_the_exact_one() -> None:
    codes, factors = planted(900, 90)
    approximate, exact = dci(codes, factors, model="histogram"), dci(codes, factors)
    assert np.abs(approximate.importance[:3] - exact.importance[:3]).max() < 0.05
    for first, second in zip(approximate[:4], exact[:4], strict=True):
        assert abs(first - second) < 0.04


def test_bins_are_evenly_filled_and_never_cut_equal_values() -> None:
    even = Stream.of(0).permutations(1, 6400).T.astype(np.float64)
    counts = np.bincount(bin_codes(even).cells[0])
    assert len(counts) == HISTOGRAM_BINS
    assert counts.min() == counts.max() == 100
    # Features of a sparse autoencoder: the values that are not 0 share the bins that 0 leaves.
    sparse = np.where(Stream.of(1).uniform(10_000, 1) < 0.01, 1 + Stream.of(2).uniform(10_000, 1), 0)
    bins = bin_codes(sparse)
    counts = np.bincount(bins.cells[0])
    assert counts[0] == (sparse == 0).sum()
    assert len(counts) > 40
    assert counts[1:].max() <= 3
    order = np.argsort(sparse[:, 0])
    assert (np.diff(bins.cells[0][order].astype(int)) >= 0).all()
    assert len(np.unique(bins.cells[0][sparse[:, 0] == 0])) == 1


def test_neighbouring_and_huge_values_stay_in_bins_of_their_own() -> None:
    for low, high in ((1.0, np.nextafter(1.0, 2)), (-1.7e308, 1.7e308), (5e-324, 1e-323)):
        codes = np.array([[low], [high]] * 3)
        assert bin_codes(codes).cells[0].tolist() == [0, 1] * 3


def test_dead_codes_and_factors_of_one_value_have_no_importance() -> None:
    codes, factors = planted(200, 5)
    codes[:, 4] = 7.0
    both = np.stack([factors[:, 1], np.zeros(200, np.int64)], axis=1)
    bins = bin_codes(codes)
    varied, constant = fit_histogram_trees(bins, both, rounds=5)
    assert varied.importances[4] == 0
    assert varied.importances.sum() == pytest.approx(1)
    assert not constant.importances.any()
    assert (constant.predict(bins.cells) == 0).all()
    dead = bin_codes(np.ones((200, 3)))
    (blind,) = fit_histogram_trees(dead, factors[:, 2:], rounds=5)
    assert not blind.importances.any()
    assert len(np.unique(blind.predict(dead.cells))) == 1


def test_the_seed_decides() -> None:
    codes, factors = planted(300, 80)
    bins = bin_codes(codes)
    first, again, other = (fit_histogram_trees(bins, factors, rounds=5, seed=seed)[1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.importances, again.importances)
    assert (first.importances != other.importances).any()


def test_a_suite_approximates_dci_of_wide_codes_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUITES, "headline", ("mig", "dci"))  # the others take longer
    codes, factors = planted(60, 257)
    wide = unweave.evaluate(codes, factors[:, :2], metrics="headline")
    assert "histogram" in wide.score("dci.completeness").protocol
    assert any("dci is approximate" in note and "256" in note for note in wide.notes)
    named = unweave.evaluate(codes, factors[:, :2], metrics="dci")
    assert named.score("dci.completeness").protocol.startswith("dci[trees100,")
    assert not any("approximate" in note for note in named.notes)
    narrow = unweave.evaluate(codes[:, :256], factors[:, :2], metrics="headline")
    assert narrow.score("dci.completeness").protocol.startswith("dci[trees100,")
