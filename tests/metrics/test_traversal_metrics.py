"""Flatness, factored components and z_max_var: the programs' numbers, and cases with a known answer."""

import numpy as np
import pytest
from numpy.typing import NDArray

from metrics.grids import drawn, noise
from unweave.errors import UnweaveError
from unweave.metrics import Representation, factored_components, flatness, z_max_var
from unweave.streams import Stream


def along_one(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
    x = factors[:, 0].astype(np.float64)
    return np.stack([np.sin(x), 0.5 * x, np.cos(2 * x) * 0.3], axis=1)


# The second factor has one value, so there is a single path and nothing is drawn.
ONE_PATH = Representation(along_one, (7, 1))


def test_flatness_of_the_authors_program() -> None:
    """From metric_flatness of disent."""
    assert flatness(ONE_PATH, repeats=3) == pytest.approx(0.3552674215995232, abs=1e-12)


def test_factored_components_of_the_authors_program() -> None:
    """From _compute_factored_metric_components_along_factor of disent; its triplets are random."""
    found = factored_components(ONE_PATH, repeats=1000)
    assert found.linear_ratio == pytest.approx(0.7430306288469636, abs=1e-12)
    assert found.axis_ratio == pytest.approx(0.5025982341343685, abs=1e-12)
    assert found.axis_alignment == pytest.approx(0.6764165764126054, abs=1e-12)
    assert found.rank_correlation == pytest.approx(0.961700990263163, abs=0.003)


def test_a_rotated_line_is_flat_but_not_along_an_axis() -> None:
    """A line at 45 degrees: Euclidean width over city-block length is 1 / sqrt(2); linear 1, axis ratio 0."""
    line = Representation(lambda factors, stream: np.repeat(factors[:, :1] * 1.0, 2, axis=1), (5, 1))  # noqa: ARG005
    assert flatness(line, repeats=2) == pytest.approx(2**-0.5)
    found = factored_components(line, repeats=2)
    assert found.linear_ratio == pytest.approx(1)
    assert found.axis_ratio == pytest.approx(0, abs=1e-12)


def test_a_circle() -> None:
    """Six points of a hexagon: width 2, five steps of length 1 in another norm; no direction is preferred."""
    angles = np.pi / 3 * np.arange(6)
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    circle = Representation(lambda factors, stream: points[factors[:, 0]], (6, 1))  # noqa: ARG005
    steps = np.abs(np.roll(points, -1, axis=0) - points).sum(axis=1)
    assert flatness(circle, repeats=2) == pytest.approx(2 / (steps.sum() - steps.max()))
    assert factored_components(circle, repeats=2).linear_ratio == pytest.approx(0, abs=1e-12)


def test_dead_codes_are_at_the_bottom() -> None:
    dead = Representation(lambda factors, stream: 0.0 * factors, (3, 4))  # noqa: ARG005
    assert flatness(dead, repeats=2) == 0
    assert factored_components(dead, repeats=2) == (0, 0, 0, 0)
    assert z_max_var(dead, train=20, test=20) == (0, 0, 0)


def test_z_max_var_of_the_review() -> None:
    """Twelve runs of z_max_var of Carbonneau et al.: mean 0.545, standard deviation of a run 0.019."""

    def encode(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
        a, b, c = factors.astype(np.float64).T
        return np.stack([np.sin(a * b) + a * 0.2, np.cos(b + a * c), np.sin(3 * c + b)], axis=1)

    found = [z_max_var(Representation(encode, (5, 6, 3)), seed=seed, batch=100) for seed in range(6)]
    assert np.mean([score.eval_accuracy for score in found]) == pytest.approx(0.5448, abs=0.03)


def test_z_max_var_of_perfect_codes_and_noise() -> None:
    perfect = Representation(lambda factors, stream: factors * [5.0, -0.3], (4, 3))  # noqa: ARG005
    assert z_max_var(perfect, train=50, test=50).eval_accuracy == 1
    lost = Representation(lambda factors, stream: stream.normal(len(factors), 4), (4, 3, 3))
    assert z_max_var(lost, train=400, test=400, batch=20).eval_accuracy == pytest.approx(1 / 3, abs=0.1)


def test_some_rows_are_not_enough() -> None:
    rows = Representation.from_rows(noise(60, 2), drawn((3, 4), 60))
    for metric in (flatness, factored_components, z_max_var):
        with pytest.raises(UnweaveError, match="all combinations of factors; got some rows only"):
            metric(rows)
