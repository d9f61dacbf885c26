"""The section on the question: do good settings transfer to other data sets and metrics."""

from __future__ import annotations

from functools import partial

from unweave.errors import UnweaveError
from unweave.report import findings, tables
from unweave.report.figures import choice, correlations, metrics
from unweave.report.names import (
    score_label,
)
from unweave.report.sections.section import Drawing, Material, Section, Sheet
from unweave.report.statistics import TRIALS, transfer


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
