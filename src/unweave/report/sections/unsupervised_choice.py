"""The section on the question: can a run be chosen by what is known without labels."""

from __future__ import annotations

from functools import partial

import pandas as pd

from unweave.report import findings
from unweave.report.figures import correlations as heat_maps
from unweave.report.figures import metrics
from unweave.report.gaps import gap_sentence
from unweave.report.names import (
    DATA,
    UNSUPERVISED,
    data_sets,
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

QUESTION = "Can a good model be chosen without labels?"


def unsupervised_choice(material: Material) -> Section | str:
    """Numbers that need no label, against metrics."""
    runs = with_codes(material, material.runs)
    numbers = measured(runs, UNSUPERVISED)
    if not numbers or not material.scores or len(runs) < 3:
        return "it needs reconstruction, KL, ELBO or total correlation, a metric, and three runs"
    result = correlations(with_codes(material, material.informative), numbers, material.scores)
    table = result.table
    if table.empty:
        return ALL_SATURATED
    means = mean_correlations(result, ["first"])
    gaps = gap_sentence(runs, numbers)
    one = data_sets(runs)[0]
    return Section(
        "choice",
        QUESTION,
        findings.on_correlation(means, "label-free number", "the metrics", material.seeds),
        (
            Drawing(
                "unsupervised_correlations",
                material.flagged(
                    "Spearman's correlation, over all runs of a data set, of numbers that need no label with "
                    f"metrics, in hundredths. Reconstruction is a loss: lower is better. {gaps}".rstrip()
                ),
                partial(heat_maps.correlations, table, numbers, material.scores),
            ),
            Drawing(
                "unsupervised_pairs",
                f"The same numbers against metrics on {label(one, DATA)}. {DRAWN} {gaps}".rstrip(),
                partial(metrics.scores_against, runs[runs["data"] == one], numbers, material.scores),
            ),
        ),
        (
            Sheet("unsupervised_correlations", f"Spearman's correlation. {RANK_INTERVALS}", table),
            Sheet("mean_unsupervised_correlations", MEANS, means),
        ),
    )


def with_codes(material: Material, runs: pd.DataFrame) -> pd.DataFrame:
    """Runs of the material with columns "total_correlation (mean)", "... (sampled)" and so on."""
    for kind, of_kind in material.codes.items():
        for score in measured(of_kind, ("total_correlation", "mean_pairwise_information")):
            values = of_kind.set_index("run")[score]
            runs = runs.assign(**{f"{score} ({kind})": runs["run"].map(values)})
    return runs
