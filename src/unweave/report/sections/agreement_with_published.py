"""The section on the question: do own runs agree with the published ones."""

from __future__ import annotations

from functools import partial

import pandas as pd

from unweave.report.agreement import LIMIT, agreement, agreement_sentence
from unweave.report.figures.agreement import own_and_published
from unweave.report.names import DATA, data_sets, label
from unweave.report.published import STUDY_SCORES
from unweave.report.sections.section import Drawing, Section, Sheet

QUESTION = "Do own runs agree with the published ones?"


def agreement_with_published(own: pd.DataFrame, published: pd.DataFrame) -> Section | str:
    """For each setting that both tables of results have: whether the own runs agree."""
    table = agreement(own, published)
    if table.empty:
        return "own and published runs share no setting and score under the same protocol"
    in_figure = [*STUDY_SCORES, "elbo.reconstruction", "elbo.kl"]
    known = [name for name in in_figure if name in set(table["score"])] or sorted(set(table["score"]))[:8]
    shown = table[table["score"].isin(known)].sort_values(
        "score", key=lambda names: names.map(known.index), kind="stable"
    )
    drawings = [
        Drawing(
            f"agreement_{data}",
            f"{label(data, DATA)}: differences of own from published numbers; what is within {LIMIT} "
            "standard errors (the band) agrees, crosses do not. Lines: the range of the published runs.",
            partial(own_and_published, shown[shown["data"] == data]),
        )
        for data in data_sets(shown)
    ]
    sheet = Sheet("agreement", "Means over seeds (medians for losses), own and published.", table)
    return Section("agreement", QUESTION, agreement_sentence(table), tuple(drawings), (sheet,))
