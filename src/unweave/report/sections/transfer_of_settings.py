"""The section on the question: do good settings transfer to other data sets and metrics."""

from __future__ import annotations

from functools import partial

from unweave.errors import UnweaveError
from unweave.report import findings, tables
from unweave.report.figures import choice, correlations, metrics
from unweave.report.names import score_label
from unweave.report.sections.section import ALL_SATURATED, Drawing, Material, Section, Sheet
from unweave.report.transfer import FEWEST_SETTINGS, transfer, transfer_of_the_study

RULE = (
    "Ties count half, and no setting is compared with itself, so that a random choice reaches 0.5. "
    f"Intervals: 95%, jackknife over settings; none for fewer than {FEWEST_SETTINGS} settings."
)

QUESTION = "Do good settings transfer to other data sets and metrics?"


def transfer_of_settings(material: Material) -> Section | str:
    """Whether a setting that is good on one data set is good on another."""
    runs, scores = material.runs, material.scores
    if not scores:
        return "no run has a score of a metric"
    try:
        table = transfer(material.informative, scores)
    except UnweaveError as error:
        return str(error).rstrip(".")
    if table.empty:
        return ALL_SATURATED if material.saturation else "it needs two settings with a score of two seeds"
    drawings = [
        Drawing(
            "transfer",
            material.flagged(f"Probability that a chosen setting beats a random other one. {RULE}"),
            partial(choice.transfer_bars, table),
        )
    ]
    sheets = [
        Sheet("transfer", "Probability that a chosen setting beats a random other one.", table),
        Sheet(
            "transfer_of_the_study",
            "The same by the protocol of the published study (its Table 1): ties are successes, the chosen "
            "setting is compared with itself too, and of equal settings the first is chosen. Saturated "
            "scores are included.",
            transfer_of_the_study(runs, scores),
        ),
    ]
    between = tables.transfer_correlations(material.informative, scores)
    missing = [] if len(between) else ["comparing the order of settings needs two data sets"]
    if len(between):
        score = "mig" if "mig" in scores else scores[0]
        drawings += [
            Drawing(
                "transfer_correlations",
                material.flagged(
                    "Spearman's correlation, over settings, of mean scores on two data sets, in hundredths."
                ),
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
        QUESTION,
        findings.on_transfer(table, runs.groupby(["method", "setting"]).ngroups, material.seeds),
        tuple(drawings),
        tuple(sheets),
        tuple(missing),
    )
