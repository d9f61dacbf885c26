"""Structural Hamming distance, by hand."""

from typing import Any

import numpy as np
import pytest

from unweave.errors import UnweaveError
from unweave.metrics import structural_hamming_distance

CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])  # 0 -> 1 -> 2


def test_added_missing_and_reversed_edges() -> None:
    assert structural_hamming_distance(CHAIN, CHAIN) == 0
    assert structural_hamming_distance(np.zeros((3, 3)), CHAIN) == 2
    assert structural_hamming_distance([[0, 1, 1], [0, 0, 1], [0, 0, 0]], CHAIN) == 1
    assert structural_hamming_distance(CHAIN.T, CHAIN) == 2
    assert structural_hamming_distance(CHAIN.T, CHAIN, reversal=2) == 4
    assert structural_hamming_distance(CHAIN * 0.3 != 0, CHAIN) == 0  # any weight is an edge


def test_it_is_a_distance() -> None:
    graphs = [np.array([[0, a], [b, 0]]) for a in (0, 1) for b in (0, 1)]
    for first in graphs:
        for second in graphs:
            there = structural_hamming_distance(first, second)
            assert there == structural_hamming_distance(second, first)
            assert (there == 0) == bool((first == second).all())


@pytest.mark.parametrize(
    ("graph", "truth", "message"),
    [
        ([[0, 1]], CHAIN, r"`graph` must be an adjacency matrix \(k, k\); got an array of shape \(1, 2\)"),
        (CHAIN, np.zeros((2, 2)), "must have the same nodes"),
        (CHAIN.astype(str), CHAIN, "`graph` must hold numbers"),
    ],
)
def test_messages(graph: Any, truth: Any, message: str) -> None:
    with pytest.raises(UnweaveError, match=message):
        structural_hamming_distance(graph, truth)
    with pytest.raises(UnweaveError, match="`reversal` must be 1 or 2"):
        structural_hamming_distance(CHAIN, CHAIN, reversal=3)
