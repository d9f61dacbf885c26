"""The Frechet distance against closed forms and against SciPy's square root of matrices."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

from unweave.evaluation.frechet import distance_of_normals, distance_of_samples
from unweave.streams import Stream

DRAWN = Stream.of(0).child("frechet")


def by_scipy(first: np.ndarray, second: np.ndarray) -> float:
    """Equation 6 of Heusel et al. (2017), word for word."""
    covariances = [np.cov(rows, rowvar=False) for rows in (first, second)]
    root = sqrtm(covariances[0] @ covariances[1])
    between = np.square(first.mean(0) - second.mean(0)).sum()
    return float(between + np.trace(covariances[0] + covariances[1] - 2 * np.real(root)))


def test_independent_features_differ_by_their_deviations() -> None:
    """|m - m'|^2 + sum (s - s')^2, if both covariances are diagonal."""
    found = distance_of_normals([1.0, 2.0], np.diag([4.0, 9.0]), [1.0, 0.0], np.diag([1.0, 25.0]))
    assert found == pytest.approx(4 + (2 - 1) ** 2 + (3 - 5) ** 2)


@pytest.mark.parametrize(("rows", "features"), [(400, 6), (40, 6)])
def test_samples_have_the_distance_that_scipy_computes(rows: int, features: int) -> None:
    mixing = DRAWN.child("mixing").normal(features, features)
    first = DRAWN.child("first").normal(rows, features) @ mixing
    second = DRAWN.child("second").normal(rows, features) + 0.5
    assert distance_of_samples(first, second) == pytest.approx(by_scipy(first, second), rel=1e-6)


def test_few_samples_have_the_distance_of_their_covariances() -> None:
    """Fewer samples than features take another road."""
    first, second = (DRAWN.child(name).normal(12, 30) for name in ("a", "b"))
    moments = [(rows.mean(0), np.cov(rows, rowvar=False)) for rows in (first, second)]
    expected = distance_of_normals(*moments[0], *moments[1])
    assert distance_of_samples(first, second) == pytest.approx(expected, rel=1e-6)
    assert distance_of_samples(first, first) == pytest.approx(0, abs=1e-9)
    assert distance_of_samples(first, first + 3) == pytest.approx(30 * 9)
