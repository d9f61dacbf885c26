"""The mutual information gap, by both estimators."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from metrics.grids import drawn, grid, noise
from metrics.reference_cases import NAMES, load_case
from unweave.errors import UnweaveError
from unweave.metrics import mig, mig_posterior
from unweave.metrics.estimators.posterior import posterior_information
from unweave.streams import Stream


@pytest.mark.parametrize("name", NAMES)
def test_published_values(reference: Path, name: str) -> None:
    case = load_case(reference, name)
    assert mig(*case.train) == pytest.approx(case.expected["mig"]["discrete_mig"], abs=1e-9)


def test_twenty_bins_cap_a_perfect_dsprites_code() -> None:
    """40 values in 20 bins of two, 32 in 12 of two and 8 of one: the exact loss of information."""
    factors = grid(3, 6, 40, 32, 32)
    held_32 = math.log(32) - 24 / 32 * math.log(2)
    expected = (1 + 1 + math.log(20) / math.log(40) + 2 * held_32 / math.log(32)) / 5
    assert mig(factors.astype(np.float32), factors) == pytest.approx(expected, abs=1e-9)
    assert expected == pytest.approx(0.9024, abs=5e-5)
    assert mig(factors, factors, bins=40) == pytest.approx(1, abs=1e-9)


def test_chance_costs_a_perfect_dsprites_code_a_little_more() -> None:
    factors = drawn([3, 6, 40, 32, 32], 10_000)
    codes = np.hstack([factors, noise(10_000, 5)])
    assert mig(codes, factors) == pytest.approx(0.896, abs=0.002)


def test_gaps_by_hand() -> None:
    """Factor 0 is held by code 0; factor 1 half by code 1 (2 of 4 values) and wholly by code 2."""
    factors = grid(2, 4)
    codes = np.stack([factors[:, 0], factors[:, 1] // 2, factors[:, 1]], axis=1)
    assert mig(codes, factors) == pytest.approx((1 + 0.5) / 2, abs=1e-12)


def test_a_single_code_has_no_rival() -> None:
    factors = grid(2, 4)
    assert mig(factors[:, 1:], factors) == pytest.approx(0.5, abs=1e-12)
    assert mig(factors[:, 1:], factors[:, 1:]) == pytest.approx(1, abs=1e-12)


def test_a_factor_with_one_value_is_refused() -> None:
    with pytest.raises(UnweaveError, match="factor 1 is 2 everywhere"):
        mig(noise(20, 2), np.stack([np.arange(20) % 2, np.full(20, 2)], axis=1))


def slow_information(
    mean: NDArray[np.float64],
    log_var: NDArray[np.float64],
    factors: NDArray[np.int64],
    n: int,
    stream: Stream,
) -> NDArray[np.float64]:
    """The same expectation with plain densities of scipy, sample by sample."""
    rows = stream.child("rows").integers(n, [len(mean)])[:, 0]
    noise_drawn = stream.child("noise").normal(n, mean.shape[1])
    deviation = np.exp(log_var / 2)
    total = np.zeros((mean.shape[1], factors.shape[1]))
    for row, epsilon in zip(rows, noise_drawn, strict=True):
        density = norm.pdf(mean[row] + deviation[row] * epsilon, mean, deviation)
        for j in range(factors.shape[1]):
            same = factors[:, j] == factors[row, j]
            total[:, j] += np.log(density[same].mean(axis=0)) - np.log(density.mean(axis=0))
    return total / n


def test_posterior_information_is_the_slow_sum() -> None:
    factors = drawn([3, 5], 70)
    mean = np.hstack([factors, noise(70, 1)])
    log_var = noise(70, 3, seed=1) * [1.0, 3.0, 0.1] - 2
    stream = Stream.of(4)
    fast = posterior_information(mean, log_var, factors, 50, stream)
    assert fast == pytest.approx(slow_information(mean, log_var, factors, 50, stream), abs=1e-10)


def test_posterior_information_of_two_gaussians() -> None:
    """Means -a and a, unit variance: I = log 2 - E[log(1 + exp(-2 a (a + e)))], by numerical integration."""
    a = 0.8
    factors = np.repeat([0, 1], 200)[:, None]
    mean = np.where(factors == 0, -a, a).astype(float)
    grid_points = np.linspace(-9, 9, 20_001)
    lost = np.trapezoid(norm.pdf(grid_points) * np.logaddexp(0, -2 * a * (a + grid_points)), grid_points)
    exact = (math.log(2) - lost) / math.log(2)
    score = mig_posterior(mean, np.zeros_like(mean), factors, samples=40_000)
    assert score == pytest.approx(exact, abs=0.01)


def test_collapsed_codes_have_no_gap_and_sharp_ones_all() -> None:
    factors = grid(4, 5, repeats=10)
    dull = mig_posterior(noise(200, 2) * 1e-3, np.zeros((200, 2)), factors, samples=200)
    sharp = mig_posterior(factors, np.full((200, 2), -12.0), factors, samples=200)
    assert dull == pytest.approx(0, abs=1e-3)
    assert sharp == pytest.approx(1, abs=1e-6)


def test_posterior_draws_belong_to_the_seed_and_to_nothing_else() -> None:
    factors = grid(4, 5, repeats=5)
    log_var = np.full((100, 2), -1.0)
    scores = [mig_posterior(factors, log_var, factors, samples=50, seed=seed) for seed in (0, 0, 1)]
    assert scores[0] == scores[1] != scores[2]
    assert mig_posterior(factors, log_var, factors, samples=50, seed=Stream.of(0)) == scores[0]


@pytest.mark.parametrize("scale", [1e300, 1e-300])
@pytest.mark.parametrize("log_var", [-500.0, 0.0, 500.0])
def test_extreme_posteriors_get_a_score(scale: float, log_var: float) -> None:
    factors = grid(3, 4, repeats=5)
    score = mig_posterior(factors * scale, np.full(factors.shape, log_var), factors, samples=30)
    assert 0 <= score <= 1 + 1e-9


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"log_var": np.zeros((60, 3))}, r"log_var must be \(60, 2\) like mean; got \(60, 3\)"),
        ({"log_var": np.full((60, 2), 700.0)}, "got 700. Did you pass the variance"),
        ({"log_var": np.full((60, 2), np.nan)}, "log_var must be finite; 120 of 120"),
        ({"samples": 0}, "samples must be a whole number >= 1; got 0"),
        ({"seed": -1}, "seed must be a whole number"),
    ],
)
def test_bad_posteriors_are_refused(change: dict[str, Any], text: str) -> None:
    factors = grid(3, 4, repeats=5)
    with pytest.raises(UnweaveError, match=text):
        mig_posterior(**{"mean": factors, "log_var": 0.0 * factors, "factors": factors} | change)
