"""The section on the question: do the metrics agree."""

from __future__ import annotations

from functools import partial

from unweave.report import findings
from unweave.report.figures import correlations as heat_maps
from unweave.report.figures import metrics
from unweave.report.rank_correlation import correlations, mean_correlations
from unweave.report.sections.section import (
    ALL_SATURATED,
    DRAWN,
    MEANS,
    RANK_INTERVALS,
    Drawing,
    Material,
    Section,
    Sheet,
)

QUESTION = "Do the metrics agree?"


def agreement_of_metrics(material: Material) -> Section | str:
    """Scatter plots and rank correlations of scores."""
    scores = material.scores
    if len(scores) < 2 or len(material.runs) < 3:
        return (
            f"it needs two metrics or more and three runs; there are {len(scores)} and {len(material.runs)}"
        )
    result = correlations(material.informative, scores)
    table = result.table
    if table.empty:
        return ALL_SATURATED
    means = mean_correlations(result, ["first", "second"])
    return Section(
        "metrics",
        QUESTION,
        findings.on_agreement_of_metrics(means, table["data"].nunique(), material.seeds),
        (
            Drawing(
                "metric_correlations",
                material.flagged(
                    "Spearman's correlation of scores over all runs of a data set, in hundredths."
                ),
                partial(heat_maps.correlations, table, scores, scores),
            ),
            Drawing(
                "metric_pairs",
                material.flagged(f"Scores of the same runs against each other. {DRAWN}"),
                partial(metrics.score_pairs, material.runs, scores),
            ),
        ),
        (
            Sheet("metric_correlations", f"Spearman's correlation of scores. {RANK_INTERVALS}", table),
            Sheet("mean_metric_correlations", MEANS, means),
        ),
    )
