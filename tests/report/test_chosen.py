"""How good a choice is, by hand and by brute force, and what the report says of it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report.made_up import SIX, Rule, small_runs, table
from report.made_up import settings as runs_of
from unweave.report import page as page_module
from unweave.report.chosen import (
    ALL,
    SEEDS,
    SETTINGS,
    choice_table,
    mean_choices,
    mean_share,
    percentile,
    share_beaten,
)
from unweave.report.page import write_report
from unweave.report.sections.choice_by_agreement import choice_by_agreement
from unweave.report.sections.section import Material, Section, material
from unweave.results import Results, combine
from unweave.streams import Stream

CHOOSER: dict[str, Rule] = {"udr.lasso": SIX["mig"], "model_centrality": lambda at: 0.0 * at.seed}


def chosen() -> Results:
    """MIG and SAP, which is its opposite, a chooser that follows MIG, and one that cannot decide."""
    return combine(table(runs_of(), SIX), table(runs_of(), CHOOSER, ""))


def section(results: Results) -> Section:
    judged = material(results, "own")
    assert isinstance(judged, Material)
    made = choice_by_agreement(judged)
    assert isinstance(made, Section), made
    return made


def test_the_chosen_run_beats_the_share_of_the_others_below_it() -> None:
    values = [0.1, 0.2, 0.3, 0.3, 0.9]
    assert share_beaten([0, 0, 0, 0, 1], values) == 1
    assert share_beaten([1, 0, 0, 0, 0], values) == 0
    assert share_beaten([0, 1, 0, 0, 0], values) == 0.25
    assert share_beaten([0, 0, 1, 0, 0], values) == 0.625  # two below it, one equal, one above
    assert share_beaten([1, 0, 0, 0, 1], values) == 0.5  # either of them may be chosen
    assert share_beaten([1, 1, 1, 1, 1], values) == 0.5  # a random choice
    assert percentile([0, 0, 1, 0, 0], values) == 80
    assert percentile([0, 0, 0, 0, 1], values) == 100


numbers = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=8)


@given(numbers)
@settings(max_examples=60, deadline=None)
def test_shares_by_brute_force(pairs: list[tuple[int, int]]) -> None:
    best = max(chooser for chooser, _ in pairs)
    shares = []
    for i, (chooser, value) in enumerate(pairs):
        if chooser == best:
            others = [other for j, (_, other) in enumerate(pairs) if j != i]
            shares.append(sum((value > o) + (value == o) / 2 for o in others) / len(others))
    assert share_beaten(*np.array(pairs).T) == pytest.approx(np.mean(shares))


def test_shares_are_computed_along_the_last_axis() -> None:
    chooser, values = np.array([[0, 1, 0], [1, 0, 0]]), np.array([[3, 2, 1], [3, 2, 1]])
    assert share_beaten(chooser, values).tolist() == [0.5, 1.0]


def test_the_table_of_choices() -> None:
    runs = small_runs(rules={**SIX, **CHOOSER})
    judged = choice_table(runs, list(CHOOSER), ["mig", "sap"])
    assert len(judged) == 2 * 2 * 2 * 3
    rows = {(r["data"], r["chooser"], r["score"], r["among"]): r for r in judged.to_dict("records")}
    for data in ("dsprites", "cars3d"):
        for among, choices, n in ((ALL, 1, 18), (SETTINGS, 3, 18), (SEEDS, 6, 18)):
            best = rows[data, "udr.lasso", "mig", among]
            assert [best[k] for k in ("choices", "runs", "percentile", "beats")] == [choices, n, 100, 1]
            worst = rows[data, "udr.lasso", "sap", among]
            assert worst["beats"] == 0
            random = rows[data, "model_centrality", "sap", among]
            assert random["beats"] == pytest.approx(0.5)
            assert np.isnan(random["low"]) == (among == ALL)


def test_an_interval_holds_the_estimate_and_knows_chance() -> None:
    runs = small_runs(seeds=20, rules={"mig": SIX["mig"]})
    runs["udr.lasso"] = Stream.of(0).normal(len(runs), 1)[:, 0]
    judged = choice_table(runs, ["udr.lasso"], ["mig"])
    known = judged[judged["choices"] > 1]
    assert known["choices"].tolist() == [20, 6, 20, 6]
    assert (known["low"] <= known["beats"]).all()
    assert (known["beats"] <= known["high"]).all()
    assert ((known["low"] < 0.5) & (known["high"] > 0.5)).all(), "noise is as good as chance"
    pd.testing.assert_frame_equal(judged, choice_table(runs, ["udr.lasso"], ["mig"]))


def test_means_over_choices_by_hand() -> None:
    runs = small_runs(seeds=2, rules={"mig": SIX["mig"]}, strengths=[1.0])
    runs = runs[runs["data"] == "dsprites"]
    # beta_vae 0.10, 0.11 and factor_vae 0.30, 0.31 of seeds 0 and 1; factor_vae of seed 0 is chosen.
    judged = choice_table(runs.assign(udr=[0.1, 0.3, 0.4, 0.2]), ["udr"], ["mig"]).set_index("among")
    assert judged["beats"].to_dict() == pytest.approx({ALL: 2 / 3, SETTINGS: 0.5, SEEDS: 0.5})
    assert judged["percentile"].to_dict() == pytest.approx({ALL: 75, SETTINGS: 75, SEEDS: 75})
    assert judged["choices"].to_dict() == {ALL: 1, SETTINGS: 2, SEEDS: 2}
    assert judged.loc[[SETTINGS, SEEDS], ["low", "high"]].to_numpy().tolist() == [[0, 1], [0, 1]]


def test_a_few_equal_shares_do_not_claim_certainty() -> None:
    """Of two random choices among four runs, one pair in four is equal; chance is within its interval."""
    for shares, expected in (
        ([1.0, 1.0], (0.05**0.5, 1.0)),
        ([2 / 3, 2 / 3], (2 / 3 * 0.05**0.5, 1 - 0.05**0.5 / 3)),
        ([0.0, 0.0], (0.0, 1 - 0.05**0.5)),
        ([1.0] * 5, (0.05**0.2, 1.0)),  # of random choices, five in 1024
    ):
        assert mean_share(shares)[1:] == pytest.approx(expected)
    runs = small_runs(seeds=2, rules={**SIX, **CHOOSER})
    judged = choice_table(runs, ["udr.lasso"], ["mig"])
    best = judged[judged["among"] == SETTINGS]
    assert (best["beats"] == 1).all()
    assert best["low"].tolist() == pytest.approx([0.05**0.5] * 2)
    means = mean_choices(runs, ["udr.lasso"], ["mig"]).set_index("among")
    assert means.loc[SETTINGS, "low"] == pytest.approx(0.05**0.25)  # two seeds on two data sets


def test_one_seed_is_one_choice() -> None:
    judged = choice_table(small_runs(seeds=1, rules={**SIX, **CHOOSER}), ["udr.lasso"], ["mig"])
    assert judged["among"].tolist() == [ALL, SETTINGS] * 2
    assert judged["low"].isna().all()


def test_one_setting_has_no_interval_over_settings() -> None:
    runs = small_runs(rules={**SIX, **CHOOSER}, strengths=[1.0])
    runs = runs[(runs["method"] == "beta_vae") & (runs["data"] == "dsprites")]
    judged = choice_table(runs, ["udr.lasso"], ["mig"]).set_index("among")
    assert judged.loc[SEEDS, "beats"] == 1
    assert judged["low"].isna()[SEEDS]


def test_runs_that_lack_a_number_do_not_count() -> None:
    runs = small_runs(rules={**SIX, **CHOOSER})
    best = runs["mig"] == runs["mig"].max()
    runs.loc[best, "mig"] = np.nan
    judged = choice_table(runs, ["udr.lasso"], ["mig"])
    assert judged["runs"].tolist() == [17] * 6
    assert (judged["beats"] == 1).all()
    alone = runs[runs["seed"] == 0].groupby("data").head(1)
    assert choice_table(alone, ["udr.lasso"], ["mig"]).empty


def test_the_section_says_how_often_a_choice_beats_chance() -> None:
    judged = section(chosen())
    assert judged.finding.startswith(
        "The share of other runs that the chosen one beats, on the mean over metrics and choices, where a "
        "random choice reaches 0.5: UDR (lasso) "
    )
    assert "; Centrality 0.50 [" in judged.finding
    assert "among seeds of a setting (12 choices, not distinguishable from a random choice)" in judged.finding
    assert [drawing.name for drawing in judged.drawings] == [
        "chosen_dsprites",
        "chosen_cars3d",
        "chosen_pairs",
    ]
    for drawing in judged.drawings:
        assert drawing.draw().get_axes()
    assert [sheet.name for sheet in judged.sheets] == ["chosen", "mean_choices", "chosen_correlations"]
    correlations = judged.sheets[2].table.set_index(["data", "first", "second"])["estimate"]
    assert correlations["dsprites", "udr.lasso", "mig"] == pytest.approx(1)
    assert correlations["dsprites", "udr.lasso", "sap"] == pytest.approx(-1)


def test_scores_of_agreement_are_no_metrics() -> None:
    judged = material(table(runs_of(), {**CHOOSER, "irs": SIX["mig"]}), "own")
    assert isinstance(judged, Material)
    assert judged.scores == ["irs"]


def test_without_metrics_there_is_nothing_to_judge_by() -> None:
    judged = material(table(runs_of(), CHOOSER, ""), "own")
    assert isinstance(judged, Material)
    assert choice_by_agreement(judged) == (
        "it needs UDR or ModelCentrality, and a metric, of two runs or more of a data set"
    )


def test_the_page_has_the_section_where_there_are_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, mig = runs_of(["dsprites"]), {"mig": SIX["mig"]}
    both = combine(table(runs, mig), table(runs, CHOOSER, ""))
    monkeypatch.setattr(page_module, "write_figure", lambda _, stem, alt: f"<img alt='{stem.name}: {alt}'>")
    text = write_report(both, tmp_path).read_text()
    assert '<section id="chosen">' in text
    assert "UDR (lasso)" in text
    assert "chosen_dsprites: " in text
    assert (tmp_path / "tables" / "chosen.csv").is_file()
