"""The charts, drawn by the same library that draws them in the page."""

import json
import re
from typing import Any

import pytest

from report.made_up import SIX, Rule, settings, table
from report.test_sections import made
from unweave.report.interactive import charts, first_scores

vl_convert: Any = pytest.importorskip("vl_convert", reason="altair and vl-convert-python are not installed")
pytest.importorskip("altair", reason="altair and vl-convert-python are not installed")


def chart(name: str, **chosen: str) -> str:
    """A chart as SVG, after the reader has chosen something."""
    description = json.loads(charts(made(table(settings(), SIX)))[name][1])
    for parameter in description["params"]:
        parameter["value"] = chosen.pop(parameter["name"], parameter["value"])
    assert not chosen
    return str(vl_convert.vegalite_to_svg(description))


def points(svg: str) -> int:
    return svg.count('aria-roledescription="circle"')


def test_all_runs_are_points() -> None:
    assert points(chart("pairs")) == 36


def test_points_are_filtered_by_data_set_and_method() -> None:
    assert points(chart("pairs", data="Cars3D")) == 18
    assert points(chart("pairs", data="Cars3D", method="β-VAE")) == 9


def test_the_reader_chooses_the_scores_and_axes_name_them() -> None:
    first = chart("pairs", x="MIG", y="SAP")
    assert "x axis: 0.1;" in first
    assert "y axis: 0.9" in first
    assert re.findall(r"<text[^>]*>(MIG|SAP)</text>", first) == ["MIG", "SAP"]
    assert "x axis: 0.9;" in chart("pairs", x="SAP", y="SAP")


def test_charts_begin_with_scores_that_are_not_saturated() -> None:
    rules: dict[str, Rule] = {"beta_vae_score.eval_accuracy": lambda _: 1.0, "modularity": SIX["modularity"]}
    built = made(table(settings(), rules))
    assert first_scores(built) == ["modularity", "beta_vae_score.eval_accuracy"]
    assert first_scores(made(table(settings(), {**rules, **SIX})))[:2] == ["mig", "sap"]


def test_medians_against_the_setting_of_each_method() -> None:
    svg = chart("regularisation", score="MIG", data="Cars3D")
    assert svg.count('aria-roledescription="line mark"') == 2
    assert "median: 0.31" in svg
    assert svg.count(">strength</text>") == 2, "each method has an axis of its own"
    assert "MIG on Cars3D" in svg
    assert svg.count(">MIG</text>") == 2


def test_one_score_has_no_pairs() -> None:
    assert list(charts(made(table(settings(), {"mig": SIX["mig"]})))) == ["regularisation"]
