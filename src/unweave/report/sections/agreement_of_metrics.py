"""The section on the question: do the metrics agree."""

from __future__ import annotations

from functools import partial

from unweave.report import findings, tables
from unweave.report.figures import correlations, metrics
from unweave.report.sections.section import (
    ALL_SATURATED,
    DRAWN,
    RANK_INTERVALS,
    Drawing,
    Material,
    Section,
    Sheet,
)


def agreement_of_metrics(material: Material) -> Section | str:
    """Scatter plots and rank correlations of scores."""
    scores = material.scores
    if len(scores) < 2 or len(material.runs) < 3:
        return (
            f"it needs two metrics or more and three runs; there are {len(scores)} and {len(material.runs)}"
        )
    table = tables.correlation_table(material.informative, scores)
    if table.empty:
        return ALL_SATURATED
    return Section(
        "metrics",
        "Do the metrics agree?",
        findings.on_agreement_of_metrics(table),
        (
            Drawing(
                "metric_correlations",
                material.flagged(
                    "Spearman's correlation of scores over all runs of a data set, in hundredths."
                ),
                partial(correlations.correlations, table, scores, scores),
            ),
            Drawing(
                "metric_pairs",
                material.flagged(f"Scores of the same runs against each other. {DRAWN}"),
                partial(metrics.score_pairs, material.runs, scores),
            ),
        ),
        (Sheet("metric_correlations", f"Spearman's correlation of scores. {RANK_INTERVALS}", table),),
    )
