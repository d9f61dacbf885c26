"""The section on the question: does it generalise to combinations that were held out."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
import pandas as pd

from unweave.report import findings
from unweave.report.figures.generalisation import A_ROW, held_out_differences, loss_correlations
from unweave.report.generalisation import (
    ACCURACY,
    MEASURES,
    R2,
    SQUARED_ERROR,
    comparable_scores,
    held_out_means,
    held_out_pairs,
    held_out_table,
    with_losses,
)
from unweave.report.names import counted, data_sets, listed, measured, score_label
from unweave.report.rank_correlation import correlations, mean_correlations
from unweave.report.sections.section import (
    INTERVALS,
    MEANS,
    RANK_INTERVALS,
    Drawing,
    Material,
    Section,
    Sheet,
)

QUESTION = "Does it generalise to combinations that were held out?"
NEEDS = (
    "it needs runs on data with held-out combinations, such as dsprites:montero_range, that were measured "
    'on them (on = ["training", "held_out"] in the study)'
)
FITTED = (
    "Scores of what is fitted on training combinations are left out, such as disentanglement and "
    "completeness of DCI."
)
# The measures whose loss is compared with metrics, the first one that is known.
LOSSES = (ACCURACY, R2, SQUARED_ERROR)


def generalisation(material: Material) -> Section | str:
    """Differences between held-out and training combinations, and which metrics go with small ones."""
    held_out = material.parts.get("held_out")
    if held_out is None:
        return NEEDS
    scores = comparable_scores(material.scores)
    pairs = held_out_pairs(material.runs, held_out, [*MEASURES, *scores])
    if pairs.empty:
        return NEEDS
    table, means = held_out_table(pairs), held_out_means(pairs)
    caption = f"Scores on held-out combinations less those on training combinations. {INTERVALS}"
    if len(scores) < len(material.scores):
        caption = f"{caption} {FITTED}"
    data = data_sets(table)
    drawings = [
        Drawing(
            f"held_out_{i // A_ROW + 1}" if i else "held_out",
            caption,
            partial(held_out_differences, table[table["data"].isin(data[i : i + A_ROW])]),
        )
        for i in range(0, len(data), A_ROW)
    ]
    sheets = [Sheet("held_out", caption, table), Sheet("mean_held_out", f"Over all runs. {caption}", means)]
    sentence = finding(means, len(data), material.seeds)
    losses = _losses(material, pairs)
    if losses is None:
        missing = "whether disentangled runs lose less needs a metric, and three runs"
        return Section("generalisation", QUESTION, sentence, tuple(drawings), tuple(sheets), (missing,))
    drawing, more, about = losses
    finding_of_both = f"{sentence} {about}"
    return Section("generalisation", QUESTION, finding_of_both, (*drawings, drawing), (*sheets, *more))


def finding(means: pd.DataFrame, data: int, seeds: int) -> str:
    """How scores change on held-out combinations, with intervals; `means` is of `held_out_means`."""
    rows = means[means["score"].isin(MEASURES)] if means["score"].isin(MEASURES).any() else means
    parts = [
        f"{score_label(row['score'])} {_verb(row['low'], row['high'])} from {_short(row['training'])} to "
        f"{_short(row['held out'])} ({_short(row['difference'], '+')}{_bounds(row['low'], row['high'])})"
        for row in rows.to_dict("records")
    ]
    over = f"means over {counted(data, 'data set')}, {findings.seed_words(seeds)}"
    sentence = f"On held-out combinations {listed(parts)}; {over}."
    if rows["low"].isna().any():
        return f"{findings.CANNOT_TELL} how sure this is, since there are too few runs. {sentence}"
    return sentence


def _verb(low: float, high: float) -> str:
    if low > 0:
        return "rises"
    return "falls" if high < 0 else "does not distinguishably change"


def _bounds(low: float, high: float) -> str:
    return "" if np.isnan(low) else f" [{_short(low, '+')}, {_short(high, '+')}]"


def _short(number: float, sign: Literal["", "+"] = "") -> str:
    """A number with three digits, or all digits before the point."""
    return f"{number:{sign},.0f}" if abs(number) >= 1000 else f"{number:{sign}.3g}"


def _losses(material: Material, pairs: pd.DataFrame) -> tuple[Drawing, list[Sheet], str] | None:
    """Rank correlations of metrics with what runs lose; None if there is nothing to correlate."""
    measure = next((name for name in LOSSES if (pairs["score"] == name).any()), "")
    scores = [name for name in material.scores if name not in MEASURES]
    if not measure:
        return None
    change = f"change of {score_label(measure)}"
    runs = with_losses(material.informative, pairs, measure, change)
    scores = measured(runs, scores)
    if not scores or len(runs) < 3:
        return None
    result = correlations(runs, scores, [change])
    means = mean_correlations(result, ["first"])
    caption = (
        f"Spearman's correlation of metrics on training data with the {change} on held-out combinations, in "
        "hundredths."
    )
    drawing = Drawing(
        "held_out_and_metrics",
        material.flagged(caption),
        partial(loss_correlations, result.table),
    )
    sheets = [
        Sheet("held_out_and_metrics", f"{caption} {RANK_INTERVALS}", result.table),
        Sheet("mean_held_out_and_metrics", MEANS, means),
    ]
    return drawing, sheets, findings.on_correlation(means, "metric", f"the {change}", material.seeds)
