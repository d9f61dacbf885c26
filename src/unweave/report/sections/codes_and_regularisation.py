"""The section on codes: are sampled and mean codes independent, and what does regularisation change."""

from __future__ import annotations

from functools import partial

import pandas as pd

from unweave.report import findings, tables
from unweave.report.figures import codes
from unweave.report.gaps import gap_sentence
from unweave.report.names import listed, measured, score_label
from unweave.report.sections.section import (
    DRAWN,
    STEPS,
    Drawing,
    Material,
    Section,
    Sheet,
    setting_drawings,
)

QUESTION = "Do methods that ask for uncorrelated codes get them?"


def codes_and_regularisation(material: Material) -> Section | str:
    """Total correlation and pairwise information of sampled and of mean codes."""
    drawings, sheets, sentence, missing = [], [], "", []
    for score in ("total_correlation", "mean_pairwise_information"):
        runs = {kind: runs for kind, runs in material.codes.items() if measured(runs, [score])}
        if not runs:
            missing.append(f"no run has {score_label(score)} ({score})")
            continue
        curves, pairs = _curves(runs, score), _pairs(runs, score)
        caption = f"{score_label(score)} of {listed(list(runs))} codes against regularisation. {STEPS}"
        gaps = gap_sentence(material.runs, [score])
        drawings += setting_drawings(score, f"{caption} {gaps}".rstrip(), curves, logarithmic=True)
        sheets.append(Sheet(score, f"{score_label(score)} over runs.", curves))
        if pairs is None:
            missing.append(f"{score_label(score)} is known for {next(iter(runs))} codes only")
        else:
            drawings.append(_mean_against_sampled(pairs, score))
        changes = {kind: tables.regularisation_change(of_kind, score) for kind, of_kind in runs.items()}
        sentence = sentence or findings.on_regularisation(changes, pairs, score, material.seeds)
    if not drawings:
        return listed(missing)
    return Section("codes", QUESTION, sentence, tuple(drawings), tuple(sheets), tuple(missing))


def _curves(runs: dict[str, pd.DataFrame], score: str) -> pd.DataFrame:
    rows = {f"{score_label(score)}, {kind} codes": of_kind for kind, of_kind in runs.items()}
    return tables.setting_curves(rows, dict.fromkeys(rows, score))


def _pairs(runs: dict[str, pd.DataFrame], score: str) -> pd.DataFrame | None:
    """The score of both kinds of codes, if both are known."""
    return tables.both_codes(runs["mean"], runs["sampled"], score) if len(runs) == 2 else None


def _mean_against_sampled(pairs: pd.DataFrame, score: str) -> Drawing:
    caption = f"{score_label(score)} of mean against sampled codes; both are equal on the line. {DRAWN}"
    return Drawing(f"{score}_mean_and_sampled", caption, partial(codes.mean_against_sampled, pairs, score))
