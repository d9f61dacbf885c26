import numpy as np
import pandas as pd
import pytest

from report.made_up import SIX, Rule, settings, small_runs, table
from unweave.methods import METHODS, settings_of
from unweave.report import tables
from unweave.report.names import (
    USUAL_STRENGTHS,
    downstream_scores,
    metric_scores,
    regularisation_steps,
    setting_label,
    strength_names,
)
from unweave.results import setting_text, wide


def test_the_strongest_regularisation_is_the_last_step() -> None:
    runs = pd.DataFrame(
        {
            "method": ["beta_vae", "beta_vae", "annealed_vae", "annealed_vae", "vae"],
            "strength": [16.0, 4.0, 5.0, 100.0, np.nan],
        }
    )
    assert regularisation_steps(runs).tolist() == [1, 0, 1, 0, 0]


def test_names_of_settings() -> None:
    assert setting_label("dip_vae_i", 5.0, "lambda_od=5,lambda_d_factor=10") == "DIP-VAE-I 5"
    assert setting_label("mine", float("nan"), "a=1") == "mine a=1"


def test_the_six_scores_are_compared_and_others_where_there_are_none() -> None:
    rules = {"irs": SIX["mig"], "total_correlation": SIX["mig"], "dci.informativeness_train": SIX["mig"]}
    assert metric_scores(small_runs(rules={**rules, **SIX})) == ["mig", "modularity", "sap"]
    assert metric_scores(small_runs(rules=rules)) == ["irs"]


def test_downstream_scores_are_found() -> None:
    names = ["downstream_trees.test_accuracy_1000", "downstream_trees.test_accuracy_10"]
    runs = small_runs(rules=dict.fromkeys([*names, "downstream_trees.efficiency"], SIX["mig"]))
    assert downstream_scores(runs) == (names[::-1], ["downstream_trees.efficiency"])
    shifted = "downstream_strong.strong_test_accuracy"
    runs = small_runs(rules=dict.fromkeys([shifted, "downstream_strong.test_accuracy", *names], SIX["mig"]))
    assert downstream_scores(runs) == ([*names[::-1], shifted], [])
    assert metric_scores(runs) == []


def test_means_of_settings_and_their_spread() -> None:
    result = tables.setting_table(small_runs(), ["mig"])
    assert len(result) == 2 * 2 * 3
    row = result[(result["data"] == "cars3d") & (result["method"] == "factor_vae")].iloc[2]
    assert row["mean"] == pytest.approx(0.1 + 0.2 + 0.1 + 0.01)
    assert row["std"] == pytest.approx(0.01 * np.sqrt(2 / 3))
    # t(2) is 4.3027 at 97.5%; the standard deviation of 0, 0.01, 0.02 is 0.01.
    assert row["high"] - row["mean"] == pytest.approx(4.3027 * 0.01 / np.sqrt(3), rel=1e-4)
    assert row["mean"] - row["low"] == pytest.approx(row["high"] - row["mean"])
    assert row["max"] - row["min"] == pytest.approx(0.02)
    assert row["runs"] == 3


def test_interquartile_means_of_methods() -> None:
    result = tables.method_table(small_runs(), ["mig"])
    assert result["method"].tolist() == ["beta_vae", "factor_vae"] * 2
    values = sorted(0.1 + 0.05 * k + 0.01 * seed for k in range(3) for seed in range(3))
    assert result["interquartile mean"][0] == pytest.approx(np.mean(values[2:-2]))


def test_rank_correlations_of_each_data_set() -> None:
    result = tables.correlation_table(small_runs(), ["mig", "sap", "modularity"])
    assert result[["first", "second"]].to_numpy().tolist() == 2 * [
        ["mig", "sap"],
        ["mig", "modularity"],
        ["sap", "modularity"],
    ]
    assert result["data"].unique().tolist() == ["dsprites", "cars3d"]
    opposite = result[result["second"] == "sap"]
    assert opposite["estimate"].to_numpy() == pytest.approx(-1)
    assert (opposite["high"] < -0.9).all()
    assert (result["runs"] == 18).all()


def test_rank_correlations_of_some_with_others() -> None:
    result = tables.correlation_table(small_runs(), ["modularity"], ["mig", "sap"])
    pairs = [{a, b} for a, b in zip(result["first"], result["second"], strict=True)]
    assert pairs == [{"mig", "modularity"}, {"sap", "modularity"}] * 2
    assert result["first"].unique().tolist() == ["modularity"]


def test_a_matrix_of_correlations_has_ones_where_a_score_meets_itself() -> None:
    result = tables.correlation_table(small_runs(), ["mig", "sap"])
    matrix = tables.correlation_matrix(
        result[result["data"] == "dsprites"], ["mig", "sap", "irs"], ["sap", "mig"]
    )
    assert matrix.loc["mig"].to_numpy(float) == pytest.approx([-1, 1])
    assert np.isnan(matrix.loc["irs"].to_numpy(float)).all()


def test_medians_against_settings() -> None:
    runs = small_runs()
    result = tables.setting_curves({"sampled": runs, "mean": runs}, {"sampled": "mig", "mean": "mig"})
    assert result["row"].unique().tolist() == ["sampled", "mean"]
    part = result[(result["row"] == "mean") & (result["data"] == "dsprites")]
    assert part["step"].tolist() == [0, 1, 2] * 2
    assert part["median"].tolist() == pytest.approx([0.11, 0.16, 0.21, 0.31, 0.36, 0.41])
    assert part["upper quartile"].iloc[0] == pytest.approx(0.115)
    assert part["strength name"].unique().tolist() == ["strength"]


def test_the_setting_that_the_strength_is_the_value_of() -> None:
    runs = pd.DataFrame(
        {
            "method": ["factor_vae", "factor_vae", "annealed_vae", "vae"],
            "setting": ["gamma=10,n=1", "gamma=20,n=1", "gamma=1000,c_max=5", ""],
            "strength": [10.0, 20.0, 5.0, np.nan],
        }
    )
    expected = {"factor_vae": "gamma", "annealed_vae": "c_max", "vae": "strength"}
    assert strength_names(runs) == expected


def test_the_strength_of_a_method_is_named_where_other_settings_have_its_value() -> None:
    for method in METHODS:
        if method.strength in USUAL_STRENGTHS:
            text = setting_text(settings_of(method(**{method.strength: 1.0})))
            runs = pd.DataFrame({"method": [method.name], "setting": [text], "strength": [1.0]})
            assert strength_names(runs) == {method.name: method.strength}


def test_the_change_from_the_weakest_to_the_strongest_regularisation() -> None:
    change = tables.regularisation_change(small_runs(), "mig")
    assert change is not None
    # Two data sets and two methods: means 0.11 and 0.31 become 0.21 and 0.41.
    assert (change.weakest, change.strongest) == pytest.approx((0.21, 0.31))
    # Eight means of three seeds with variance 0.01^2; equal ones have 16 degrees of freedom.
    error = np.sqrt(8 * 0.01**2 / 3) / 4
    assert change.difference.high - 0.1 == pytest.approx(2.1199 * error, rel=1e-4)
    single = tables.regularisation_change(small_runs(seeds=1), "mig")
    assert single is not None
    assert np.isnan(single.difference.low)
    assert tables.regularisation_change(small_runs(strengths=[1.0]), "mig") is None


def test_mean_and_sampled_codes_are_matched_by_run() -> None:
    mean = small_runs()
    sampled = mean.iloc[::-1].assign(mig=2 * mean["mig"]).reset_index(drop=True)
    sampled.loc[0, "mig"] = np.nan
    pairs = tables.both_codes(mean, sampled, "mig")
    assert len(pairs) == len(mean) - 1
    assert pairs["sampled"].to_numpy() == pytest.approx(2 * pairs["mean"].to_numpy())


def test_the_order_of_settings_on_two_data_sets() -> None:
    rules: dict[str, Rule] = {
        "mig": lambda at: (-1.0) ** at.data * (at.method + at.strength / 10),
        "sap": SIX["sap"],
    }
    runs = wide(table(settings(), rules).table)
    result = tables.transfer_correlations(runs, ["mig", "sap"])
    assert result["estimate"].tolist() == pytest.approx([-1, 1])
    assert result["settings"].tolist() == [6, 6]


def test_spread_over_seeds_and_over_settings() -> None:
    # Strengths 0.05 apart and seeds 0.02: no overlap. Strengths that do not matter: all overlap.
    rules: dict[str, Rule] = {"mig": SIX["mig"], "sap": lambda at: 0.1 * at.seed}
    result = tables.seed_spread(wide(table(settings(), rules).table), ["mig", "sap"]).set_index(
        ["data", "score"]
    )
    assert result.loc[("dsprites", "mig"), "overlap"] == 0
    assert result.loc[("dsprites", "sap"), "overlap"] == 1
    assert result.loc[("dsprites", "sap"), "seed std"] == pytest.approx(0.1 * np.sqrt(2 / 3))
    assert result.loc[("dsprites", "sap"), "setting std"] == pytest.approx(0)
    assert tables.seed_spread(small_runs(seeds=1), ["mig"]).empty
