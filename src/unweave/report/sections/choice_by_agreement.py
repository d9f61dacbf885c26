"""Does agreement between runs choose a good one? On the page where runs have UDR or ModelCentrality.

[1] Duan et al.: Unsupervised model selection for variational disentangled representation learning, ICLR 2020.
[2] Lin et al.: InfoGAN-CR and ModelCentrality: self-supervised model training and selection for disentangling
GANs, ICML 2020.
"""

from __future__ import annotations

from functools import partial

from unweave.report import findings, tables
from unweave.report.chosen import choice_table, mean_choices
from unweave.report.figures import metrics
from unweave.report.figures.chosen import beaten_shares
from unweave.report.names import DATA, choosers_of, data_sets, label
from unweave.report.sections.section import DRAWN, RANK_INTERVALS, Drawing, Material, Section, Sheet

QUESTION = "Does agreement between runs choose a good one?"


def choice_by_agreement(material: Material) -> Section | str:
    """How often a run that UDR [1] or ModelCentrality [2] chooses beats a random one."""
    runs, scores = material.informative, material.scores
    choosers = choosers_of(runs)
    table = choice_table(runs, choosers, scores)
    if table.empty:
        return "it needs UDR or ModelCentrality, and a metric, of two runs or more of a data set"
    correlations = tables.correlation_table(runs, choosers, scores)
    means = mean_choices(runs, choosers, scores)
    drawings = [
        Drawing(
            f"chosen_{data}",
            material.flagged(
                f"{label(data, DATA)}: the share of the other runs that the chosen one beats, by each "
                "metric, with its interval: one choice among all runs, then means over choices. Dashed: a "
                "random choice."
            ),
            partial(beaten_shares, table[table["data"] == data]),
        )
        for data in data_sets(table)
    ]
    one = data_sets(table)[0]
    chosen_runs = runs[(runs["data"] == one) & runs[choosers].notna().any(axis=1)]
    title = f"UDR and ModelCentrality against metrics on {label(one, DATA)}. {DRAWN}"
    draw = partial(metrics.scores_against, chosen_runs, choosers, scores)
    drawings.append(Drawing("chosen_pairs", title, draw))
    caption = (
        "How often the chosen run beats a random one: means over choices, with t-intervals of 95% over "
        "choices, wider ones if all choices beat equal shares, and none for a single choice."
    )
    return Section(
        "chosen",
        QUESTION,
        findings.on_chosen(means),
        tuple(drawings),
        (
            Sheet("chosen", caption, table),
            Sheet("mean_choices", f"Means over metrics too. {caption}", means),
            Sheet("chosen_correlations", f"Spearman's correlation. {RANK_INTERVALS}", correlations),
        ),
    )
