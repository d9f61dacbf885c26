"""What each section says of small tables whose answers are known, and of what is missing in them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from report.made_up import SIX, Rule, settings, table
from unweave.errors import UnweaveError
from unweave.report.findings import on_transfer
from unweave.report.published import STUDY_SCORES
from unweave.report.sections.agreement_of_metrics import agreement_of_metrics
from unweave.report.sections.agreement_with_published import agreement_with_published
from unweave.report.sections.codes_and_regularisation import codes_and_regularisation
from unweave.report.sections.downstream_tasks import downstream_tasks
from unweave.report.sections.five_comparisons import five_comparisons
from unweave.report.sections.method_setting_seed import method_setting_seed
from unweave.report.sections.reconstructions import reconstructions
from unweave.report.sections.section import Material, Section, material
from unweave.report.sections.table import SECTIONS
from unweave.report.sections.transfer_of_settings import transfer_of_settings
from unweave.report.sections.unsupervised_choice import unsupervised_choice
from unweave.results import Results, combine
from unweave.streams import Stream

CODES: dict[str, Rule] = {
    "total_correlation": lambda at: float(at.strength + 1),
    "mean_pairwise_information": lambda at: 0.1 * (at.strength + 1),
}
TASKS: dict[str, Rule] = {
    "downstream_trees.test_accuracy_100": SIX["mig"],
    "downstream_trees.test_accuracy_10000": SIX["mig"],
    "downstream_trees.efficiency": SIX["sap"],
}


def made(results: Results, representation: str = "mean", scores: list[str] | None = None) -> Material:
    built = material(results, "own", representation, scores)
    assert isinstance(built, Material)
    return built


def whole(seeds: int = 3) -> Results:
    """Everything that the sections ask for, of both codes."""
    runs = settings(seeds=seeds)
    sampled = table(runs, {**SIX, **CODES, **TASKS}, "sampled").table
    of_codes = sampled["score"].isin(list(CODES))
    sampled["value"] = sampled["value"].where(~of_codes, sampled["value"] / 2)
    return combine(
        table(runs, {**SIX, **CODES, **TASKS}),
        Results(sampled),
        table(runs, {"elbo.reconstruction": SIX["sap"], "elbo.kl": SIX["modularity"]}, ""),
    )


def section(built: Section | str) -> Section:
    assert isinstance(built, Section), built
    return built


def test_codes_and_regularisation() -> None:
    built = section(codes_and_regularisation(made(whole())))
    assert built.finding == (
        "Stronger regularisation raises the TC of sampled codes (mean 0.5 to 1.5, difference +1 [+1, +1]) "
        "and raises the TC of mean codes (mean 1 to 3, difference +2 [+2, +2]); 3 seeds a setting. Mean "
        "codes have the larger TC in 100% of 36 runs."
    )
    assert [drawing.name for drawing in built.drawings] == [
        "total_correlation",
        "total_correlation_mean_and_sampled",
        "mean_pairwise_information",
        "mean_pairwise_information_mean_and_sampled",
    ]
    assert not built.missing


def test_codes_of_one_kind_only() -> None:
    only = made(table(settings(), {**SIX, "total_correlation": CODES["total_correlation"]}))
    built = section(codes_and_regularisation(only))
    assert built.missing == (
        "TC is known for mean codes only",
        "no run has Pairwise MI (mean_pairwise_information)",
    )
    assert "sampled" not in built.finding
    assert codes_and_regularisation(made(table(settings(), SIX))) == (
        "no run has TC (total_correlation) and no run has Pairwise MI (mean_pairwise_information)"
    )


def test_agreement_of_metrics() -> None:
    built = section(agreement_of_metrics(made(whole())))
    # MIG falls where SAP rises, and modularity has no order with them.
    assert built.finding.startswith(
        "Of 3 pairs of metrics, 0 agree strongly (Spearman 0.7 or more), 0 moderately (0.3 to 0.7), 1 rank "
        "runs the opposite way (-0.3 or less) and 2 weakly or not: from "
    )
    assert built.finding.endswith(
        "to -1.00 [-1.00, -1.00] (MIG and SAP); means over 2 data sets, 3 seeds a setting."
    )
    twice = made(table(settings(), {"mig": SIX["mig"], "irs": SIX["mig"]}), scores=["mig", "irs"])
    assert section(agreement_of_metrics(twice)).finding == (
        "Of 1 pair of metrics, 1 agree strongly (Spearman 0.7 or more), 0 moderately (0.3 to 0.7) and 0 "
        "weakly or not: 1.00 [1.00, 1.00] (MIG and IRS); means over 2 data sets, 3 seeds a setting."
    )
    few = made(table(settings(["dsprites"], ["vae"], [1.0], seeds=3), SIX))
    assert section(agreement_of_metrics(few)).finding.startswith("The data cannot tell whether metrics agree")
    one = made(table(settings(), {"mig": SIX["mig"]}))
    assert agreement_of_metrics(one) == ("it needs two metrics or more and three runs; there are 1 and 36")


def test_method_setting_and_seed() -> None:
    built = section(method_setting_seed(made(table(settings(), {"mig": SIX["mig"]}))))
    # mig = 0.1 + 0.2 j + 0.05 k + 0.01 seed: variances 0.01, 0.05^2 2/3, 0.01^2 2/3.
    parts = np.array([0.01, 0.05**2 * 2 / 3, 0.01**2 * 2 / 3])
    method, setting, seed = parts / parts.sum()
    finding = built.finding
    assert finding.startswith(f"The method explains {method:.0%} [")
    middle = f"(noise alone: 6%) of the variance of a score, its hyper-parameter another {setting:.0%} ["
    assert middle in finding
    assert f"(noise alone: 24%), and the seed the other {seed:.0%} [" in finding
    assert finding.endswith(
        "; means over 2 pairs of a data set and a score, 3 seeds a setting. The method is above chance in 2 "
        "of these pairs and the hyper-parameter in 2; the ranges over seeds of 0% of the pairs of settings "
        "overlap."
    )
    assert len(built.drawings) == 4


def test_noise_is_not_called_more_than_chance() -> None:
    noise = iter(Stream.of(3).normal(16, 1)[:, 0])
    rules: dict[str, Rule] = {"mig": lambda _: float(next(noise))}
    built = made(table(settings(["dsprites"], strengths=[1.0, 2.0], seeds=2), rules))
    finding = section(method_setting_seed(built)).finding
    assert "(noise alone: 14%)" in finding
    assert "(noise alone: 29%)" in finding
    assert finding.startswith("The data cannot tell this from chance: the method explains ")
    assert section(five_comparisons(built)).finding.startswith("No method can be called the best")
    one_setting = made(table(settings(["dsprites"], ["vae"], [1.0]), {"mig": SIX["mig"]}))
    assert transfer_of_settings(one_setting) == "it needs two settings with a score of two seeds"


def test_one_seed_says_nothing_of_seeds() -> None:
    built = section(method_setting_seed(made(whole(seeds=1))))
    assert built.finding.startswith("The data cannot tell: every setting has one seed only")
    assert [drawing.name for drawing in built.drawings] == ["scores_by_method", "scores_by_setting"]
    assert transfer_of_settings(made(whole(seeds=1))) == (
        "transfer compares runs of two seeds; there is one seed only"
    )


def losses() -> Results:
    """Reconstruction and KL of the runs of one seed on one data set."""
    rules = {"elbo.reconstruction": SIX["sap"], "elbo.kl": SIX["modularity"]}
    return table(settings(["dsprites"], seeds=1), rules, "")


def test_unsupervised_choice() -> None:
    built = section(unsupervised_choice(made(whole())))
    # KL has the rule of modularity, which has no order with the others.
    assert built.finding.startswith(
        "1 of 6 label-free numbers correlates with the metrics (|Spearman| 0.3 or more)."
    )
    assert "The largest correlation is that of KL: mean Spearman 0.33 [" in built.finding
    assert "to 1.00; 3 seeds a setting." in built.finding
    few = made(combine(table(settings(["dsprites"], seeds=1), SIX), losses()))
    assert section(unsupervised_choice(few)).finding.startswith("The data cannot tell whether 2 label-free")
    rows = built.sheets[0].table
    assert set(rows["first"]) == {
        "elbo.reconstruction",
        "elbo.kl",
        *(f"{name} ({kind})" for name in CODES for kind in ("mean", "sampled")),
    }
    assert isinstance(unsupervised_choice(made(table(settings(), SIX))), str)


def test_transfer() -> None:
    built = section(transfer_of_settings(made(table(settings(), {"mig": SIX["mig"]}))))
    # The best setting is the best for every seed and data set.
    assert built.finding == (
        "The data cannot tell: there are too few settings for intervals. In these runs a setting that is the "
        "best by one metric on one data set beats a random other setting with probability 1.000 on other "
        "seeds of the same data set and 1.000 on another data set; a random choice reaches 0.5; 6 settings, "
        "3 seeds."
    )
    assert [drawing.name for drawing in built.drawings] == [
        "transfer",
        "transfer_correlations",
        "transfer_pairs",
    ]
    alone = made(table(settings(["dsprites"]), SIX))
    built = section(transfer_of_settings(alone))
    assert built.missing == ("comparing the order of settings needs two data sets",)


def test_words_for_transfer_that_chance_explains_and_that_is_worse() -> None:
    table = pd.DataFrame(
        [
            ("same", "same", 0.79, 0.76, 0.81, 0.5),
            ("same", "other", 0.52, 0.49, 0.57, 0.5),
            ("other", "same", 0.31, 0.2, 0.4, 0.5),
        ],
        columns=["data", "score", "probability", "low", "high", "random"],
    )
    assert on_transfer(table, 12, 5) == (
        "A setting that is the best by one metric on one data set beats a random other setting with "
        "probability 0.790 [0.760, 0.810] on other seeds of the same data set, 0.520 [0.490, 0.570] for "
        "another metric (not distinguishable from a random choice) and 0.310 [0.200, 0.400] on another data "
        "set (worse than a random choice); a random choice reaches 0.5; 12 settings, 5 seeds."
    )


def test_downstream_tasks() -> None:
    built = section(downstream_tasks(made(whole())))
    first, second = built.finding.split(" 2 of 3 metrics correlate with their statistical efficiency ")
    assert first.startswith("2 of 3 metrics correlate with the accuracy of downstream tasks (|Spearman| 0.3")
    assert "that of MIG: mean Spearman 1.00 [1.00, 1.00]" in first
    assert "Next: SAP (-1.00 [-1.00, -1.00])." in first
    assert "Next: SAP (1.00 [1.00, 1.00])." in second
    without = {name: rule for name, rule in TASKS.items() if "efficiency" not in name}
    built = section(downstream_tasks(made(table(settings(), {**SIX, **without}))))
    assert built.missing == ("the efficiency needs accuracies for 100 and 10,000 points",)
    assert isinstance(downstream_tasks(made(table(settings(), SIX))), str)


def test_five_comparisons() -> None:
    built = section(five_comparisons(made(table(settings(), {"mig": SIX["mig"]}))))
    assert built.finding == (
        "Of 2 pairs of a data set and a score, one method is the best in 2 (FactorVAE in 2). Overall: "
        "FactorVAE over β-VAE by 0.200 [0.087, 0.313] in MIG on all data sets (a run of FactorVAE "
        "scores higher with probability 1.00); 3 seeds a setting."
    )
    assert len(built.drawings) == 5
    assert len(section(five_comparisons(made(whole(seeds=1)))).drawings) == 4


def test_reconstructions_need_pictures(tmp_path: Path) -> None:
    assert isinstance(reconstructions(made(whole())), str)


def test_own_runs_and_published_ones() -> None:
    own, theirs = settings(), settings(source="published")
    built = section(agreement_with_published(table(own, SIX).table, table(theirs, SIX).table))
    assert built.finding.startswith("36 of 36 scores of 12 shared settings (100%) agree")
    assert [drawing.name for drawing in built.drawings] == ["agreement_dsprites", "agreement_cars3d"]
    other = table(settings(["rooms"], source="published"), SIX)
    assert isinstance(agreement_with_published(table(own, SIX).table, other.table), str)


def test_captions_say_which_scores_are_missing() -> None:
    full = whole().table
    lost = (full["score"] == "sap") & (full["method"] == "beta_vae") & (full["data"] == "cars3d")
    built = made(Results(full[~lost].reset_index(drop=True)))
    for answer in (agreement_of_metrics(built), method_setting_seed(built), five_comparisons(built)):
        captions = [drawing.caption for drawing in section(answer).drawings]
        assert any("Missing: SAP in 9 of 36 runs (β-VAE on Cars3D)." in caption for caption in captions)
    complete = section(five_comparisons(made(whole())))
    assert not any("Missing" in drawing.caption for drawing in complete.drawings)


def test_scores_can_be_chosen() -> None:
    assert made(whole(), scores=["sap"]).scores == ["sap"]
    with pytest.raises(UnweaveError, match=r'the results have no score "sapp"\. Did you mean "sap"\?'):
        made(whole(), scores=["sapp"])


def test_codes_that_are_not_there() -> None:
    assert material(table(settings(), SIX), "own", "sampled") == (
        'there are no scores of "sampled" codes, only of mean codes'
    )


def test_a_table_of_losses_only() -> None:
    losses_only = made(table(settings(), {"elbo.kl": SIX["mig"]}, ""))
    assert losses_only.scores == []
    for question in SECTIONS:
        assert isinstance(question.answer(losses_only), str)


def test_published_metrics_agree_as_the_study_says(published_runs: Material) -> None:
    built = section(agreement_of_metrics(published_runs))
    of_all = built.sheets[0].table
    rows = of_all[of_all["data"] == "dsprites"].set_index(["first", "second"])["estimate"]
    beta, factor, mig, dci, modularity, sap = STUDY_SCORES
    assert rows[mig, dci] == pytest.approx(0.93, abs=0.005)
    assert rows[beta, factor] == pytest.approx(0.82, abs=0.005)
    assert rows[mig, sap] == pytest.approx(0.83, abs=0.005)
    with_modularity = [value for pair, value in rows.to_dict().items() if modularity in str(pair)]
    assert len(with_modularity) == 5
    assert max(map(abs, with_modularity)) < 0.15
    assert "(MIG and DCI) to" in built.finding


def test_published_settings_transfer_as_the_study_says(published_runs: Material) -> None:
    built = section(transfer_of_settings(published_runs))
    rows = built.sheets[1].table.set_index(["data", "score"])["probability"]
    expected = {
        ("same", "same"): 0.807,
        ("other", "same"): 0.56,
        ("same", "other"): 0.62,
        ("other", "other"): 0.54,
    }
    assert rows.to_dict() == pytest.approx(expected, abs=0.006)


def test_published_variance_is_explained_as_the_study_says(published_runs: Material) -> None:
    built = section(method_setting_seed(published_runs))
    shares = next(sheet for sheet in built.sheets if sheet.name == "shares_of_variance").table
    # The study reports 37% for the method and 59% with its hyper-parameter, over seven data sets.
    assert shares["method"].mean() == pytest.approx(0.37, abs=0.06)
    assert (shares["method"] + shares["setting"]).mean() == pytest.approx(0.59, abs=0.06)


def test_published_scores_that_are_saturated_are_flagged(published_runs: Material) -> None:
    assert published_runs.saturation.endswith("averages: BetaVAE score on Cars3D (85% of runs at 1).")
    best = section(five_comparisons(published_runs)).sheets[0].table
    assert len(best) == 6 * 6 + 5  # six scores on five data sets and over all, five on Cars3D
    assert best.loc[best["score"] == "modularity", "highest mean"].iloc[0] == "dip_vae_i"
