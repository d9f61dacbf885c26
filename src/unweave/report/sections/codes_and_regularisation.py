"""The section on codes: are sampled and mean codes independent, and what does regularisation change."""

from __future__ import annotations

from functools import partial

from unweave.report import findings, tables
from unweave.report.figures import codes
from unweave.report.names import listed, measured, score_label
from unweave.report.sections.section import DRAWN, STEPS, Drawing, Material, Section, Sheet


def codes_and_regularisation(material: Material) -> Section | str:
    """Total correlation and pairwise information of sampled and of mean codes."""
    name, question = "codes", "Do methods that ask for uncorrelated codes get them?"
    drawings, sheets, sentence, missing = [], [], "", []
    for score in ("total_correlation", "mean_pairwise_information"):
        measured_codes = {kind: runs for kind, runs in material.codes.items() if measured(runs, [score])}
        if not measured_codes:
            missing.append(f"no run has {score}")
            continue
        table = tables.regularisation_table(measured_codes, score)
        title = (
            f"{score_label(score)} of {listed(list(measured_codes))} codes against regularisation. {STEPS}"
        )
        drawings.append(Drawing(score, title, partial(codes.score_by_regularisation, table, score)))
        sheets.append(Sheet(score, f"{score_label(score)} over runs.", table))
        pairs = None
        if len(measured_codes) == 2:
            pairs = tables.both_codes(measured_codes["mean"], measured_codes["sampled"], score)
            draw = partial(codes.mean_against_sampled, pairs, score)
            title = f"{score_label(score)} of mean against sampled codes; both are equal on the line. {DRAWN}"
            drawings.append(Drawing(f"{score}_mean_and_sampled", title, draw))
        else:
            missing.append(f"{score} is there for {next(iter(measured_codes))} codes only")
        sentence = sentence or findings.on_regularisation(measured_codes, pairs, score)
    if not drawings:
        return listed(missing)
    return Section(name, question, sentence, tuple(drawings), tuple(sheets), tuple(missing))
