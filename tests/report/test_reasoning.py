"""The section on abstract reasoning: what it says of made-up runs whose answer is known."""

from pathlib import Path

import numpy as np
import pandas as pd

from report.made_up import SIX, At, Rule, settings, table
from unweave.report.figures.reasoning import learning_curves
from unweave.report.formats import labelled
from unweave.report.names import metric_scores, score_label
from unweave.report.sections.reasoning import reasoning
from unweave.report.sections.section import Material, Section, material
from unweave.results import Results


def made(results: Results) -> Material:
    built = material(results, "own")
    assert isinstance(built, Material)
    return built


def noise(at: At) -> float:
    return ((7 * at.data + 5 * at.method + 3 * at.strength + 11 * at.seed) % 13) / 13


# Early accuracies follow MIG, late ones nothing; before anything is learned all are guesses.
CURVES: dict[str, Rule] = {
    "reasoning.accuracy_1600000": lambda at: 0.95 + 0.01 * noise(at),
    "reasoning.accuracy_3200": lambda at: 0.16 + 0.01 * noise(at),
    "reasoning.accuracy_32000": lambda at: 0.3 + SIX["mig"](at) / 2,
}


def test_the_finding_is_about_few_and_many_matrices(tmp_path: Path) -> None:
    runs = made(table(settings(seeds=4), {**SIX, **CURVES}))
    assert metric_scores(runs.runs) == ["mig", "modularity", "sap"]  # an accuracy is no metric
    section = reasoning(runs)
    assert isinstance(section, Section)
    early, late = section.finding.split("the reasoning accuracy after ")[1:]
    assert early.startswith(
        "32,000 matrices (|Spearman| 0.3 or more). The largest correlation is that of MIG: "
    )
    assert "mean Spearman 1.00" in early
    assert "4 seeds a setting" in early
    assert late.startswith("1,600,000 matrices")
    by_matrices = section.sheets[2].table["first"].tolist()
    assert by_matrices == [f"reasoning.accuracy_{n}" for n in (3200, 32000, 1600000)]
    assert score_label(by_matrices[1]) == "32,000 matrices"
    # A training of 250 steps ends at a number that no other training is measured at.
    ends = pd.DataFrame({"first": ["reasoning.accuracy_8000"], "second": ["mig"]})
    assert labelled(ends)[1] == [("8,000 matrices", "MIG")]
    for drawing in section.drawings:
        drawing.draw().savefig(tmp_path / f"{drawing.name}.png")


def test_what_is_missing_is_named() -> None:
    assert reasoning(made(table(settings(), SIX))) == (
        "it needs results of unweave reason, a metric, and three runs"
    )
    few = made(table(settings(seeds=1, data=["rooms"], methods=["beta_vae"]), {**SIX, **CURVES}))
    section = reasoning(few)
    assert isinstance(section, Section)
    assert section.finding.startswith("The data cannot tell whether 3 metrics correlate with the reasoning")


def test_curves_go_on_where_other_runs_were_checked_in_between() -> None:
    runs = pd.DataFrame({"data": ["dsprites", "rooms"], "method": "beta_vae", "a": 0.2, "c": 0.4})
    runs["b"] = [np.nan, 0.3]
    figure = learning_curves(runs, ["a", "b", "c"], [3200, 6400, 16000])
    curves = [np.asarray(axes.get_lines()[0].get_xydata()).tolist() for axes in figure.axes[:2]]
    assert curves[0] == [[3200, 0.2], [16000, 0.4]]
    assert curves[1] == [[3200, 0.2], [6400, 0.3], [16000, 0.4]]
