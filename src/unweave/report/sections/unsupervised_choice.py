"""The section on the question: can a run be chosen by what is known without labels."""

from __future__ import annotations

from functools import partial

import pandas as pd

from unweave.report import findings, tables
from unweave.report.figures import correlations, metrics
from unweave.report.names import (
    DATA,
    UNSUPERVISED,
    data_sets,
    label,
    measured,
)
from unweave.report.sections.section import (
    ALL_SATURATED,
    DRAWN,
    RANK_INTERVALS,
    Drawing,
    Material,
    Section,
    Sheet,
)


def unsupervised_choice(material: Material) -> Section | str:
    """Numbers that need no label, against metrics."""
    runs = with_codes(material, material.runs)
    numbers = measured(runs, UNSUPERVISED)
    if not numbers or not material.scores or len(runs) < 3:
        return "it needs reconstruction, KL, ELBO or total correlation, a metric, and three runs"
    table = tables.correlation_table(with_codes(material, material.informative), numbers, material.scores)
    if table.empty:
        return ALL_SATURATED
    one = data_sets(runs)[0]
    return Section(
        "choice",
        "Can a good model be chosen without labels?",
        findings.on_choice(table),
        (
            Drawing(
                "unsupervised_correlations",
                material.flagged(
                    "Spearman's correlation, over all runs of a data set, of numbers that need no label with "
                    "metrics, in hundredths. Reconstruction is a loss: lower is better."
                ),
                partial(correlations.correlations, table, numbers, material.scores),
            ),
            Drawing(
                "unsupervised_pairs",
                f"The same numbers against metrics on {label(one, DATA)}. {DRAWN}",
                partial(metrics.scores_against, runs[runs["data"] == one], numbers, material.scores),
            ),
        ),
        (Sheet("unsupervised_correlations", f"Spearman's correlation. {RANK_INTERVALS}", table),),
    )


def with_codes(material: Material, runs: pd.DataFrame) -> pd.DataFrame:
    """Runs of the material with columns "total_correlation (mean)", "... (sampled)" and so on."""
    for kind, of_kind in material.codes.items():
        for score in measured(of_kind, ("total_correlation", "mean_pairwise_information")):
            values = of_kind.set_index("run")[score]
            runs = runs.assign(**{f"{score} ({kind})": runs["run"].map(values)})
    return runs
