"""DCIMIG: the share of the factors that codes of their own hold."""

import math

import numpy as np
import pytest

from metrics.grids import grid
from unweave.metrics import dcimig


def test_gaps_by_hand() -> None:
    """Factor 0 has the codes 0 (all of it) and 1 (half); code 2 mixes: 1 bit of each, and belongs to none."""
    factors = grid(4, 2)
    codes = np.stack([factors[:, 0], factors[:, 0] // 2, 2 * factors[:, 1] + factors[:, 0] // 2], axis=1)
    assert dcimig(codes, factors) == pytest.approx(2 / 3, abs=1e-12)  # 2 of 2 + 1 bits


def test_an_unknown_factor_costs_its_entropy() -> None:
    factors = grid(3, 4, 5)
    expected = math.log(12) / math.log(60)
    assert dcimig(factors[:, :2], factors) == pytest.approx(expected, abs=1e-12)
    assert dcimig(factors[:, [2, 0, 1, 0]], factors) == pytest.approx(1, abs=1e-12)


def test_a_single_factor_has_no_rival() -> None:
    factors = grid(4)
    assert dcimig(factors // 2, factors) == pytest.approx(0.5, abs=1e-12)
