"""The charts, drawn by the same library that draws them in the page."""

import json
from typing import Any

import pytest

from report.made_up import SIX, settings, table
from report.test_sections import made
from unweave.report.interactive import charts

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


def test_the_reader_chooses_the_scores() -> None:
    first = chart("pairs", x="MIG", y="SAP")
    assert "across: 0.1;" in first
    assert "up: 0.9;" in first
    assert "across: 0.9;" in chart("pairs", x="SAP", y="SAP")


def test_medians_against_regularisation() -> None:
    svg = chart("regularisation", score="MIG", data="Cars3D")
    assert svg.count('aria-roledescription="line mark"') == 2
    assert "median: 0.31" in svg


def test_one_score_has_no_pairs() -> None:
    assert list(charts(made(table(settings(), {"mig": SIX["mig"]})))) == ["regularisation"]
