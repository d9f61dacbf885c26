"""RMIG and SEPIN of Do and Tran: their program's numbers, and cases with a known answer."""

import numpy as np
import pytest
from numpy.typing import NDArray

from metrics.grids import grid
from unweave.errors import UnweaveError
from unweave.metrics import mig, rmig, sepin
from unweave.metrics.sepin import _mean_log_densities, _scores
from unweave.streams import Stream

SIZES = [3, 4]


def posteriors() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Means, log variances and factors, as the authors' program was given them."""
    stream = Stream.of(11)
    factors = stream.child("f").integers(240, SIZES)
    mixing = np.array([[0.9, 0.2, 0], [0.1, 0.8, 0.5]])
    mean = (factors - np.array(SIZES) / 2 + 0.5) @ mixing + 0.2 * stream.child("n").normal(240, 3)
    return mean, -3 + 0.5 * stream.child("v").normal(240, 3), factors


def test_rmig_of_the_authors_program() -> None:
    """From 7a_interpretability_metrics_v2.py of DisentanglementMetrics, in float32."""
    mean, log_var, factors = posteriors()
    assert rmig(mean, log_var, factors) == pytest.approx(0.46451205, abs=1e-6)
    # Posteriors narrower than a bin and beyond the limits.
    narrow = log_var + 2 * np.log(0.01)
    assert rmig(20 * mean, narrow, factors) == pytest.approx(0.2890789, abs=1e-6)


def test_rmig_of_narrow_posteriors_is_binned_mig() -> None:
    factors = grid(3, 4, repeats=5)
    codes = (factors - 1.0) @ np.array([[1.0, 0.3, 0.0], [0.2, 1.0, 0.7]])
    codes *= 3.99 / np.abs(codes).max()
    ends = np.array([[-4.0] * 3, [3.9999] * 3])  # so that both use the bins from -4 to 4
    spread = np.vstack([codes, ends])
    with_ends = np.vstack([factors, factors[:2]])
    assert rmig(spread, np.full(spread.shape, -40.0), with_ends, bins=20) == pytest.approx(
        mig(np.vstack([codes, ends]), with_ends, bins=20), abs=0.02
    )


def test_rmig_messages() -> None:
    mean, log_var, factors = posteriors()
    with pytest.raises(UnweaveError, match="`limits` must be two numbers, the lower first"):
        rmig(mean, log_var, factors, limits=(4, -4))
    with pytest.raises(UnweaveError, match=r"log_var must be \(240, 3\) like mean"):
        rmig(mean, log_var[:, :2], factors)
    with pytest.raises(UnweaveError, match="Did you pass the variance"):
        sepin(mean, log_var + 1000)


def test_sepin_of_the_authors_program() -> None:
    """From estimate_SEPIN_cupy with seed 0 and 2,000 samples, cupy replaced by NumPy; the same draws."""
    mean, log_var, _ = posteriors()
    random = np.random.RandomState(0)
    rows = random.choice(240, size=2000, replace=True, p=np.full(240, 1 / 240))
    noise = random.randn(2000, 3)
    found = _scores(*_mean_log_densities(mean, np.exp(-log_var / 2), rows, noise))
    assert found.wsepin == pytest.approx(0.7748329211666821, abs=1e-6)
    expected = [1.060312316624572, 0.7640798194815979, 0.43384707906954656]
    assert found.code_sepin == pytest.approx(np.array(expected), abs=1e-6)


def test_sepin_of_separate_and_copied_codes() -> None:
    """A code that tells log 4 nats of its own; two copies of it tell nothing that the other does not."""
    values = 50.0 * np.arange(4)[:, None]
    assert sepin(values, np.zeros((4, 1))).wsepin == pytest.approx(np.log(4), abs=1e-6)
    copies = sepin(np.hstack([values, values]), np.zeros((4, 2)))
    assert copies.wsepin == pytest.approx(0, abs=1e-6)
    assert copies.code_information == pytest.approx(np.full(2, np.log(4)), abs=1e-6)


def test_sepin_of_a_dead_posterior_is_zero() -> None:
    dead = sepin(np.zeros((30, 3)), np.zeros((30, 3)))
    assert dead.wsepin == pytest.approx(0, abs=1e-9)
    assert dead.sepin == pytest.approx(0, abs=1e-9)


def test_sepin_with_a_huge_distance_in_another_code() -> None:
    """A code of range 1e12 does not destroy the digits of the others."""
    values = 50.0 * grid(4, 4)
    far = values * [1.0, 1e12]
    assert sepin(far, np.zeros(far.shape)).code_sepin == pytest.approx(np.full(2, np.log(4)), abs=0.05)
