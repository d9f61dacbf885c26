"""The section on the question: what are a few labels worth."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any

import pandas as pd

from unweave.report import findings
from unweave.report.few_labels import NO_CHOICE, PERFECT, UNSUPERVISED, FewLabels, compare_few_labels
from unweave.report.figures import correlations as heat_maps
from unweave.report.figures.few_labels import paired_differences
from unweave.report.names import choosers_of, counted, listed, score_label
from unweave.report.rank_correlation import mean_correlations
from unweave.report.sections.section import MEANS, RANK_INTERVALS, Drawing, Material, Section, Sheet

QUESTION = "What are a few labels worth?"
HEADLINE = "dci.disentanglement"
PAIRS = (
    "Choices are made among the runs of one seed. Differences are means over pairs of choices, with 95% "
    "t-intervals over pairs; improvement is the probability that the first scores higher, ties counted half."
)


def few_labels(material: Material) -> Section | str:
    """Choice by few labels, semi-supervised training against it, and imprecise labels."""
    runs = material.informative
    validation = [name for name in choosers_of(runs) if name.startswith("few_labels.")]
    if not validation or not material.scores:
        return NO_CHOICE
    answers = compare_few_labels(runs, material.scores)
    if answers.choice.table.empty:
        return "it needs three runs without labels in training, with a metric that is not saturated"
    means = mean_correlations(answers.choice, ["first"])
    sentences = [
        findings.on_correlation(means, "few-label score", "the test metrics", material.seeds),
        *_on_training(answers, material.scores),
        *_on_labellers(answers, material.scores),
    ]
    return Section(
        "few_labels",
        QUESTION,
        " ".join(sentences),
        tuple(_drawings(material, answers, validation)),
        tuple(_sheets(answers, means)),
        _missing(answers),
    )


def _drawings(material: Material, answers: FewLabels, validation: list[str]) -> list[Drawing]:
    caption = "Spearman's correlation of scores on few labels with metrics, over the runs without labels."
    drawings = [
        Drawing(
            "few_labels_correlations",
            material.flagged(f"{caption} In hundredths."),
            partial(heat_maps.correlations, answers.choice.table, validation, material.scores),
        )
    ]
    for name, caption, table in (
        ("few_labels_training", "Runs trained with labels minus runs without.", answers.training),
        ("few_labels_labellers", "Runs with imprecise labels minus others.", answers.labellers),
    ):
        if len(table):
            drawings.append(Drawing(name, f"{caption} {PAIRS}", partial(paired_differences, table)))
    return drawings


def _sheets(answers: FewLabels, means: pd.DataFrame) -> list[Sheet]:
    correlations = answers.choice.table
    sheets = [
        Sheet("few_labels_correlations", f"Spearman's correlation. {RANK_INTERVALS}", correlations),
        Sheet("mean_few_labels_correlations", MEANS, means),
    ]
    if len(answers.training):
        sheets.append(Sheet("few_labels_training", PAIRS, answers.training))
    if len(answers.labellers):
        sheets.append(Sheet("few_labels_labellers", PAIRS, answers.labellers))
    return sheets


def _missing(answers: FewLabels) -> tuple[str, ...]:
    lacks = []
    if answers.training.empty:
        lacks.append("training with labels needs runs of s2 methods with train_percentage=90 and their bases")
    if answers.labellers.empty:
        lacks.append("imprecise labels need runs of s2 methods with several labellers")
    return tuple(lacks)


def _on_training(answers: FewLabels, scores: list[str]) -> list[str]:
    """Whether labels in training are better than labels for the choice only, for each number of labels."""
    rows = _headline(answers.training, scores)
    if not rows:
        return []
    parts = [f"with {row['labels']:,} labels, {_effect(row)}" for row in rows]
    return [f"Labels in training, compared with labels for the choice only: {'; '.join(parts)}."]


def _on_labellers(answers: FewLabels, scores: list[str]) -> list[str]:
    """Whether imprecise labels are enough."""
    sentences = []
    for against in (PERFECT, UNSUPERVISED):
        rows = _headline(answers.labellers[answers.labellers["against"] == against], scores)
        if rows:
            what = "perfect labels" if against == PERFECT else "unsupervised training"
            parts = [f"{row['labels']:,} {row['labeller']} labels: {_effect(row)}" for row in rows]
            sentences.append(f"Imprecise labels, compared with {what}: {listed(parts)}.")
    return sentences


def _headline(table: pd.DataFrame, scores: list[str]) -> list[dict[Hashable, Any]]:
    """The rows of one score, DCI if it is there."""
    score = HEADLINE if HEADLINE in scores else scores[0]
    return table[table["score"] == score].to_dict("records")


def _effect(row: Mapping[Hashable, Any]) -> str:
    """What happens to the score of the chosen run, with its interval."""
    words = "does not distinguishably change"
    if pd.isna(row["low"]):
        words = "changes by an unknown amount (one pair only)"
    elif row["low"] > 0:
        words = "rises"
    elif row["high"] < 0:
        words = "falls"
    return (
        f"{score_label(row['score'])} {words} ({row['mean against']:.2f} to {row['mean']:.2f}, difference "
        f"{row['difference']:+.2f}{findings.bounds(row['low'], row['high'])}, higher with probability "
        f"{row['improvement']:.2f}; {counted(row['pairs'], 'pair')})"
    )
