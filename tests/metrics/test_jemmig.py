"""JEMMIG: joint entropy minus the mutual information gap."""

import math

import numpy as np
import pytest

from metrics.grids import grid
from unweave.metrics import jemmig


def test_a_perfect_code_scores_1() -> None:
    factors = grid(3, 4, 5)
    assert jemmig(-2.0 * factors, factors) == pytest.approx(1, abs=1e-12)


def test_scores_by_hand() -> None:
    """Two bits of factors: code 0 holds both (joint entropy log 4), code 1 only factor 1."""
    factors = grid(2, 2)
    codes = np.stack([2 * factors[:, 0] + factors[:, 1], factors[:, 1]], axis=1)
    first = 2 - 1 + 0  # bits: H(z0, v0) - I(z0; v0) + I(z1; v0)
    second = 1 - 1 + 1  # both codes tell all of factor 1; code 1 has the smaller joint entropy, 1 bit
    largest = 1 + math.log2(20)
    expected = 1 - (first + second) / 2 / largest
    assert jemmig(codes, factors) == pytest.approx(expected, abs=1e-12)
    assert jemmig(codes[:, ::-1], factors) == pytest.approx(expected, abs=1e-12)


def test_a_single_code_has_no_rival() -> None:
    factors = grid(4)
    assert jemmig(factors, np.repeat(factors, 1, axis=1)) == pytest.approx(1, abs=1e-12)


def test_more_bins_raise_what_a_code_could_lose() -> None:
    factors = grid(2, 2)
    codes = factors @ [[2], [1]]
    for bins in (4, 20):
        expected = 1 - 1 / (1 + math.log2(bins))
        assert jemmig(codes, factors, bins=bins) == pytest.approx(expected, abs=1e-12)
