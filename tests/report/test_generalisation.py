"""The sections on held-out combinations and correlated factors, on tables with known answers."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from report.made_up import At, Rule, settings, table
from unweave.report.correlated_factors import (
    condition_table,
    conditions_of,
    correlation_of,
    runs_on_all,
    strongest_differences,
)
from unweave.report.figures.generalisation import held_out_differences
from unweave.report.formats import table_html
from unweave.report.generalisation import held_out_pairs, held_out_table
from unweave.report.names import DATA, label
from unweave.report.sections.correlated_factors import correlated_factors
from unweave.report.sections.generalisation import finding as held_out_finding
from unweave.report.sections.generalisation import generalisation
from unweave.report.sections.section import Material, Section, material
from unweave.results import Results, check_table
from unweave.streams import Stream

COLUMNS = ["score", "runs", "training", "held out", "difference", "low", "high"]
HELD = ["dsprites:hold(shape=0,x=16..31)", "rooms:hold(floor_hue=5..9)"]
CORRELATED = ["dsprites", "dsprites:x~y=0.7", "dsprites:x~y=0.2"]


def test_large_numbers_are_written_out() -> None:
    row = ("generalisation.reconstruction", 4, 1881.2, 19_319.0, 17_437.8, -2.5, 2e4)
    sentence = held_out_finding(pd.DataFrame([row], columns=COLUMNS), 1, 2)
    assert "from 1,881 to 19,319 (+17,438 [-2.5, +20,000])" in sentence


def noise(at: At) -> float:
    return float(Stream.of(0).child("noise", *at).normal(1, 1)[0, 0])


def mig(at: At) -> float:
    return 0.3 + 0.1 * at.method + 0.1 * noise(at)


def results(runs: pd.DataFrame, **parts: dict[str, Rule]) -> Results:
    """A table with rules for the scores on each part of the data."""
    tables = [table(runs, rules).table.assign(on=part) for part, rules in parts.items()]
    return check_table(pd.concat(tables, ignore_index=True))


def made(made_up: Results) -> Material:
    built = material(made_up, "own")
    assert isinstance(built, Material)
    return built


def section(built: Section | str) -> Section:
    assert isinstance(built, Section), built
    for drawing in built.drawings:
        assert drawing.draw().axes
    for sheet in built.sheets:
        assert table_html(sheet.table, 10).startswith("<table")
    return built


def held_out(loss: Rule, runs: pd.DataFrame | None = None) -> Material:
    runs = settings(HELD, seeds=5) if runs is None else runs
    training: dict[str, Rule] = {"mig": mig, "generalisation.accuracy": lambda at: 0.8 + 0.01 * at.seed}
    unseen: dict[str, Rule] = {"generalisation.accuracy": lambda at: 0.8 + 0.01 * at.seed - loss(at)}
    return made(results(runs, training=training, held_out=unseen))


def test_what_is_lost_on_held_out_combinations() -> None:
    built = section(generalisation(held_out(lambda at: 0.3 - 0.5 * mig(at))))
    change = np.mean([0.5 * mig(at) - 0.3 for at in settings(HELD, seeds=5)["at"]])
    assert built.finding.startswith(
        f"On held-out combinations Accuracy falls from 0.82 to {0.82 + change:.3g} ({change:+.3g} ["
    )
    assert "means over 2 data sets, 5 seeds a setting." in built.finding
    assert (
        "1 of 1 metric correlates with the change of Accuracy (|Spearman| 0.3 or more). The largest "
        "correlation is that of MIG: mean Spearman 1.00"
    ) in built.finding
    assert [drawing.name for drawing in built.drawings] == ["held_out", "held_out_and_metrics"]
    titles = [axes.get_title() for axes in built.drawings[0].draw().axes[:2]]
    assert titles == ["dSprites:\nmontero_range", "rooms:\nhold(floor_hue=5..9)"]


def test_scores_of_what_is_fitted_are_not_compared() -> None:
    """Predictors are fitted on training combinations, so DCI is the same on both parts by definition."""
    runs = settings(HELD, seeds=5)
    training: dict[str, Rule] = {"mig": mig, "dci.disentanglement": mig}
    unseen: dict[str, Rule] = {"mig": lambda at: mig(at) - 0.1, "dci.disentanglement": mig}
    built = section(generalisation(made(results(runs, training=training, held_out=unseen))))
    for sheet in built.sheets[:2]:
        assert set(sheet.table["score"]) == {"mig"}
        assert "left out, such as disentanglement and completeness of DCI" in sheet.caption
    without = section(generalisation(held_out(lambda _: 0.1)))
    assert "DCI" not in without.drawings[0].caption


def test_a_panel_without_numbers_does_not_set_the_limits() -> None:
    rows = [("dsprites:hold(x=0)", "beta_vae", "mig", 4, 0.1, 0.1, 0.001, -0.002, 0.004)]
    rows += [(name, "beta_vae", "sap", 4, 0.1, 0.1, 0.0, -0.1, 0.1) for name in (rows[0][0], HELD[0])]
    figure = held_out_differences(pd.DataFrame(rows, columns=["data", "method", *COLUMNS]))
    for axes in figure.axes[:2]:
        low, high = axes.get_ylim()
        assert -0.004 < low < high < 0.006


def test_a_loss_that_does_not_depend_on_disentanglement() -> None:
    finding = section(generalisation(held_out(lambda at: 0.1 * noise(at._replace(method=9))))).finding
    assert "Accuracy does not distinguishably change" in finding
    assert "None of 1 metric correlates with the change of Accuracy" in finding


def test_the_interval_is_that_of_paired_differences() -> None:
    """For one setting, t(n - 1) s / sqrt(n) of the differences; levels of the seeds do not widen it."""
    runs = settings(["dsprites:hold(x=0)"], ["beta_vae"], [1.0], seeds=5)
    losses = [0.10, 0.12, 0.11, 0.09, 0.13]
    levels = [0.0, 10.0, -10.0, 5.0, 1.0]
    built = made(
        results(
            runs,
            training={"mig": lambda at: levels[at.seed]},
            held_out={"mig": lambda at: levels[at.seed] - losses[at.seed]},
        )
    )
    pairs = held_out_pairs(built.runs, built.parts["held_out"], ["mig"])
    [row] = held_out_table(pairs).to_dict("records")
    reach = t.ppf(0.975, 4) * np.std(losses, ddof=1) / np.sqrt(5)
    assert row["difference"] == pytest.approx(-0.11)
    assert (row["low"], row["high"]) == pytest.approx((-0.11 - reach, -0.11 + reach))


def test_one_run_cannot_tell() -> None:
    one = settings(HELD[:1], ["beta_vae"], [1.0], seeds=1)
    finding = section(generalisation(held_out(lambda _: 0.1, one))).finding
    assert finding.startswith("The data cannot tell how sure this is")
    missing = generalisation(made(results(settings(), training={"mig": mig})))
    assert missing == (
        "it needs runs on data with held-out combinations, such as dsprites:montero_range, that were "
        'measured on them (on = ["training", "held_out"] in the study)'
    )


def correlated(effect: float) -> Material:
    """MIG on all combinations is lower by `effect` for the strongest correlation, by half for the other."""
    runs = settings(CORRELATED, seeds=5)

    def on_all(at: At) -> float:
        same = at._replace(data=0)
        return mig(same) - effect * at.data / 2 + 0.001 * noise(at)

    rules: dict[str, Rule] = {"mig": lambda at: mig(at) if at.data == 0 else 0.9}
    plain, with_condition = runs[runs["data"] == "dsprites"], runs[runs["data"] != "dsprites"]
    parts = [
        table(plain, rules).table.assign(on="training"),
        table(with_condition.reset_index(drop=True), rules).table.assign(on="training"),
        table(with_condition.reset_index(drop=True), {"mig": on_all}).table.assign(on="all"),
    ]
    return made(check_table(pd.concat(parts, ignore_index=True)))


def test_correlated_factors_stay_entangled() -> None:
    built = section(correlated_factors(correlated(0.2)))
    assert built.finding.startswith(
        "With correlated factors in training (dSprites:x~y=0.2), 1 of 1 scores on all combinations are lower "
        "than without: MIG -0.200 [-0.20"
    )
    assert built.finding.endswith("means over methods and data sets, 5 seeds a setting.")
    values = runs_on_all(correlated(0.2).runs, correlated(0.2).parts["all"], ["mig"])
    by_condition = condition_table(values).groupby("condition", sort=False)["difference"].mean()
    assert list(by_condition.index) == ["none", "x~y=0.7", "x~y=0.2"]
    assert by_condition.iloc[1:].tolist() == pytest.approx([-0.1, -0.2], abs=0.001)


def test_no_effect_of_a_correlation_is_not_called_one() -> None:
    assert (
        "0 of 1 scores on all combinations are lower" in section(correlated_factors(correlated(0.0))).finding
    )
    values = runs_on_all(correlated(0.0).runs, correlated(0.0).parts["all"], ["mig"])
    [row] = strongest_differences(values).to_dict("records")
    assert row["low"] < 0 < row["high"]


def test_correlated_runs_need_uncorrelated_ones() -> None:
    runs = settings(CORRELATED[1:])
    needs = correlated_factors(made(results(runs, training={"mig": mig}, all={"mig": mig})))
    assert isinstance(needs, str)
    assert needs.endswith("and runs on the same data without a correlation")
    assert isinstance(correlated_factors(made(results(runs, training={"mig": mig}))), str)


def test_the_order_of_conditions() -> None:
    names = ["d:a~b=0.1:c~e=0.1", "d", "d:a~b=0.2", "d:a~b=0.7"]
    rows = [correlation_of(name) for name in names]
    assert conditions_of(pd.DataFrame(rows), "d") == ["none", "a~b=0.7", "a~b=0.2", "a~b=0.1:c~e=0.1"]
    assert correlation_of("d:hold(a=0):a~b=0.2") is None
    painted = [correlation_of(name) for name in ("d:noise", "d:noise:size (cm)~-b=0.7")]
    assert conditions_of(pd.DataFrame(painted), "d:noise") == ["none", "size (cm)~-b=0.7"]
    assert conditions_of(pd.DataFrame(painted), "d") == []


def test_noisy_data_are_compared_with_noisy_data() -> None:
    made_up = correlated(0.2)
    training, on_all = (
        part.assign(data=part["data"].str.replace("dsprites", "dsprites:noise"))
        for part in (made_up.runs, made_up.parts["all"])
    )
    values = runs_on_all(training, on_all, ["mig"])
    assert set(values["base"]) == {"dsprites:noise"}
    [row] = strongest_differences(values).to_dict("records")
    assert row["difference"] == pytest.approx(-0.2, abs=0.01)


def test_long_conditions_of_the_literature_are_called_by_their_names() -> None:
    assert label(HELD[0], DATA) == "dSprites:montero_range"
    assert label("dsprites:orientation~x=0.2", DATA) == "dSprites:orientation~x=0.2"
    assert label("mine:hold(x=0)", DATA) == "mine:hold(x=0)"
