"""The section on the question: do disentangled codes help abstract reasoning.

van Steenkiste, Locatello, Schmidhuber, Bachem: Are disentangled representations helpful for abstract visual
reasoning? NeurIPS 2019.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from unweave.report import findings
from unweave.report.figures import correlations as heat_maps
from unweave.report.figures import metrics
from unweave.report.figures.reasoning import learning_curves
from unweave.report.names import DATA, REASONED, data_sets, label, measured
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

QUESTION = "Do disentangled codes help abstract reasoning?"
LEARNED = 0.25  # mean accuracy at which learning has begun; guesses reach 1/6


def reasoning(material: Material) -> Section | str:
    """The accuracy after so many training matrices against metrics."""
    runs, scores = material.runs, material.scores
    accuracies = measured(
        runs, sorted((str(name) for name in runs if str(name).startswith(REASONED)), key=matrices)
    )
    if not accuracies or not scores or len(runs) < 3:
        return "it needs results of unweave reason, a metric, and three runs"
    if not measured(material.informative, scores):
        return ALL_SATURATED
    result = correlations(material.informative, accuracies, scores)
    compared = list(dict.fromkeys((first_learned(runs, accuracies), accuracies[-1])))
    sentences, means = [], []
    for name in compared:
        of_one = correlations(material.informative, [name], scores)
        target = f"the reasoning accuracy after {matrices(name):,} matrices"
        by_metric = mean_correlations(of_one, ["second"])
        sentences.append(findings.on_correlation(by_metric, "metric", target, material.seeds))
        means.append(by_metric.assign(matrices=matrices(name)))
    one = data_sets(runs)[0]
    caption = "Spearman's correlation of the reasoning accuracy with metrics, in hundredths"
    return Section(
        "reasoning",
        QUESTION,
        " ".join(sentences),
        (
            Drawing(
                "reasoning_curves",
                f"Mean accuracy on held-out matrices; dotted: chance. {material.gaps(*accuracies)}".rstrip(),
                partial(learning_curves, runs, accuracies, [matrices(name) for name in accuracies]),
            ),
            Drawing(
                "reasoning",
                material.flagged(f"{caption}; numbers are training matrices.", *accuracies),
                partial(heat_maps.correlations, result.table, accuracies, scores),
            ),
            Drawing(
                "reasoning_pairs",
                f"The same against metrics on {label(one, DATA)}. {DRAWN}",
                partial(metrics.scores_against, runs[runs["data"] == one], compared, scores),
            ),
        ),
        (
            Sheet("reasoning", f"Spearman's correlation. {RANK_INTERVALS}", result.table),
            Sheet("mean_reasoning", MEANS, pd.concat(means, ignore_index=True)),
            Sheet(
                "reasoning_by_matrices",
                f"Means over metrics too. {MEANS}",
                mean_correlations(result, ["first"]),
            ),
        ),
    )


def matrices(score: str) -> int:
    """The number of training matrices in the name of a score.

    >>> matrices("reasoning.accuracy_3200")
    3200
    """
    number = score.removeprefix(REASONED)
    return int(number) if number.isdecimal() else 0


def first_learned(runs: pd.DataFrame, accuracies: list[str]) -> str:
    """The accuracy after the fewest matrices at which learning has begun, or else the last one."""
    return next((name for name in accuracies if runs[name].mean() >= LEARNED), accuracies[-1])
