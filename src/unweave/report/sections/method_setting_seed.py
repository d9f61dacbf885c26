"""The section on the question: what matters more: the method, its setting or the seed."""

from __future__ import annotations

from functools import partial

from unweave.report import findings, tables
from unweave.report.figures import methods
from unweave.report.names import measured, score_label
from unweave.report.sections.section import (
    INTERVALS,
    STEPS,
    Drawing,
    Material,
    Section,
    Sheet,
    setting_drawings,
)
from unweave.report.variance import mean_shares, variance_shares

CHANCE_RULE = (
    "Shares of the variance of a score, and the mean shares of noise. p: F-tests of methods against settings "
    "and of settings against seeds. Above chance: p below 0.05 after Holm for all rows and both tests."
)

QUESTION = "What decides a score: the method, its hyper-parameter, or the seed?"


def method_setting_seed(material: Material) -> Section | str:
    """Violins, lines, ranges, and shares of variance."""
    runs, scores = material.runs, material.scores
    if not scores:
        return "no run has a score of a metric"
    by_method = tables.method_table(runs, scores)
    drawings = [
        Drawing(
            "scores_by_method",
            material.flagged(
                "Scores of each method over all settings and seeds; lines are medians. Fewer than ten values "
                "are drawn as points."
            ),
            partial(methods.scores_by_method, runs, scores),
        ),
    ]
    rows = {score_label(score): score for score in scores}
    curves = tables.setting_curves(dict.fromkeys(rows, runs), rows)
    caption = material.flagged(f"Scores against regularisation. {STEPS}")
    drawings += setting_drawings("scores_by_setting", caption, curves)
    sheets = [
        Sheet("scores_by_method", f"Interquartile means of all runs of a method. {INTERVALS}", by_method),
        Sheet("scores_by_setting", f"Means over seeds. {INTERVALS}", tables.setting_table(runs, scores)),
    ]
    if not measured(material.informative, scores):
        return Section(
            "methods",
            QUESTION,
            f"{findings.CANNOT_TELL}. {material.saturation}",
            tuple(drawings),
            tuple(sheets),
        )
    if material.seeds < 2:
        return Section("methods", QUESTION, findings.ONE_SEED, tuple(drawings), tuple(sheets))
    shares, spread = (build(material.informative, scores) for build in (variance_shares, tables.seed_spread))
    drawings += [
        Drawing(
            "scores_by_seed",
            "Settings in the order of their median: range over seeds, quartiles and median.",
            partial(methods.scores_by_seed, runs, scores),
        ),
        Drawing(
            "shares_of_variance",
            material.flagged(
                "Shares of the variance of a score: between methods, between settings of a method, and the "
                "rest. Marks: what noise alone would give for the method, and for both."
            ),
            partial(methods.shares_of_variance, shares),
        ),
    ]
    sheets += [
        Sheet("shares_of_variance", CHANCE_RULE, shares),
        Sheet("seed_spread", "Standard deviations over seeds and over settings, and overlaps.", spread),
    ]
    finding = findings.on_variance(shares, mean_shares(material.informative, scores), spread, material.seeds)
    return Section("methods", QUESTION, finding, tuple(drawings), tuple(sheets))
