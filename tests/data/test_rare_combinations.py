"""Draws of which few are accepted: from a table of all probabilities, exactly and without giving up."""

import numpy as np
import pytest
from numpy.typing import NDArray

from training.tiny import TINY
from unweave.data import load
from unweave.data.grid import Factor, Factors, GroundTruth
from unweave.data.weight_table import HOPELESS, rare_table
from unweave.errors import UnweaveError
from unweave.streams import Stream

SIZES = (20, 20, 3)
SCALE = 1e-3


def correlated(factors: Factors) -> NDArray[np.float64]:
    """Weights of at most 1/1000 that depend on all three factors; 0 where the second one is 0."""
    close = np.exp(-0.5 * ((factors[:, 0] - factors[:, 1]) / 4) ** 2)
    return np.asarray(SCALE * close * (1 + factors[:, 2]) / 3 * (factors[:, 1] > 0), np.float64)


def rare_truth(weight: object = correlated) -> GroundTruth:
    factors = tuple(Factor(f"f{j}", size) for j, size in enumerate(SIZES))
    return GroundTruth(
        "rare",
        factors,
        TINY.shape,
        TINY.render,
        TINY.card,
        "made up",
        weight=weight,  # type: ignore[arg-type]
    )


def check_frequencies(drawn: Factors, weights: NDArray[np.float64]) -> None:
    """The chi-squared statistic over all combinations of the grid, within 5 deviations of its mean."""
    found = np.zeros(SIZES)
    np.add.at(found, tuple(drawn.T), 1)
    expected = weights / weights.sum() * len(drawn)
    assert not found[expected == 0].any()
    often = expected > 5
    statistic = ((found - expected) ** 2 / np.where(often, expected, 1))[often].sum()
    assert abs(statistic - often.sum()) < 5 * np.sqrt(2 * often.sum())


def test_rare_combinations_are_drawn_with_their_probabilities() -> None:
    truth = rare_truth()
    weights = correlated(truth.factors_at(np.arange(len(truth)))).reshape(SIZES)
    assert weights.mean() < HOPELESS
    drawn = truth.sample_factors(60_000, 0)
    check_frequencies(drawn, weights)
    np.testing.assert_array_equal(truth.sample_factors(30, Stream.of(0).skip(50)), drawn[50:80])
    fixed = truth.sample_factors(60_000, 1, fixed={"f0": 3})
    only = np.zeros(SIZES)
    only[3] = weights[3]
    check_frequencies(fixed, only)
    groups = truth.sample_groups(60_000, 2, 2, ["f2"])
    assert (groups[:, 0, 2] == groups[:, 1, 2]).all()
    check_frequencies(groups[:, 1], weights)


def test_what_no_attempt_finds_is_drawn_from_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where most draws are accepted, combinations with a fixed factor can be rare all the same."""

    def weight(factors: Factors) -> NDArray[np.float64]:
        return np.where(factors[:, 0] == 0, correlated(factors), 1.0)

    monkeypatch.setattr("unweave.data.grid.MOST_ATTEMPTS", 3)
    truth = rare_truth(weight)
    assert rare_table(SIZES, weight) is None
    drawn = truth.sample_factors(40_000, 0, fixed={"f0": 0})
    only = np.zeros(SIZES)
    only[0] = weight(truth.factors_at(np.arange(len(truth)))).reshape(SIZES)[0]
    check_frequencies(drawn, only)
    with pytest.raises(UnweaveError, match="4 of 4 draws found no allowed combination of factors"):
        truth.sample_factors(4, 0, fixed={"f0": 0, "f1": 0})


def test_few_of_many_combinations_can_be_drawn() -> None:
    """One of 737,280, and a correlation of all factors with one, of which 1 in 12,000 draws is kept."""
    one = load("dsprites:only(shape=2,scale=5,orientation=3,x=16,y=7)")
    assert (one.sample_factors(100, 0) == [2, 5, 3, 16, 7]).all()
    drawn = load("dsprites:roth_confounder_2=0.04").sample_factors(2_000, 0)
    assert np.corrcoef(drawn[:, 3], drawn[:, 4])[0, 1] > 0.95


def test_most_data_need_no_table() -> None:
    for name in ("dsprites:x~y=0.2", "dsprites:traeuble_b", "dsprites:montero_range"):
        truth = load(name)
        assert truth.weight is not None
        assert rare_table(truth.sizes, truth.weight) is None
    assert rare_table(SIZES, lambda factors: np.zeros(len(factors))) is None
