"""Alignment of latents, settings that differ and comparable scores, with known answers."""

import numpy as np
import pytest

from unweave.evaluation.scores import Score
from unweave.explore.compare import (
    LEAST_CORRELATION,
    Match,
    aligned_latents,
    correlations,
    differing_settings,
    matches,
    score_rows,
)
from unweave.streams import Stream


def normal(n: int, d: int, name: str = "codes") -> np.ndarray:
    return Stream.of(0).child(name).normal(n, d)


def orthonormal(n: int, d: int) -> np.ndarray:
    """Codes whose columns have mean 0, variance 1 and correlation 0, exactly."""
    centred = normal(n, d) - normal(n, d).mean(axis=0)
    return np.asarray(np.linalg.qr(centred)[0] * np.sqrt(n))


def test_correlations_are_those_of_numpy() -> None:
    codes, others = normal(300, 3), normal(300, 4, "others")
    others[:, 1] += codes[:, 2]
    expected = np.corrcoef(codes.T, others.T)[:3, 3:]
    assert correlations(codes, others) == pytest.approx(expected)
    others[:, 0] = 7.0
    assert not correlations(codes, others)[:, 0].any()


def test_a_permutation_with_signs_and_scales_is_recovered() -> None:
    codes = orthonormal(400, 5)
    order, signs = [3, 0, 4, 1, 2], np.array([1, -1, -1, 1, -1])
    other = np.empty_like(codes)
    for i, (j, sign) in enumerate(zip(order, signs, strict=True)):
        other[:, j] = 4.0 * sign * codes[:, i] - 3.0
    rows = aligned_latents([codes, other], [[2, 0, 1, 3, 4], [0, 1, 2, 3, 4]])
    expected = [(Match(i, 1.0), Match(order[i], float(signs[i]))) for i in (2, 0, 1, 3, 4)]
    assert rows == expected


def test_noise_lowers_the_correlation_as_theory_says() -> None:
    codes = orthonormal(400, 4)
    # Column 1 is mixed with column 3 of the same orthonormal codes: the correlation is 0.6.
    other = np.stack([codes[:, 0], 0.6 * codes[:, 1] - 0.8 * codes[:, 3]], axis=1)
    rows = aligned_latents([codes[:, :2], other], [[0, 1], [0, 1]])
    assert rows == [(Match(0, 1.0), Match(0, 1.0)), (Match(1, 1.0), Match(1, 0.6))]


def test_the_sum_is_maximised_and_not_each_pair() -> None:
    # Greedy matching takes 0.9 and is left with 0.1; the best assignment has 0.8 + 0.7.
    assert matches(np.array([[0.9, 0.8], [0.7, 0.1]])).tolist() == [1, 0]
    assert matches(np.array([[0.9, 0.0], [0.0, LEAST_CORRELATION - 0.01]])).tolist() == [0, -1]
    assert matches(np.array([[0.2], [0.9], [0.3]])).tolist() == [-1, 0, -1]
    assert matches(np.array([[0.2, 0.9, 0.3]])).tolist() == [1]


def test_unmatched_latents_come_last_and_dead_ones_not_at_all() -> None:
    codes = orthonormal(400, 6)
    first, second, third = codes[:, [0, 1, 2]], codes[:, [3, 0]], -codes[:, [2, 4, 0]]
    # Latent 2 of the third run is dead, although its mean code correlates with latent 0 of the first.
    rows = aligned_latents([first, second, third], [[1, 0, 2], [0, 1], [1, 0]])
    assert rows == [
        (Match(0, 1.0), Match(1, 1.0), None),
        (Match(2, 1.0), None, Match(0, -1.0)),
        (Match(1, 1.0), None, None),
        (None, Match(0, 1.0), None),
        (None, None, Match(1, 1.0)),
    ]
    assert aligned_latents([first, second], [[], [1]]) == [(None, Match(1, 1.0))]
    assert aligned_latents([first, second], [[1], []]) == [(Match(1, 1.0), None)]


def test_only_settings_that_differ_are_listed() -> None:
    table = differing_settings(
        [
            {"method": "beta_vae", "beta": 4.0, "seed": 0, "steps": 10, "gradient_clip": None},
            {"method": "factor_vae", "gamma": 0.5, "seed": 1, "steps": 10, "gradient_clip": None},
            {"method": "beta_vae", "beta": 4, "seed": 1, "steps": 10, "gradient_clip": 1.0},
        ]
    )
    assert table == {
        "method": ["beta_vae", "factor_vae", "beta_vae"],
        "beta": ["4", None, "4"],
        "seed": ["0", "1", "1"],
        "gradient_clip": ["none", "none", "1"],
        "gamma": [None, "0.5", None],
    }
    assert differing_settings([{"seed": 1}, {"seed": 1}]) == {}


def score(value: float, protocol: str = "mig[bins20,mean]", name: str = "mig") -> Score:
    return Score(name, protocol, "mean", value, value - 0.1, value + 0.1)


def test_scores_of_one_protocol_are_comparable() -> None:
    (row,) = score_rows([[score(0.1)], [], [score(0.3)]])
    assert row.comparable
    assert [value and value.value for value in row.values] == [0.1, None, 0.3]
    assert row.protocols == ["mig[bins20,mean]"]


def test_scores_of_different_protocols_are_not_comparable() -> None:
    other = "mig[bins20,n600,mean]"
    (row,) = score_rows([[score(0.1)], [score(0.2, other)]])
    assert not row.comparable
    assert set(row.protocols) == {"mig[bins20,mean]", other}
    # A protocol that all runs have is chosen over the first one in the folder.
    (row,) = score_rows([[score(0.1)], [score(0.2, other), score(0.3)]])
    assert row.comparable
    assert [value and value.value for value in row.values] == [0.1, 0.3]


def test_scores_of_different_codes_are_different_scores() -> None:
    sampled = Score("mig", "mig[bins20,sampled]", "sampled", 0.2)
    rows = score_rows([[score(0.1), sampled], [score(0.4)]])
    assert [(row.name, row.representation, row.comparable) for row in rows] == [
        ("mig", "mean", True),
        ("mig", "sampled", True),
    ]
