"""The section on the question: do disentangled codes help later tasks."""

from __future__ import annotations

from functools import partial

from unweave.report import findings
from unweave.report.figures import correlations as heat_maps
from unweave.report.figures import metrics
from unweave.report.names import (
    DATA,
    data_sets,
    downstream_scores,
    label,
    measured,
)
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

QUESTION = "Do high scores help with downstream tasks?"


def downstream_tasks(material: Material) -> Section | str:
    """Accuracy and statistical efficiency of downstream tasks against metrics."""
    runs, scores = material.runs, material.scores
    accuracies, efficiencies = downstream_scores(runs)
    if not accuracies or not scores or len(runs) < 3:
        return "it needs downstream_logistic, downstream_trees or downstream_strong, a metric, and three runs"
    if not measured(material.informative, scores):
        return ALL_SATURATED
    one = data_sets(runs)[0]
    drawings, sheets, sentences = [], [], []
    for name, tasks, what in (
        ("downstream_accuracy", accuracies, "the accuracy of downstream tasks"),
        ("downstream_efficiency", efficiencies, "their statistical efficiency"),
    ):
        if not tasks:
            continue
        result = correlations(material.informative, tasks, scores)
        table, means = result.table, mean_correlations(result, ["second"])
        title = material.flagged(
            f"Spearman's correlation of {what} with metrics, in hundredths; numbers are training points.",
            *tasks,
        )
        drawings.append(Drawing(name, title, partial(heat_maps.correlations, table, tasks, scores)))
        shown = [task for task in tasks if task.endswith(("_10000", "efficiency"))] or tasks[-2:]
        of_data = runs[runs["data"] == one]
        title = f"The same against metrics on {label(one, DATA)}. {DRAWN} {material.gaps(*shown)}".rstrip()
        draw = partial(metrics.scores_against, of_data, shown, scores)
        drawings.append(Drawing(f"{name}_pairs", title, draw))
        sheets.append(Sheet(name, f"Spearman's correlation. {RANK_INTERVALS}", table))
        sheets.append(Sheet(f"mean_{name}", MEANS, means))
        sentences.append(findings.on_correlation(means, "metric", what, material.seeds))
    missing = () if efficiencies else ("the efficiency needs accuracies for 100 and 10,000 points",)
    finding = " ".join(sentences)
    return Section("downstream", QUESTION, finding, tuple(drawings), tuple(sheets), missing)
