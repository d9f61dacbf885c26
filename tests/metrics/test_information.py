"""Plug-in information: by hand, by a slow second way, and against the published numbers."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from metrics.grids import awkward_codes, drawn, grid, noise
from metrics.reference_cases import NAMES, load_case
from unweave.errors import UnweaveError
from unweave.metrics import mutual_information
from unweave.metrics.information import (
    discretise,
    entropies,
    information_of_labels,
    joint_entropies,
    numbered,
)


def slow_entropy(*columns: NDArray[np.int64]) -> float:
    """Entropy of the tuples, from a dictionary of counts."""
    counted = Counter(zip(*(column.tolist() for column in columns), strict=True))
    n = len(columns[0])
    return sum(count / n * math.log(n / count) for count in counted.values())


@pytest.mark.parametrize("name", NAMES)
def test_published_values(reference: Path, name: str) -> None:
    case = load_case(reference, name)
    expected = case.expected["mi_matrix"]
    assert mutual_information(*case.train) == pytest.approx(np.array(expected["mi_matrix"]), abs=1e-9)
    values = numbered(case.train[1].astype(np.int64))
    assert entropies(values) == pytest.approx(np.array(expected["factor_entropy"]), abs=1e-9)


def test_a_contingency_table_by_hand() -> None:
    """Counts 3 1 / 1 3: I = log 2 - H(1/4)."""
    codes = np.array([0, 0, 0, 0, 1, 1, 1, 1.0])[:, None]
    factors = np.array([5, 5, 5, 9, 9, 9, 9, 5])[:, None]
    expected = math.log(2) + 0.25 * math.log(0.25) + 0.75 * math.log(0.75)
    assert mutual_information(codes, factors)[0, 0] == pytest.approx(expected, abs=1e-15)


@settings(deadline=None, max_examples=60)
@given(arrays.arrays(np.int64, (30, 3), elements=st.integers(0, 4)))
def test_information_is_what_entropies_say(labels: NDArray[np.int64]) -> None:
    first, second = labels[:, :2], labels[:, 2:]
    information = information_of_labels(first, second)
    joint = joint_entropies(first, second)
    for i in range(2):
        together = slow_entropy(first[:, i], second[:, 0])
        alone = slow_entropy(first[:, i]), slow_entropy(second[:, 0])
        assert joint[i, 0] == pytest.approx(together, abs=1e-12)
        assert information[i, 0] == pytest.approx(sum(alone) - together, abs=1e-12)
        assert 0 <= information[i, 0] <= min(alone) + 1e-12
        assert entropies(first)[i] == pytest.approx(alone[0], abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(arrays.arrays(np.float64, (20, 2), elements=st.floats(-1e6, 1e6, width=32)), st.integers(2, 30))
def test_bins_are_those_of_a_histogram(codes: NDArray[np.float64], bins: int) -> None:
    labels = discretise(codes, bins)
    assert labels.shape == codes.shape
    assert labels.min() >= 0
    assert labels.max() < bins
    for i in range(codes.shape[1]):
        column, values = labels[:, i], codes[:, i]
        low, high = values.min(), values.max()
        if high - low > 1e-6 * max(abs(low), abs(high)):  # else NumPy sees too many bins for the range
            edges = np.histogram(values, bins)[1]
            assert (column == np.searchsorted(edges[:-1], values, side="right") - 1).all()


def test_an_edge_belongs_to_the_bin_above() -> None:
    assert discretise(np.array([[0.0], [1.0], [2.0], [3.0], [4.0]]), bins=2)[:, 0].tolist() == [0, 0, 1, 1, 1]


def test_edges_have_the_precision_of_the_codes() -> None:
    """183 equal steps in float32: the middle one lies on the edge between bins 9 and 10 when rounded."""
    for kind in (np.float32, np.float64):
        codes = (np.arange(183) / 182 * 3.4641 - 1.7320).astype(kind)
        edges = np.linspace(float(codes[0]), float(codes[-1]), 21).astype(kind)
        assert (
            discretise(codes[:, None])[:, 0] == np.searchsorted(edges[:20], codes, side="right") - 1
        ).all()


def test_dead_codes_and_single_values_tell_exactly_nothing() -> None:
    factors = drawn([3, 7], 1000)
    assert (mutual_information(np.full((1000, 1), 0.1), factors) == 0).all()
    assert (mutual_information(noise(1000, 2), np.full((1000, 1), 4)) == 0).all()


def test_independent_columns_of_a_grid_share_exactly_nothing() -> None:
    factors = grid(3, 6, 7)
    information = mutual_information(factors, factors)
    assert (information[~np.eye(3, dtype=bool)] == 0).all()
    assert np.diag(information) == pytest.approx(np.log([3, 6, 7]), abs=1e-12)


def test_awkward_codes_have_finite_information() -> None:
    for name, codes in awkward_codes().items():
        information = mutual_information(codes, grid(3, 4, repeats=10))
        assert np.isfinite(information).all(), name
        assert (information >= 0).all(), name
        assert (information <= np.log([3, 4]) + 1e-12).all(), name


@pytest.mark.parametrize("scale", [2.0**900, 2.0**-1000, -1.0])
def test_scale_and_sign_do_not_matter(scale: float) -> None:
    codes, factors = noise(500, 2), drawn([3, 4], 500)
    expected = mutual_information(codes, factors)
    assert mutual_information(codes * scale, factors) == pytest.approx(expected, abs=1e-12)


def test_values_are_numbered_in_their_order() -> None:
    assert numbered(np.array([[7, -1], [3, -1], [7, 0]])).tolist() == [[1, 0], [0, 0], [1, 1]]


def test_bins_are_checked() -> None:
    with pytest.raises(UnweaveError, match="bins must be a whole number"):
        mutual_information(noise(10, 1), drawn([2], 10), bins=1)
