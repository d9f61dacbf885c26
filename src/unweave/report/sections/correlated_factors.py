"""The section on the question: do correlated factors stay entangled."""

from __future__ import annotations

from functools import partial

import pandas as pd

from unweave.report import findings
from unweave.report.correlated_factors import (
    condition_table,
    conditions_of,
    runs_on_all,
    strongest_differences,
)
from unweave.report.figures.generalisation import A_ROW, scores_against_correlation
from unweave.report.names import DATA, data_sets, label, listed, score_label
from unweave.report.sections.section import INTERVALS, Drawing, Material, Section, Sheet

QUESTION = "Do correlated factors stay entangled?"
NEEDS = (
    "it needs runs on data with correlated factors, such as dsprites:x~y=0.2, measured on all combinations "
    '(on = ["training", "all"] in the study), and runs on the same data without a correlation'
)


def correlated_factors(material: Material) -> Section | str:
    """Scores on all combinations, by the correlation of the training data."""
    on_all = material.parts.get("all")
    if on_all is None:
        return NEEDS
    values = runs_on_all(material.runs, on_all, material.scores)
    if values.empty:
        return NEEDS
    table, strongest = condition_table(values), strongest_differences(values)
    bases = data_sets(table)
    caption = (
        "Scores on all combinations of factors, against the correlation of factors in the training data, "
        f"from none to the strongest. {INTERVALS}"
    )
    drawings = tuple(
        Drawing(
            f"correlated_factors_{i // A_ROW + 1}" if i else "correlated_factors",
            caption,
            partial(scores_against_correlation, table[table["data"].isin(bases[i : i + A_ROW])]),
        )
        for i in range(0, len(bases), A_ROW)
    )
    means = f"The strongest correlation against none, same settings and seeds. {INTERVALS}"
    sheets = (Sheet("correlated_factors", caption, table), Sheet("strongest_correlation", means, strongest))
    last = {base: conditions_of(values, base)[-1] for base in dict.fromkeys(values["base"])}
    return Section("correlated", QUESTION, finding(strongest, last, material.seeds), drawings, sheets)


def finding(strongest: pd.DataFrame, conditions: dict[str, str], seeds: int) -> str:
    """How scores differ between the strongest correlation and none."""
    named = listed([label(f"{base}:{condition}", DATA) for base, condition in conditions.items()])
    if strongest.empty or strongest["low"].isna().any():
        return (
            f"{findings.CANNOT_TELL} what the correlation of {named} changes: two runs of a setting are "
            "needed, with and without it."
        )
    parts = [
        f"{score_label(row['score'])} {row['difference']:+.3f}{findings.bounds(row['low'], row['high'], 3)}"
        for row in strongest.to_dict("records")
    ]
    lower = int((strongest["high"] < 0).sum())
    count = f"{lower} of {len(strongest)} scores on all combinations are lower"
    return (
        f"With correlated factors in training ({named}), {count} than without: {listed(parts)}; means over "
        f"methods and data sets, {findings.seed_words(seeds)}."
    )
