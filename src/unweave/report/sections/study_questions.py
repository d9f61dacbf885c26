"""The sections of the report, one for each question of the study [1] and of its comparison [2].

A section is a function of the runs of one source. It returns a sentence that says what is missing where
the runs cannot answer the question.

[1] Locatello et al.: Challenging common assumptions in the unsupervised learning of disentangled
representations, ICML 2019.
[2] J. Hartmann, ISS-Seminar, 2021.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd

from unweave.report import findings, tables
from unweave.report.agreement import LIMIT, agreement, agreement_sentence
from unweave.report.figures import codes, comparison, correlations, methods, metrics, pictures
from unweave.report.figures.agreement import own_and_published
from unweave.report.names import DATA, data_sets, label, listed, measured, score_label
from unweave.report.published import STUDY_SCORES
from unweave.report.sections.section import DRAWN, INTERVALS, Drawing, Material, Section, Sheet
from unweave.report.sections.usefulness import downstream_tasks, transfer_of_settings, unsupervised_choice
from unweave.report.statistics import variance_shares

STEPS = (
    "Strengths of each method in their order, the weakest regularisation at 0 (for AnnealedVAE the largest "
    "capacity); lines are medians, bands quartiles over runs."
)


def reconstructions(material: Material) -> Section | str:
    """What is left of an image."""
    if not material.sheets:
        return "there are no run folders with pictures of reconstructions"
    draw = partial(pictures.reconstructions, material.sheets)
    return Section(
        "reconstructions",
        "What do models keep of an image?",
        f"{len(material.sheets)} runs: images, and what they become after encoding and decoding.",
        (Drawing("reconstructions", "Images and reconstructions, in turns.", draw),),
    )


def content_and_style(material: Material) -> Section:
    """What becomes of an image that takes its content from one and its style from another."""
    draw = partial(pictures.reconstructions, material.swaps)
    return Section(
        "swaps",
        "Do content and style come apart?",
        f"{len(material.swaps)} runs whose codes have two parts: in each row the content of the first image, "
        "in each column the style of the image above.",
        (Drawing("swaps", "Content of one image, style of another.", draw),),
    )


def codes_and_regularisation(material: Material) -> Section | str:
    """Total correlation and pairwise information of sampled and of mean codes."""
    name, question = "codes", "Do methods that ask for uncorrelated codes get them?"
    drawings, sheets, sentence, missing = [], [], "", []
    for score in ("total_correlation", "mean_pairwise_information"):
        here = {kind: runs for kind, runs in material.codes.items() if measured(runs, [score])}
        if not here:
            missing.append(f"no run has {score}")
            continue
        table = tables.regularisation_table(here, score)
        title = f"{score_label(score)} of {listed(list(here))} codes against regularisation. {STEPS}"
        drawings.append(Drawing(score, title, partial(codes.score_by_regularisation, table, score)))
        sheets.append(Sheet(score, f"{score_label(score)} over runs.", table))
        pairs = None
        if len(here) == 2:
            pairs = tables.both_codes(here["mean"], here["sampled"], score)
            draw = partial(codes.mean_against_sampled, pairs, score)
            title = f"{score_label(score)} of mean against sampled codes; both are equal on the line. {DRAWN}"
            drawings.append(Drawing(f"{score}_mean_and_sampled", title, draw))
        else:
            missing.append(f"{score} is there for {next(iter(here))} codes only")
        sentence = sentence or findings.on_regularisation(here, pairs, score)
    if not drawings:
        return listed(missing)
    return Section(name, question, sentence, tuple(drawings), tuple(sheets), tuple(missing))


def agreement_of_metrics(material: Material) -> Section | str:
    """Scatter plots and rank correlations of scores."""
    scores = material.scores
    if len(scores) < 2 or len(material.runs) < 3:
        return (
            f"it needs two metrics or more and three runs; there are {len(scores)} and {len(material.runs)}"
        )
    table = tables.correlation_table(material.runs, scores)
    return Section(
        "metrics",
        "Do the metrics agree?",
        findings.on_agreement_of_metrics(table),
        (
            Drawing(
                "metric_correlations",
                "Spearman's correlation of scores over all runs of a data set, in hundredths.",
                partial(correlations.correlations, table, scores, scores),
            ),
            Drawing(
                "metric_pairs",
                f"Scores of the same runs against each other. {DRAWN}",
                partial(metrics.score_pairs, material.runs, scores),
            ),
        ),
        (Sheet("metric_correlations", f"Spearman's correlation of scores. {INTERVALS}", table),),
    )


def method_setting_seed(material: Material) -> Section | str:
    """Violins, lines, ranges, and shares of variance."""
    runs, scores = material.runs, material.scores
    if not scores:
        return "no run has a score of a metric"
    by_method = tables.method_table(runs, scores)
    drawings = [
        Drawing(
            "scores_by_method",
            "Scores of each method over all settings and seeds; lines are medians.",
            partial(methods.scores_by_method, runs, scores),
        ),
        Drawing(
            "scores_by_setting",
            f"Scores against regularisation. {STEPS}",
            partial(methods.scores_by_setting, runs, scores),
        ),
    ]
    sheets = [
        Sheet("scores_by_method", f"Interquartile means of all runs of a method. {INTERVALS}", by_method),
        Sheet("scores_by_setting", f"Means over seeds. {INTERVALS}", tables.setting_table(runs, scores)),
    ]
    question = "What decides a score: the method, its hyper-parameter, or the seed?"
    if material.seeds < 2:
        finding, missing = findings.on_methods(by_method), ("every setting has one seed only",)
        return Section("methods", question, finding, tuple(drawings), tuple(sheets), missing)
    shares, spread = variance_shares(runs, scores), tables.seed_spread(runs, scores)
    drawings += [
        Drawing(
            "scores_by_seed",
            "Settings in the order of their median: range over seeds, quartiles and median.",
            partial(methods.scores_by_seed, runs, scores),
        ),
        Drawing(
            "shares_of_variance",
            "Shares of the variance of a score: between methods, between settings of a method, and the rest.",
            partial(methods.shares_of_variance, shares),
        ),
    ]
    sheets += [
        Sheet("shares_of_variance", "Shares of the variance of a score.", shares),
        Sheet("seed_spread", "Standard deviations over seeds and over settings, and overlaps.", spread),
    ]
    return Section("methods", question, findings.on_variance(shares, spread), tuple(drawings), tuple(sheets))


def five_comparisons(material: Material) -> Section | str:
    """Box plots over everything, per data set, settings on one and on all, seeds."""
    runs, scores = material.runs, material.scores
    if not scores:
        return "no run has a score of a metric"
    one = data_sets(runs)[0]
    drawings = [
        Drawing(
            "methods_over_everything",
            "Methods over all data sets, settings and seeds: quartiles, medians, and values up to 1.5 "
            "quartile distances away.",
            partial(comparison.methods_over_everything, runs, scores),
        ),
        Drawing(
            "methods_over_data",
            "Methods on each data set, over settings and seeds.",
            partial(comparison.methods_over_data, runs, scores),
        ),
        Drawing(
            "settings_on_one_data_set",
            f"Settings on {label(one, DATA)}, over seeds.",
            partial(comparison.settings_on_one_data_set, runs[runs["data"] == one], scores),
        ),
        Drawing(
            "settings_across_data",
            "Places of settings by their mean score on each data set: 100 is the best, 0 the last.",
            partial(comparison.settings_across_data, runs, scores),
        ),
    ]
    missing: tuple[str, ...] = ("every setting has one seed only",)
    if material.seeds > 1:
        missing = ()
        title = (
            "Standard deviations over seeds, a box over all settings; diamonds: of the means of settings. "
            "Where the diamond is not above the box, a seed matters as much as a setting."
        )
        draw = partial(comparison.spread_over_seeds, runs, scores)
        drawings.append(Drawing("spread_over_seeds", title, draw))
    finding = findings.on_comparison(runs, scores)
    return Section("comparison", "Which method is best, and where?", finding, tuple(drawings), (), missing)


def own_beside_published(own: pd.DataFrame, published: pd.DataFrame) -> Section | str:
    """For each setting that both tables of results have: whether the own runs agree."""
    table = agreement(own, published)
    if table.empty:
        return "own and published runs share no setting and score under the same protocol"
    in_figure = [*STUDY_SCORES, "elbo.reconstruction", "elbo.kl"]
    known = [name for name in in_figure if name in set(table["score"])] or sorted(set(table["score"]))[:8]
    shown = table[table["score"].isin(known)].sort_values(
        "score", key=lambda names: names.map(known.index), kind="stable"
    )
    drawings = [
        Drawing(
            f"agreement_{data}",
            f"{label(data, DATA)}: differences of own from published numbers; what is within {LIMIT} "
            "standard errors (the band) agrees, crosses do not. Lines: the range of the published runs.",
            partial(own_and_published, shown[shown["data"] == data]),
        )
        for data in data_sets(shown)
    ]
    sheet = Sheet("agreement", "Means over seeds (medians for losses) beside published ones.", table)
    question = "Do own runs agree with the published ones?"
    return Section("agreement", question, agreement_sentence(table), tuple(drawings), (sheet,))


SECTIONS: tuple[tuple[str, Callable[[Material], Section | str]], ...] = (
    ("reconstructions", reconstructions),
    ("codes", codes_and_regularisation),
    ("metrics", agreement_of_metrics),
    ("methods", method_setting_seed),
    ("choice", unsupervised_choice),
    ("transfer", transfer_of_settings),
    ("downstream", downstream_tasks),
    ("comparison", five_comparisons),
)
