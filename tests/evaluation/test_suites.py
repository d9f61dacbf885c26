"""Suites leave out what they cannot measure, and say so; a metric that is asked for by name is refused."""

import numpy as np
import pytest
from numpy.typing import NDArray

import unweave
from metrics.grids import drawn, grid
from unweave.errors import UnweaveError
from unweave.metrics.table import SUITES
from unweave.streams import Stream

FACTORS = grid(3, 4, 5)
CODES = Stream.of(0).normal(60, 3)
UNIQUE = np.arange(60)[:, None]
ALONE = "60 of 60 rows have a value that no other row has; bin it first, or state that it is continuous"
SUITE_NAMES = [name for name in SUITES if name not in ("all", "blocks")]


@pytest.mark.parametrize("suite", SUITE_NAMES)
@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (UNIQUE, ALONE),
        (UNIQUE * 1000, ALONE),
        (0 * UNIQUE, "it has the same value in all rows"),
    ],
)
def test_a_factor_that_cannot_be_measured_does_not_stop_a_suite(
    suite: str, odd: NDArray[np.float64], reason: str
) -> None:
    scores = unweave.evaluate(CODES, np.hstack([FACTORS, odd]), metrics=suite, points=(40, 20))
    plain = unweave.evaluate(CODES, FACTORS, metrics=suite, points=(40, 20))
    assert f'factor "v3" was left out: {reason}.' in scores.notes
    assert scores.factors == ("v0", "v1", "v2")
    assert scores["mig"] == plain["mig"]
    with pytest.raises(UnweaveError, match=r'factor (3|"v3")'):
        unweave.evaluate(CODES, np.hstack([FACTORS, odd]), metrics="sap", points=(40, 20))


def test_a_single_factor_that_cannot_be_measured_leaves_what_needs_none() -> None:
    scores = unweave.evaluate(CODES, UNIQUE, metrics="study")
    assert set(scores) == {
        "total_correlation",
        "wasserstein_correlation",
        "wasserstein_correlation_normalised",
        "mean_pairwise_information",
    }
    assert "downstream_trees were left out: no factor can be measured." in scores.notes[0]
    for suite in ("quick", "headline"):
        with pytest.raises(UnweaveError, match=r"nothing that was asked for .* no factor can be measured\."):
            unweave.evaluate(CODES, UNIQUE, metrics=suite)


def test_metrics_that_fail_are_left_out_with_their_sentence() -> None:
    factors = np.array([[0], [1], [0], [1]])
    scores = unweave.evaluate(CODES[:4], factors, metrics="quick")
    assert set(scores) == {"mig"}
    noted = " ".join(scores.notes)
    assert "sap and explicitness were left out: " in noted
    assert "modularity was left out: there is only one factor" in noted
    with pytest.raises(UnweaveError, match=r"^in the test data, codes must be .* at least 2 rows"):
        unweave.evaluate(CODES[:4], factors, metrics="sap")


def test_too_few_rows_are_a_sentence() -> None:
    with pytest.raises(UnweaveError, match="nothing that was asked for can be measured"):
        unweave.evaluate(CODES[:2, :1], FACTORS[:2, :1], metrics="all")
    with pytest.raises(UnweaveError, match="an evaluation needs at least 3 rows; got 2"):
        unweave.evaluate(CODES[:2], [[0], [1]], metrics="mig")


def test_repeats_of_a_suite_that_fail_are_left_out_of_the_interval() -> None:
    factors = np.zeros((12, 1), np.int64)
    factors[:3] = 1  # some bootstrap samples have one class only
    scores = unweave.evaluate(CODES[:12], factors, metrics="quick", repeats=12)
    assert scores.score("mig").low is not None


def test_test_data_with_unseen_values_are_noted() -> None:
    factors, held_out = drawn((3, 4), 200), drawn((3, 4), 100, seed=5)
    held_out[:, 1] += 3  # three of four values are new
    scores = unweave.evaluate(factors * 1.0, factors, test=(held_out * 1.0, held_out), metrics="sap")
    [note] = scores.notes
    assert note.startswith('factor "v1": ')
    assert "of the test points have one of 3 values that no training point has" in note
    assert not unweave.evaluate(factors * 1.0, factors, test=(held_out, held_out), metrics="mig").notes
