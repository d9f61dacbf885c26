"""MCC: exact invariances, the authors' numbers, and what noise scores."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from metrics.grids import noise
from unweave.errors import UnweaveError
from unweave.metrics import mcc
from unweave.metrics.mcc import best_matching
from unweave.streams import Stream

MIXING = np.array([[1, 0.4, 0], [0, 1, 0.6], [0.3, 0, -1]])


def curved_codes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Three codes of three real factors, as the authors' programs were given them."""
    stream = Stream.of(7)
    factors = stream.child("v").normal(300, 3)
    return np.tanh(factors @ MIXING) + 0.3 * stream.child("n").normal(300, 3), factors


def test_numbers_of_the_authors_program() -> None:
    """From mean_corr_coef_np of the ICE-BeeM repository on the same arrays."""
    codes, factors = curved_codes()
    assert mcc(codes, factors).score == pytest.approx(0.8115895616609566, abs=1e-12)
    assert mcc(codes, factors, correlation="spearman").score == pytest.approx(0.8348495724026562, abs=1e-12)


def test_permutation_sign_and_scale_do_not_matter() -> None:
    _, factors = curved_codes()
    found = mcc(factors[:, [2, 0, 1]] * [3.0, -0.1, 7.0] + 5, factors)
    assert found.score == pytest.approx(1)
    assert found.matches.tolist() == [1, 2, 0]


def test_monotone_codes_have_rank_correlation_one() -> None:
    _, factors = curved_codes()
    codes = np.exp(3 * factors)
    assert mcc(codes, factors, correlation="spearman").score == pytest.approx(1)
    assert mcc(codes, factors).score < 0.6


@pytest.mark.parametrize("fit", ["linear", "affine"])
def test_a_fit_undoes_a_linear_map(fit: Any) -> None:
    _, factors = curved_codes()
    codes = factors @ MIXING
    assert mcc(codes, factors).score < 0.95
    assert mcc(codes, factors, fit=fit).score == pytest.approx(1)
    shifted = mcc(codes + 100, factors, fit=fit).score
    assert shifted == pytest.approx(1) if fit == "affine" else shifted < 1 - 1e-6


def test_fewer_codes_than_factors_and_dead_codes() -> None:
    _, factors = curved_codes()
    found = mcc(factors[:, :1], factors)
    assert found.matches.tolist() == [0, -1, -1]
    assert found.score == pytest.approx(1 / 3)
    assert mcc(0 * factors, factors).score == 0


def test_noise_is_at_chance() -> None:
    """The largest of 10 absolute correlations of n points is about 1.5 / sqrt(n) to 1.8 / sqrt(n)."""
    codes, factors = noise(10_000, 10), noise(10_000, 3, seed=1)
    assert 0.008 < mcc(codes, factors).score < 0.025
    assert mcc(codes, factors, fit="affine").score < 0.05


def test_the_matching_is_the_best_of_all() -> None:
    """A greedy choice would take 0.9 first and end with 1.0."""
    assert best_matching(np.array([[0.9, 0.8], [0.8, 0.1]])).tolist() == [1, 0]


@pytest.mark.parametrize("option", [{"correlation": "kendall"}, {"fit": "quadratic"}])
def test_unknown_options(option: dict[str, Any]) -> None:
    codes, factors = curved_codes()
    with pytest.raises(UnweaveError, match=f"`{next(iter(option))}` must be one of"):
        mcc(codes, factors, **option)
