"""MIG-sup: the gap between the factors of a code."""

import numpy as np
import pytest

from metrics.grids import awkward_codes, drawn, grid, noise
from unweave.errors import UnweaveError
from unweave.metrics import mig_sup


def test_gaps_by_hand() -> None:
    """Code 0 holds factor 0 wholly; code 1 holds factor 1, and half (one of two bits) of factor 0."""
    factors = grid(4, 2)
    codes = np.stack([factors[:, 0], 2 * factors[:, 1] + factors[:, 0] // 2], axis=1)
    assert mig_sup(codes, factors) == pytest.approx((1 + 0.5) / 2, abs=1e-12)


def test_only_active_codes_count() -> None:
    factors = grid(4, 2)
    both = factors[:, :1] + 4 * factors[:, 1:]  # tells both factors wholly: no gap
    codes = np.hstack([factors, 0.01 * both, np.full((8, 1), 9.0)])
    assert mig_sup(codes, factors) == pytest.approx(1, abs=1e-12)
    assert mig_sup(codes, factors, active=0) == pytest.approx(2 / 3, abs=1e-12)
    assert mig_sup(codes, factors, active=100) == 0


def test_the_variance_decides_what_is_active() -> None:
    factors = grid(2, repeats=2)
    codes = factors * 0.4  # variance 0.04
    assert mig_sup(codes, factors, active=0.039) == pytest.approx(1, abs=1e-12)
    assert mig_sup(codes, factors, active=0.041) == 0


@pytest.mark.parametrize("active", [0, 0.01])
def test_awkward_codes_get_a_score(active: float) -> None:
    for name, codes in awkward_codes().items():
        assert 0 <= mig_sup(codes, grid(3, 4, repeats=10), active=active) <= 1, name


def test_active_is_a_variance() -> None:
    with pytest.raises(UnweaveError, match="active must be a variance >= 0; got -1"):
        mig_sup(noise(10, 1), drawn([2], 10), active=-1)
