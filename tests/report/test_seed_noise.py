"""The correction of the jackknife of shares of variance, against exact variances."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from unweave.report.seed_noise import counted_pairs, split, variance_factor
from unweave.report.variance import mean_shares
from unweave.streams import Stream


@pytest.mark.parametrize("seeds", [3, 4, 6])
def test_how_often_pairs_are_counted(seeds: int) -> None:
    """The square of a mean of signs has no linear part: all 2^n cases give the exact answer."""
    signs = np.array(list(product([-1, 1], repeat=seeds)))
    left = ((signs.sum(1)[:, None] - signs) / (seeds - 1)) ** 2
    jackknife = (seeds - 1) * left.var(1)
    assert jackknife.mean() / (signs.mean(1) ** 2).var() == pytest.approx(counted_pairs(seeds))


def runs_of(shape: tuple[int, int, int], values: np.ndarray) -> pd.DataFrame:
    """Runs of one data set with a column of scores for each column of the values."""
    methods, settings, seeds = shape
    rows = list(product(map(str, range(methods)), map(str, range(settings)), range(seeds)))
    runs = pd.DataFrame(rows, columns=["method", "setting", "seed"]).assign(data="d")
    scores = pd.DataFrame(values, columns=[f"s{i}" for i in range(values.shape[1])])
    return pd.concat([runs, scores], axis=1)


def test_variance_of_shares_of_noise() -> None:
    """Shares p of normal noise have a Dirichlet distribution, with variances p (1 - p) / ((n + 1) / 2)."""
    shape, studies = (3, 4, 5), 150
    runs = runs_of(shape, Stream.of(5).normal(60, studies))
    quantile = t.ppf(0.975, shape[2] - 1)
    intervals = [mean_shares(runs, [f"s{i}"]) for i in range(studies)]
    for name, freedom in (("setting", 9), ("seed", 48)):
        share = freedom / 59
        exact = share * (1 - share) / (61 / 2)
        # An interval that 0 or 1 cuts off is as long on its other side.
        reach = [
            max(one[name].high - one[name].estimate, one[name].estimate - one[name].low) for one in intervals
        ]
        assert 0.8 < np.mean((np.array(reach) / quantile) ** 2) / exact < 1.3  # 2.2 without the correction


def test_factor_is_1_where_effects_dominate() -> None:
    setting = np.repeat(np.arange(6), 4)
    values = 100.0 * setting + Stream.of(6).normal(24, 1)[:, 0]
    parts = split(values, setting // 3, setting, np.arange(24), 24)
    assert parts.freedom.tolist() == [1, 4, 18]
    assert parts.parts.sum(0) == pytest.approx(values - values.mean())
    assert variance_factor([[parts]], seeds=4)[:2] == pytest.approx(1, abs=0.02)


def test_scores_that_some_runs_lack_or_that_do_not_vary() -> None:
    runs = runs_of((2, 2, 4), Stream.of(7).normal(16, 3))
    runs.loc[3, "s1"] = np.nan
    runs["s2"] = 0.5
    shares = mean_shares(runs, ["s0", "s1", "s2"])
    assert all(
        np.isfinite(share).all() and share.low < share.estimate < share.high for share in shares.values()
    )
    constant = mean_shares(runs, ["s2"])
    assert {tuple(share) for share in constant.values()} == {(0.0, 0.0, 0.0)}
