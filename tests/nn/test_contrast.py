"""NT-Xent against cases by hand and against a cross-entropy over explicit lists of candidates."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cosine_similarity, cross_entropy

from unweave.nn.contrast import nt_xent


def test_two_pairs_by_hand() -> None:
    """First pair (1, 0) and (0, 1), second pair (1, 0) twice; each image has one positive, two negatives."""
    first = torch.tensor([[2.0, 0.0], [3.0, 0.0]])
    second = torch.tensor([[0.0, 5.0], [7.0, 0.0]])
    e = math.e
    # Cosines with the partner and the two others: a1: 0, 1, 1; a2: 0, 0, 0; b1 and b2: 1, 1, 0.
    expected = (math.log(1 + 2 * e) + math.log(3) + 2 * math.log((2 * e + 1) / e)) / 4
    assert float(nt_xent(first, second, 1.0)) == pytest.approx(expected, rel=1e-6)


def test_equal_features_are_a_random_guess_and_distinct_pairs_are_found_at_a_low_temperature() -> None:
    same = torch.ones(2, 5, 3)
    torch.testing.assert_close(nt_xent(same, same, 0.5), torch.full((2,), math.log(9)))
    distinct = torch.eye(5).expand(2, -1, -1)
    assert (nt_xent(distinct, distinct, 0.05) < 1e-6).all()


def test_a_population_is_the_stack_of_cross_entropies_with_a_temperature_each() -> None:
    first, second = torch.randn(2, 2, 6, 4, generator=torch.Generator().manual_seed(0))
    actual = nt_xent(first, second, torch.tensor([0.5, 2.0]))
    for run, temperature in enumerate((0.5, 2.0)):
        features = torch.cat([first[run], second[run]])
        rows = []
        for i in range(12):
            partner = (i + 6) % 12
            others = [j for j in range(12) if j not in (i, partner)]
            candidates = features[[partner, *others]]
            rows.append(cosine_similarity(features[i : i + 1], candidates) / temperature)
        expected = cross_entropy(torch.stack(rows), torch.zeros(12, dtype=torch.int64))
        torch.testing.assert_close(actual[run], expected)
