"""Which method is called the best: Welch's test, ties, and how often noise alone makes one the best."""

import numpy as np
import pytest
from scipy.stats import t, ttest_ind

from report.made_up import SIX, Rule, settings, table
from unweave.report.best import ALL_DATA, best_methods, leading_method, mean_difference
from unweave.report.findings import on_best
from unweave.report.statistics import holm
from unweave.results import wide
from unweave.streams import Stream


def test_the_difference_is_that_of_welch() -> None:
    x, y = [0.1, 0.4, 0.35, 0.8], [0.2, 0.1, 0.15]
    interval, p = mean_difference(x, y)
    expected = ttest_ind(x, y, equal_var=False)
    assert interval == pytest.approx((np.mean(x) - np.mean(y), *expected.confidence_interval(0.95)))
    assert p == pytest.approx(expected.pvalue)


def test_values_that_do_not_vary_or_are_alone() -> None:
    assert mean_difference([1, 1], [1, 1, 1]).p == 1
    assert mean_difference([0.3, 0.3], [0.1, 0.1]).p == 0
    interval, p = mean_difference([1], [0, 0.1])
    assert np.isnan([interval.low, interval.high, p]).all()


def test_methods_with_the_same_mean_are_both_named_and_none_is_best() -> None:
    # Names in the order of the study; all runs of a strength are equal, so that the alphabet would decide.
    tie: dict[str, Rule] = {"mig": lambda at: 0.1 * at.strength + 0.01 * at.seed}
    runs = wide(table(settings(["dsprites"], ["factor_vae", "beta_vae"]), tie).table)
    row = best_methods(runs, ["mig"]).iloc[0]
    assert row["highest mean"] == "beta_vae, factor_vae"
    assert row["margin"] == pytest.approx(0)
    assert row["improvement"] == pytest.approx(0.5)
    assert not row["best"]
    assert "No method can be called the best: in none of 1 pair" in on_best(best_methods(runs, ["mig"]), 3)


def test_the_best_of_two_by_hand() -> None:
    runs = wide(table(settings(), {"mig": SIX["mig"]}).table)
    result = best_methods(runs, ["mig"])
    assert result["data"].tolist() == [ALL_DATA, "dsprites", "cars3d"]
    # Means of settings: 0.11, 0.16, 0.21 and 0.31, 0.36, 0.41.
    expected = ttest_ind([0.31, 0.36, 0.41], [0.11, 0.16, 0.21], equal_var=False)
    assert result["margin"].tolist() == pytest.approx([0.2] * 3)
    bounds = result[["low", "high"]].to_numpy(float)
    assert bounds == pytest.approx(np.tile(expected.confidence_interval(0.95), (3, 1)))
    assert result["p"].tolist() == pytest.approx([3 * expected.pvalue] * 3)  # Holm, three rows
    assert result["improvement"].tolist() == [1.0] * 3
    assert result["best"].all()
    assert result["not distinguishable"].tolist() == [0] * 3


def test_a_setting_that_one_data_set_lacks_is_not_favoured() -> None:
    # Data set 1 is easier by 5 for all; FactorVAE lacks its strongest setting on data set 0.
    rule: dict[str, Rule] = {"mig": lambda at: 5.0 * at.data + 0.1 * (at.strength % 2) + 0.01 * at.seed}
    runs = wide(table(settings(), rule).table)
    gone = (runs["data"] == "dsprites") & (runs["method"] == "factor_vae") & (runs["strength"] == 4)
    row = best_methods(runs[~gone], ["mig"]).iloc[0]
    assert row["margin"] < 0.05


def test_single_settings_are_compared_by_their_seeds_and_single_runs_are_not() -> None:
    rule: dict[str, Rule] = {"mig": lambda at: 0.2 * at.method + 0.01 * at.seed}
    runs = wide(table(settings(["dsprites"], strengths=[1.0], seeds=3), rule).table)
    expected = ttest_ind([0.2, 0.21, 0.22], [0, 0.01, 0.02], equal_var=False)
    assert best_methods(runs, ["mig"])["p"].tolist() == pytest.approx([expected.pvalue])
    single = best_methods(runs[runs["seed"] == 0], ["mig"])
    assert not single["best"].any()
    assert on_best(single, 1).startswith("The data cannot tell which method is best")
    one_method = best_methods(runs[runs["method"] == "beta_vae"], ["mig"])
    assert on_best(one_method, 3).startswith("The data cannot tell: fewer than two methods")


@pytest.mark.parametrize(("methods", "strengths", "seeds"), [(2, 2, 2), (6, 6, 5)])
@pytest.mark.parametrize("effect", [0.0, 1.0])
def test_noise_makes_a_best_method_in_at_most_5_percent(
    methods: int, strengths: int, seeds: int, effect: float
) -> None:
    # 500 studies of one data set and one score whose methods are equal; settings may differ.
    noise = Stream.of(1).normal(500, methods * strengths * seeds).reshape(500, methods, strengths, seeds)
    by_setting = Stream.of(2).normal(500, methods * strengths).reshape(500, methods, strengths, 1)
    means = (noise + effect * by_setting).mean(3)
    leads = [leading_method({f"m{i}": units for i, units in enumerate(study)}) for study in means]
    wrong = np.array([lead.unclear == 0 for lead in leads])
    assert wrong.mean() <= 0.05
    assert (wrong == [lead.difference.p < 0.05 for lead in leads]).all()
    # As 10 studies of 50 scores: Holm keeps the probability of any wrong one.
    adjusted = np.stack([holm([lead.difference.p for lead in leads[i : i + 50]]) for i in range(0, 500, 50)])
    assert (adjusted < 0.05).any(axis=1).sum() <= 2


@pytest.mark.parametrize(("spread", "expected"), [(1, 0.977), (2, 0.972), (15, 0.936), (100, 0.947)])
def test_exact_coverage_of_the_difference_of_two_settings(spread: float, expected: float) -> None:
    """The share of intervals that hold the truth, by quadrature, for settings of normal scores.

    Deviations of two settings are normal numbers z and w; their angle is uniform, and independent of their
    length, against which the difference of the means has a t-distribution with two degrees of freedom.
    """
    shares = []
    for angle in (np.arange(200) + 0.5) / 200 * np.pi / 2:
        x, y = np.cos(angle) * np.array([1, -1]), spread * np.sin(angle) * np.array([1, -1])
        interval, _ = mean_difference(x, y)
        reach = interval.high / np.sqrt((1 + spread**2) / 2)
        shares.append(1 - 2 * t.sf(reach, 2))
    assert np.mean(shares) == pytest.approx(expected, abs=0.001)
    assert 0.92 <= np.mean(shares) <= 0.98


@pytest.mark.parametrize(("settings_of_each", "spread"), [(2, 1.0), (6, 1.0), (6, 4.0)])
def test_intervals_of_differences_cover_in_92_to_98_percent(settings_of_each: int, spread: float) -> None:
    x, y = Stream.of(3).normal(1500, 2 * settings_of_each).reshape(1500, 2, -1).transpose(1, 0, 2)
    covered = [
        interval.low <= 0 <= interval.high
        for interval, _ in (mean_difference(a, spread * b) for a, b in zip(x, y, strict=True))
    ]
    assert 0.92 <= np.mean(covered) <= 0.98
