"""MED: disentanglement of the matrix of mutual information."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import entropy

from metrics.grids import awkward_codes, drawn, grid, noise
from unweave.errors import UnweaveError
from unweave.metrics import med, mutual_information
from unweave.streams import Stream


def test_the_formula() -> None:
    factors = drawn([3, 4, 5], 400)
    codes = factors @ np.array([[1, 0, 0, 1], [0, 2, 0, 1], [0, 0.5, 1, 0]]) + 0.2 * noise(400, 4)
    information = mutual_information(codes, factors)
    importance = information / information.sum(axis=0)
    scores = 1 - entropy(importance.T + 1e-11, base=3)
    expected = np.average(scores, weights=importance.sum(axis=1))
    assert med(codes, factors) == pytest.approx(expected, abs=1e-8)


def test_top_codes_of_each_factor() -> None:
    factors = grid(2, 2, repeats=2)
    mixed = factors @ [[2], [1]]  # holds both factors: score 0
    codes = np.hstack([mixed, factors, factors, 3 * mixed])
    assert med(codes, factors) == pytest.approx(0.5, abs=1e-12)
    # Both mixed codes tell as much of factor 0 as of 1 and go to factor 0, behind its two own codes.
    assert med(codes, factors, top=2) == pytest.approx(1, abs=1e-12)
    # Now one of the mixed codes: 2 shares of 1/4 each, and the four own codes 1/4 each.
    assert med(codes, factors, top=3) == pytest.approx(4 / 6, abs=1e-12)


def test_one_factor_and_dead_codes() -> None:
    factors = grid(4)
    assert med(np.hstack([factors, 0 * factors]), factors) == 1
    assert med(0 * factors, factors) == 0
    assert med(0 * grid(3, 4), grid(3, 4), top=1) == 0


def test_awkward_codes_get_a_score_of_their_top_code() -> None:
    for name, codes in awkward_codes().items():
        assert 0 <= med(codes, grid(3, 4, repeats=10), top=1) <= 1, name


@pytest.mark.parametrize("top", [0, 1.5, True])
def test_top_is_a_number_of_codes(top: Any) -> None:
    with pytest.raises(UnweaveError, match="top must be a whole number >= 1, or None"):
        med(noise(10, 1), drawn([2], 10), top=top)


def test_top_codes_of_the_authors_program() -> None:
    """From pick_by_dis_per_factor and disentanglement of disentanglement_lib_med on the same codes."""
    stream = Stream.of(21)
    factors = stream.child("f").integers(400, [3, 4, 5])
    codes = factors @ stream.child("w").normal(3, 8) + 0.3 * stream.child("n").normal(400, 8)
    expected = {1: 0.21142631105326135, 2: 0.1426057504607075, 3: 0.12535464509534885}
    for top, score in expected.items():
        assert med(codes, factors, top=top) == pytest.approx(score, abs=1e-8)
