"""What scores are good for: choosing a model without labels, on another data set, for downstream tasks.

[1] Locatello et al.: Challenging common assumptions in the unsupervised learning of disentangled
representations, ICML 2019.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from unweave.errors import UnweaveError
from unweave.report import findings, tables
from unweave.report.figures import choice, correlations, metrics
from unweave.report.names import (
    DATA,
    UNSUPERVISED,
    data_sets,
    downstream_scores,
    label,
    measured,
    score_label,
)
from unweave.report.sections.section import DRAWN, INTERVALS, Drawing, Material, Section, Sheet
from unweave.report.statistics import TRIALS, transfer


def unsupervised_choice(material: Material) -> Section | str:
    """Numbers that need no label, against metrics."""
    runs = with_codes(material)
    numbers = measured(runs, UNSUPERVISED)
    if not numbers or not material.scores or len(runs) < 3:
        return "it needs reconstruction, KL, ELBO or total correlation, a metric, and three runs"
    table = tables.correlation_table(runs, numbers, material.scores)
    one = data_sets(runs)[0]
    return Section(
        "choice",
        "Can a good model be chosen without labels?",
        findings.on_choice(table),
        (
            Drawing(
                "unsupervised_correlations",
                "Spearman's correlation, over all runs of a data set, of numbers that need no label with "
                "metrics, in hundredths. Reconstruction is a loss: lower is better.",
                partial(correlations.correlations, table, numbers, material.scores),
            ),
            Drawing(
                "unsupervised_pairs",
                f"The same numbers against metrics on {label(one, DATA)}. {DRAWN}",
                partial(metrics.scores_against, runs[runs["data"] == one], numbers, material.scores),
            ),
        ),
        (Sheet("unsupervised_correlations", f"Spearman's correlation. {INTERVALS}", table),),
    )


def with_codes(material: Material) -> pd.DataFrame:
    """The runs with columns "total_correlation (mean)", "... (sampled)" and so on."""
    runs = material.runs
    for kind, of_kind in material.codes.items():
        for score in measured(of_kind, ("total_correlation", "mean_pairwise_information")):
            values = of_kind.set_index("run")[score]
            runs = runs.assign(**{f"{score} ({kind})": runs["run"].map(values)})
    return runs


def transfer_of_settings(material: Material) -> Section | str:
    """Whether a setting that is good on one data set is good on another: Table 1 of [1]."""
    runs, scores = material.runs, material.scores
    if not scores:
        return "no run has a score of a metric"
    try:
        table = transfer(runs, scores)
    except UnweaveError as error:
        return str(error).rstrip(".")
    drawings = [
        Drawing(
            "transfer",
            f"Probability that a chosen setting scores at least as high as a random one, {TRIALS:,} trials.",
            partial(choice.transfer_bars, table),
        )
    ]
    sheets = [Sheet("transfer", "Probability of beating a random choice (Table 1 of the study).", table)]
    between = tables.transfer_correlations(runs, scores)
    missing = [] if len(between) else ["settings of two data sets, to compare their order"]
    if len(between):
        score = "mig" if "mig" in scores else scores[0]
        drawings += [
            Drawing(
                "transfer_correlations",
                "Spearman's correlation, over settings, of mean scores on two data sets, in hundredths.",
                partial(correlations.transfer_correlations, between),
            ),
            Drawing(
                "transfer_pairs",
                f"Mean {score_label(score)} of each setting on one data set against that on another.",
                partial(metrics.score_across_data, tables.setting_means(runs, score), score),
            ),
        ]
        sheets.append(Sheet("transfer_correlations", "Spearman's correlation of mean scores.", between))
    return Section(
        "transfer",
        "Do good settings transfer to other data sets and metrics?",
        findings.on_transfer(table),
        tuple(drawings),
        tuple(sheets),
        tuple(missing),
    )


def downstream_tasks(material: Material) -> Section | str:
    """Accuracy and statistical efficiency of downstream tasks against metrics."""
    runs, scores = material.runs, material.scores
    accuracies, efficiencies = downstream_scores(runs)
    if not accuracies or not scores or len(runs) < 3:
        return "it needs downstream_logistic or downstream_trees, a metric, and three runs"
    one = data_sets(runs)[0]
    drawings, sheets, sentences = [], [], []
    for name, tasks, what in (
        ("downstream_accuracy", accuracies, "the accuracy of downstream tasks"),
        ("downstream_efficiency", efficiencies, "their statistical efficiency"),
    ):
        if not tasks:
            continue
        table = tables.correlation_table(runs, tasks, scores)
        title = f"Spearman's correlation of {what} with metrics, in hundredths; numbers are training points."
        drawings.append(Drawing(name, title, partial(correlations.correlations, table, tasks, scores)))
        shown = [task for task in tasks if task.endswith(("_10000", "efficiency"))] or tasks[-2:]
        here = runs[runs["data"] == one]
        title = f"The same against metrics on {label(one, DATA)}. {DRAWN}"
        draw = partial(metrics.scores_against, here, shown, scores)
        drawings.append(Drawing(f"{name}_pairs", title, draw))
        sheets.append(Sheet(name, f"Spearman's correlation. {INTERVALS}", table))
        sentences.append(findings.on_downstream(table, what))
    missing = () if efficiencies else ("accuracies for 100 and 10,000 points, which make the efficiency",)
    question = "Do high scores help with downstream tasks?"
    finding = "; ".join(sentences) + "."
    return Section("downstream", question, finding, tuple(drawings), tuple(sheets), missing)
