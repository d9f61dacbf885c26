"""Total correlation, Wasserstein correlation and mean pairwise information of codes."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg

from metrics.grids import awkward_codes, noise
from metrics.reference_cases import NAMES, load_case
from unweave.errors import UnweaveError
from unweave.metrics import mean_pairwise_information, total_correlation, wasserstein_correlation

DEGENERATE = {"dsp_duplicated": math.inf, "dsp_dead_dims": 0.0006781985740880857}
MIX = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, -0.3], [0.2, 0.0, 2.0]])


@pytest.mark.parametrize("name", NAMES)
def test_published_values(reference: Path, name: str) -> None:
    case = load_case(reference, name)
    codes, expected = case.train[0], case.expected["unsupervised"]
    correlation = DEGENERATE.get(name, expected["gaussian_total_correlation"])
    assert total_correlation(codes, jitter=0) == pytest.approx(correlation, abs=1e-9)
    assert mean_pairwise_information(codes) == pytest.approx(expected["mutual_info_score"], abs=1e-9)
    for normalised, key in ((False, ""), (True, "_norm")):
        distance = expected[f"gaussian_wasserstein_correlation{key}"]
        if name == "dsp_duplicated":  # it was complex there
            distance = distance["real"]
        assert wasserstein_correlation(codes, normalised) == pytest.approx(distance, abs=2e-7)


def test_two_correlated_codes() -> None:
    """Correlation r: TC = -log(1 - r^2) / 2."""
    codes = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0], [3.0, 5.0]])
    r = np.corrcoef(codes.T)[0, 1]
    assert total_correlation(codes, jitter=0) == pytest.approx(-0.5 * math.log(1 - r**2), abs=1e-12)


@pytest.mark.parametrize("jitter", [0.0, 1e-5, 0.7])
def test_jitter_is_added_to_the_diagonal(jitter: float) -> None:
    codes = noise(300, 3) @ MIX
    covariance = np.cov(codes.T) + jitter * np.eye(3)
    expected = 0.5 * (np.log(np.diag(covariance)).sum() - np.linalg.slogdet(covariance)[1])
    assert total_correlation(codes, jitter) == pytest.approx(expected, abs=1e-12)


def test_dead_codes_add_nothing() -> None:
    codes = noise(300, 3) @ MIX
    padded = np.hstack([codes, np.full((300, 1), 0.1), np.zeros((300, 1))])
    for jitter in (0, 1e-5):
        assert total_correlation(padded, jitter) == total_correlation(codes, jitter)
    assert wasserstein_correlation(padded) == pytest.approx(wasserstein_correlation(codes), abs=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e200, 1e-200])
def test_dependent_codes_are_infinite_without_jitter(scale: float) -> None:
    codes = noise(300, 3) @ MIX
    dependent = np.hstack([codes, codes @ [[1.0], [2.0], [3.0]]]) * scale
    assert total_correlation(dependent, jitter=0) == math.inf
    assert math.isfinite(total_correlation(dependent))


@pytest.mark.parametrize("scale", [1e150, 1e-150])
def test_without_jitter_scale_does_not_matter(scale: float) -> None:
    codes = noise(300, 3) @ MIX
    expected = total_correlation(codes, jitter=0)
    assert total_correlation(codes * [scale, 1.0, 3.0], jitter=0) == pytest.approx(expected, abs=1e-12)


def test_wasserstein_distance_by_matrix_roots() -> None:
    """W^2 between N(0, S) and N(0, D) = tr(S + D - 2 (D^1/2 S D^1/2)^1/2)."""
    codes = noise(300, 3) @ MIX
    covariance = np.cov(codes.T)
    half = np.diag(np.sqrt(np.diag(covariance)))
    root = scipy.linalg.sqrtm(half @ covariance @ half)
    expected = np.trace(covariance + half @ half - 2 * root)
    assert wasserstein_correlation(codes) == pytest.approx(expected, abs=1e-12)
    normalised = wasserstein_correlation(codes * 1e200, normalised=True)
    assert normalised == pytest.approx(expected / np.trace(covariance), abs=1e-12)


def test_too_large_a_distance_is_refused() -> None:
    with pytest.raises(
        UnweaveError, match=r"too large for a squared distance\. Rescale them, or ask for normal"
    ):
        wasserstein_correlation(noise(300, 3) @ MIX * 1e200)


def test_mean_over_pairs_of_codes() -> None:
    codes = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
    assert mean_pairwise_information(codes) == pytest.approx(math.log(2) / 3, abs=1e-12)
    assert mean_pairwise_information(codes[:, :1]) == 0


def test_awkward_codes_get_a_number() -> None:
    for name, codes in awkward_codes().items():
        assert 0 <= total_correlation(codes) < math.inf, name
        assert total_correlation(codes, jitter=0) >= 0, name
        assert 0 <= wasserstein_correlation(codes, normalised=True) < 2, name
        assert 0 <= mean_pairwise_information(codes) <= math.log(20), name


@pytest.mark.parametrize("jitter", [-1e-5, math.inf, math.nan, "no"])
def test_jitter_is_a_number(jitter: Any) -> None:
    with pytest.raises(UnweaveError, match="jitter must be a number >= 0"):
        total_correlation(noise(10, 2), jitter)
