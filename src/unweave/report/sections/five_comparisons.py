"""Section: Methods and settings compared in five ways, as by J. Hartmann (ISS-Seminar, 2021)."""

from __future__ import annotations

from functools import partial

from unweave.report import findings
from unweave.report.best import best_methods
from unweave.report.figures import comparison
from unweave.report.names import DATA, data_sets, label
from unweave.report.sections.section import Drawing, Material, Section, Sheet

RULE = (
    "The method with the highest mean over settings, and the rival that is hardest to distinguish from it. "
    "Margin with its 95% interval (Welch's t over means of settings); improvement: the probability that a "
    "run of the first beats one of the rival, ties counted half; p after Holm for all rows. Best: p < 0.05."
)
QUESTION = "Which method is best, and where?"
BOXES = "Fewer than ten values are drawn as points."


def five_comparisons(material: Material) -> Section | str:
    """Box plots over everything, per data set, settings on one and on all, seeds."""
    runs, scores = material.runs, material.scores
    if not scores:
        return "no run has a score of a metric"
    one = data_sets(runs)[0]
    drawings = [
        Drawing(
            "methods_over_everything",
            material.flagged(
                "Methods over all data sets, settings and seeds: quartiles, medians, and values up to 1.5 "
                f"quartile distances away. {BOXES}"
            ),
            partial(comparison.methods_over_everything, runs, scores),
        ),
        Drawing(
            "methods_over_data",
            material.flagged(f"Methods on each data set, over settings and seeds. {BOXES}"),
            partial(comparison.methods_over_data, runs, scores),
        ),
        Drawing(
            "settings_on_one_data_set",
            material.flagged(f"Settings on {label(one, DATA)}, over seeds. {BOXES}"),
            partial(comparison.settings_on_one_data_set, runs[runs["data"] == one], scores),
        ),
        Drawing(
            "settings_across_data",
            "Places of settings by their mean score on each data set: 100 is the best, 0 the last.",
            partial(comparison.settings_across_data, runs, scores),
        ),
    ]
    missing: tuple[str, ...] = ("the spread over seeds is not known, since every setting has one seed",)
    if material.seeds > 1:
        missing = ()
        title = (
            "Standard deviations over seeds, a box over all settings; diamonds: of the means of settings. "
            "Where the diamond is not above the box, a seed matters as much as a setting."
        )
        draw = partial(comparison.spread_over_seeds, runs, scores)
        drawings.append(Drawing("spread_over_seeds", title, draw))
    best = best_methods(material.informative, scores)
    sheets = (Sheet("best_methods", material.flagged(RULE), best),)
    return Section(
        "comparison", QUESTION, findings.on_best(best, material.seeds), tuple(drawings), sheets, missing
    )
