"""Section: Methods and settings compared in five ways, as by J. Hartmann (ISS-Seminar, 2021)."""

from __future__ import annotations

from functools import partial

from unweave.report import findings
from unweave.report.figures import comparison
from unweave.report.names import DATA, data_sets, label
from unweave.report.sections.section import Drawing, Material, Section


def five_comparisons(material: Material) -> Section | str:
    """Box plots over everything, per data set, settings on one and on all, seeds."""
    runs, scores = material.runs, material.scores
    if not scores:
        return "no run has a score of a metric"
    one = data_sets(runs)[0]
    drawings = [
        Drawing(
            "methods_over_everything",
            "Methods over all data sets, settings and seeds: quartiles, medians, and values up to 1.5 "
            "quartile distances away.",
            partial(comparison.methods_over_everything, runs, scores),
        ),
        Drawing(
            "methods_over_data",
            "Methods on each data set, over settings and seeds.",
            partial(comparison.methods_over_data, runs, scores),
        ),
        Drawing(
            "settings_on_one_data_set",
            f"Settings on {label(one, DATA)}, over seeds.",
            partial(comparison.settings_on_one_data_set, runs[runs["data"] == one], scores),
        ),
        Drawing(
            "settings_across_data",
            "Places of settings by their mean score on each data set: 100 is the best, 0 the last.",
            partial(comparison.settings_across_data, runs, scores),
        ),
    ]
    missing: tuple[str, ...] = ("every setting has one seed only",)
    if material.seeds > 1:
        missing = ()
        title = (
            "Standard deviations over seeds, a box over all settings; diamonds: of the means of settings. "
            "Where the diamond is not above the box, a seed matters as much as a setting."
        )
        draw = partial(comparison.spread_over_seeds, runs, scores)
        drawings.append(Drawing("spread_over_seeds", title, draw))
    finding = findings.on_comparison(runs, scores)
    return Section("comparison", "Which method is best, and where?", finding, tuple(drawings), (), missing)
