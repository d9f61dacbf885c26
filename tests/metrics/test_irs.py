"""The interventional robustness score."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from metrics.grids import awkward_codes, drawn, grid, noise
from metrics.reference_cases import NAMES, load_case
from unweave.errors import UnweaveError
from unweave.metrics import irs


def slow_irs(codes: NDArray[np.float64], factors: NDArray[np.int64], quantile: float) -> float:
    """The definition, one number at a time."""
    scores, weights = [], []
    for code in codes.T:
        farthest = max(abs(z - code.mean()) for z in code)
        best = -np.inf
        for factor in factors.T:
            spreads = []
            for value in set(factor.tolist()):
                group = code[factor == value]
                ordered = sorted(abs(z - group.mean()) for z in group)
                place = quantile * (len(ordered) - 1)
                low = int(place)
                high = min(low + 1, len(ordered) - 1)
                spreads.append(ordered[low] + (place - low) * (ordered[high] - ordered[low]))
            best = max(best, 1 - float(np.mean(spreads)) / farthest)
        scores.append(best * farthest)
        weights.append(farthest)
    return float(sum(scores) / sum(weights))


@pytest.mark.parametrize("name", NAMES)
def test_published_values(reference: Path, name: str) -> None:
    case = load_case(reference, name)
    # NumPy adds up the float32 numbers of this case in an order that depends on its version.
    tolerance = 1e-8 if name == "s3d_two_in_one" else 1e-12
    assert irs(*case.train) == pytest.approx(case.expected["irs_fixed"]["IRS"], abs=tolerance)


@pytest.mark.parametrize("quantile", [0.99, 0.5, 1.0, 0.0])
def test_the_definition(quantile: float) -> None:
    factors = drawn([3, 5], 80)
    codes = factors @ np.array([[1.0, 0.2, 0.0], [0.1, 1.0, 0.0]]) + 0.2 * noise(80, 3)
    expected = slow_irs(codes, factors, quantile)
    assert irs(codes, factors, diff_quantile=quantile) == pytest.approx(expected, abs=1e-12)


def test_values_are_merged_unless_told_otherwise() -> None:
    factors = grid(40, 3)
    codes = factors[:, :1].astype(float)
    assert irs(codes, factors, bins=None) == pytest.approx(1, abs=1e-12)
    merged = 0.5  # 40 values in 20 bins of two: each lies 0.5 from the mean of its bin, of at most 19.5
    assert irs(codes, factors) == pytest.approx(1 - merged / 19.5, abs=1e-12)


def test_awkward_codes_get_a_score() -> None:
    for name, codes in awkward_codes().items():
        score = irs(codes, grid(3, 4, repeats=10))
        assert np.isfinite(score), name
        assert score <= 1, name
        assert not name.startswith("all dead") or score == 0


def test_dead_codes_add_nothing() -> None:
    factors = grid(3, 4, repeats=5)
    codes = factors + 0.1 * noise(60, 2)
    padded = np.hstack([codes, np.full((60, 1), 0.1), np.zeros((60, 1))])
    assert irs(padded, factors) == pytest.approx(irs(codes, factors), abs=1e-12)


@pytest.mark.parametrize("quantile", [-0.1, 99, float("nan")])
def test_the_quantile_is_a_share(quantile: Any) -> None:
    with pytest.raises(UnweaveError, match="diff_quantile must be between 0 and 1"):
        irs(noise(10, 1), drawn([2], 10), diff_quantile=quantile)
