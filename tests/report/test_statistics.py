from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, spearmanr, ttest_1samp
from scipy.stats import t as t_distribution

from unweave.errors import UnweaveError
from unweave.report.published import STUDY_SCORES
from unweave.report.rank_correlation import (
    correlations,
    mean_correlations,
    rank_correlations,
    small_spearman_interval,
    spearman,
    spearman_interval,
    spearman_matrix,
)
from unweave.report.statistics import (
    Interval,
    bootstrap,
    holm,
    interquartile_mean,
    mean,
    mean_interval,
    probability_of_improvement,
    resampled_rows,
)
from unweave.streams import Stream

whole_numbers = st.lists(st.integers(0, 5), min_size=2, max_size=12)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([8, 1, 7, 2, 6, 3, 5, 4], 4.5),  # 3, 4, 5, 6 are left
        ([1, 2, 3, 100, -50], 2.0),  # 5 // 4 = 1 at each end
        ([1, 2, 6], 3.0),  # too few to cut any
        ([[0, 0, 2, 9], [1, 1, 1, 1]], [1.0, 1.0]),
    ],
)
def test_interquartile_mean(values: Any, expected: Any) -> None:
    assert interquartile_mean(values) == pytest.approx(expected)


def test_bootstrap_of_two_values() -> None:
    # The mean of a resample of {0, 1} is 0, 1/2, 1 with probabilities 1/4, 1/2, 1/4.
    assert bootstrap([0, 1]) == Interval(0.5, 0.0, 1.0)
    assert bootstrap([0, 1], confidence=0.4) == Interval(0.5, 0.5, 0.5)


def test_bootstrap_of_a_mean_is_as_wide_as_theory_says() -> None:
    values = Stream.of(1).normal(400, 1)[:, 0]
    result = bootstrap(values, resamples=4000)
    assert result.estimate == pytest.approx(values.mean())
    error = values.std() / np.sqrt(400)
    assert result.low == pytest.approx(values.mean() - 1.96 * error, abs=0.15 * error)
    assert result.high == pytest.approx(values.mean() + 1.96 * error, abs=0.15 * error)


def test_strata_are_drawn_among_themselves() -> None:
    # Within its stratum each value is alone or has equals only, so no resample differs.
    assert bootstrap([1, 5, 9], strata=["a", "b", "c"]) == Interval(5.0, 5.0, 5.0)
    assert bootstrap([5, 1, 5, 1], interquartile_mean, strata=[1, 0, 1, 0]) == Interval(3.0, 3.0, 3.0)
    # Two strata, {0, 1} and {100}: the mean is 100 / 3 + (0, 1 or 2) / 3.
    result = bootstrap([0, 100, 1], strata=["a", "b", "a"])
    assert result == pytest.approx((101 / 3, 100 / 3, 102 / 3))


def test_bootstrap_depends_on_the_seed_only() -> None:
    values = Stream.of(2).normal(50, 1)[:, 0]
    assert bootstrap(values, seed=1) == bootstrap(values, seed=Stream.of(1))
    assert bootstrap(values, seed=1) != bootstrap(values, seed=2)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"values": []}, r"values must be \(n,\) numbers, one or more; got shape \(0,\)"),
        ({"values": [[1, 2]]}, r"got shape \(1, 2\)"),
        ({"values": [1, np.nan]}, "values must be finite; 1 of 2 are not"),
        ({"values": [1, 2], "strata": [1]}, r"one label for each of the 2 values; got shape \(1,\)"),
        ({"values": [1, 2], "confidence": 95}, "confidence must be between 0 and 1, such as 0.95; got 95"),
        ({"values": [1, 2], "resamples": 0}, "resamples must be 1 or more; got 0"),
    ],
)
def test_bad_bootstraps(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UnweaveError, match=sentence):
        bootstrap(**options)


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ([1, 2, 3, 4], [1, 2, 4, 3], 0.8),  # 1 - 6 * 2 / (4 * 15)
        ([1, 2, 3], [30, 20, 10], -1.0),
        ([1, 1, 2], [1, 2, 3], np.sqrt(3) / 2),  # ranks 1.5, 1.5, 3
        ([1, 2, np.nan, 3], [1, 2, 0, np.nan], 1.0),  # two pairs are left
        ([7, 7, 7], [1, 2, 3], 0.0),
        ([1, np.nan], [1, 2], 0.0),
        ([], [], 0.0),
    ],
)
def test_spearman(x: list[float], y: list[float], expected: float) -> None:
    assert spearman(x, y) == pytest.approx(expected)
    assert spearman(y, x) == pytest.approx(expected)


def test_spearman_of_different_lengths() -> None:
    with pytest.raises(UnweaveError, match=r"of the same runs; got \(2,\) and \(3,\)"):
        spearman([1, 2], [1, 2, 3])


def slow_draws(x: Any, y: Any, strata: Any, resamples: int) -> Any:
    """Each resample sorted by scipy; resamples of the numbers of the rows have the same rows."""
    drawn = []
    for rows in np.concatenate(list(resampled_rows(len(x), strata, resamples, 0))):
        constant = len(set(x[rows])) == 1 or len(set(y[rows])) == 1
        drawn.append(0.0 if constant else spearmanr(x[rows], y[rows]).statistic)
    return np.array(drawn)


@settings(deadline=None, max_examples=25)
@given(whole_numbers, whole_numbers, st.booleans())
def test_resampled_correlations_are_those_of_sorted_resamples(
    a: list[int], b: list[int], split: bool
) -> None:
    n = min(len(a), len(b))
    x, y = np.array(a[:n]), np.array(b[:n])
    strata = np.arange(n) % 2 if split and n > 3 else np.zeros(n)
    frame = pd.DataFrame({"x": x, "y": y})
    result = rank_correlations(frame, [("x", "y")], strata=strata, resamples=30)
    assert result.draws[:, 0] == pytest.approx(slow_draws(x, y, strata, 30), abs=1e-9)
    assert result.freedom.tolist() == [n - len(set(strata))]


def test_the_interval_of_a_rank_correlation_by_hand() -> None:
    x, y = Stream.of(3).normal(30, 2).T
    y += x
    strata = np.arange(30) % 3
    draws = np.arctanh(slow_draws(x, y, strata, 200))
    reach = t_distribution.ppf(0.975, 27) * draws.std() * np.sqrt(30 / 27)
    middle = np.arctanh(spearmanr(x, y).statistic)
    result = spearman_interval(x, y, strata=strata, resamples=200)
    assert result[1:] == pytest.approx(np.tanh([middle - reach, middle + reach]))
    # A stratum with a single run: all runs are drawn among themselves.
    alone = spearman_interval(x, y, strata=np.arange(30), resamples=200)
    assert alone == spearman_interval(x, y, resamples=200)


def test_pairs_with_a_gap_are_left_out() -> None:
    x = Stream.of(3).normal(40, 3)
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    frame.loc[:4, "c"] = np.nan
    strata = np.arange(40) % 4
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    result = rank_correlations(frame, pairs, strata=strata, resamples=20)
    assert result.runs.tolist() == [40, 35, 35]
    assert result.freedom.tolist() == [36, 31, 31]
    left = x[5:]
    assert result.draws[:, 2] == pytest.approx(slow_draws(left[:, 1], left[:, 2], strata[5:], 20))


def test_intervals_of_perfect_agreement_and_of_none() -> None:
    low, high = spearman_interval(range(20), range(20))[1:]
    assert 0.9 < low <= high == 1
    assert spearman_interval([1, 1, 1], [1, 2, 3])[0] == 0
    assert np.isnan(spearman_interval([np.nan], [1])[1:]).all()
    with pytest.raises(UnweaveError, match="one label for each of 3 rows"):
        spearman_interval([1, 2, 3], [1, 2, 3], strata=[0, 0])


def test_means_of_correlations_over_data_sets() -> None:
    values = Stream.of(9).normal(60, 3)
    runs = pd.DataFrame(values, columns=["a", "b", "c"]).assign(
        data=np.repeat(["d", "e"], 30), method="m", setting=np.tile(["1", "2", "3"], 20)
    )
    runs["b"] += runs["a"]
    result = correlations(runs, ["a"], ["b", "c"], resamples=300)
    means = mean_correlations(result, ["first"]).iloc[0]
    table = result.table
    assert table["data"].tolist() == ["d", "d", "e", "e"]
    assert means["estimate"] == pytest.approx(table["estimate"].mean())
    assert (means["lowest"], means["highest"]) == (table["estimate"].min(), table["estimate"].max())
    # Two independent data sets: the error of the mean is that of one over sqrt(2).
    error = np.sqrt((result.deviations.reshape(300, 2, 2).mean(2).std(0) ** 2).sum()) / 2
    reach = t_distribution.ppf(0.975, 27) * error
    assert means["high"] - means["estimate"] == pytest.approx(reach, rel=0.15)
    assert means["p"] < 0.05
    few = mean_correlations(correlations(runs[::4], ["a"], ["b"]), ["first"])
    assert np.isnan(few[["low", "high", "p"]].to_numpy(float)).all(), "fewer than ten runs of a data set"


def test_spearman_matrix() -> None:
    frame = pd.DataFrame({"x": [1, 2, 3, 4], "y": [1, 2, 4, 3], "same": [5, 5, 5, 5]})
    expected = np.array([[1, 0.8, 0], [0.8, 1, 0], [0, 0, 0]])
    np.testing.assert_allclose(spearman_matrix(frame).to_numpy(), expected, atol=1e-12)


def test_probability_of_improvement() -> None:
    assert probability_of_improvement([1, 2], [0, 2]) == 0.625  # 1, 0; 1, 1/2
    assert probability_of_improvement([5, 6], [1, 2, 3]) == 1.0
    assert probability_of_improvement([1], [1]) == 0.5


@settings(deadline=None, max_examples=25)
@given(whole_numbers, whole_numbers)
def test_probability_of_improvement_is_the_statistic_of_mann_and_whitney(x: list[int], y: list[int]) -> None:
    expected = mannwhitneyu(x, y).statistic / (len(x) * len(y)) if set(x) | set(y) != {x[0]} else 0.5
    assert probability_of_improvement(x, y) == pytest.approx(expected)
    assert probability_of_improvement(y, x) == pytest.approx(1 - expected)


def test_published_scores_agree_as_published(published_models: pd.DataFrame) -> None:
    matrix = spearman_matrix(published_models[published_models["data"] == "dsprites"][list(STUDY_SCORES)])
    assert matrix.loc["mig", "dci.disentanglement"] == pytest.approx(0.93, abs=0.006)
    beta, factor = "beta_vae_score.eval_accuracy", "factor_vae_score.eval_accuracy"
    assert matrix.loc[beta, factor] == pytest.approx(0.82, abs=0.006)
    assert matrix.loc["sap", "mig"] == pytest.approx(0.83, abs=0.006)
    assert matrix["modularity"].drop("modularity").abs().max() < 0.15


@pytest.mark.parametrize("statistic", [mean, interquartile_mean])
@pytest.mark.parametrize("n", [2, 9, 12])
def test_intervals_of_means_cover_in_92_to_98_percent(n: int, statistic: Any) -> None:
    values = Stream.of(5).normal(600, n)
    intervals = np.array([mean_interval(row, statistic, resamples=100) for row in values])
    covered = (intervals[:, 1] <= 0) & (intervals[:, 2] >= 0)
    assert 0.92 <= covered.mean() <= 0.98


def test_the_interval_of_a_mean_is_students() -> None:
    values = Stream.of(6).normal(20, 1)[:, 0]
    low, high = mean_interval(values)[1:]
    assert (low, high) == pytest.approx(ttest_1samp(values, 0).confidence_interval())
    # Two strata of ten: sqrt(s_1^2 + s_2^2) / 2 / sqrt(10), and 18 degrees of freedom.
    halves = np.arange(20) % 2
    spread = np.hypot(values[::2].std(ddof=1), values[1::2].std(ddof=1)) / 2 / np.sqrt(10)
    result = mean_interval(values, strata=halves)
    assert result.high - result.estimate == pytest.approx(t_distribution.ppf(0.975, 18) * spread)
    assert mean_interval(values, strata=np.arange(20)) == mean_interval(values), "strata of one are ignored"
    assert np.isnan(mean_interval([0.3])[1:]).all()


def test_small_spearman_intervals() -> None:
    # r = 0.6, n = 9: z = 0.6931, standard error sqrt(1.18 / 6) = 0.4435.
    result = small_spearman_interval(0.6, 9)
    assert result == pytest.approx((0.6, np.tanh(0.6931 - 0.8692), np.tanh(0.6931 + 0.8692)), abs=1e-3)
    perfect = small_spearman_interval(1.0, 6)
    assert 0 < perfect.low < perfect.high == 1
    assert np.isnan(small_spearman_interval(1.0, 4)[1:]).all()


@pytest.mark.parametrize("n", [6, 9])
def test_small_spearman_intervals_cover(n: int) -> None:
    draws = Stream.of(7).normal(800, 2 * n).reshape(800, 2, n)
    draws[:, 1] += draws[:, 0]  # a correlation of 1 / sqrt(2); that of ranks is 6 / pi asin(r / 2)
    truth = 6 / np.pi * np.arcsin(np.sqrt(0.5) / 2)
    intervals = [small_spearman_interval(spearmanr(x, y).statistic, n) for x, y in draws]
    assert 0.92 <= np.mean([low <= truth <= high for _, low, high in intervals]) <= 0.99  # wide for six


def test_holm() -> None:
    assert holm([0.01, np.nan, 0.04, 0.03, 0.5]) == pytest.approx(
        [0.04, np.nan, 0.09, 0.09, 0.5], nan_ok=True
    )
    assert holm([]).shape == (0,)
