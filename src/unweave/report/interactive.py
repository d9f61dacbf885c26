"""Charts that the reader can filter, with all scripts inside of the page; they need the extra `report`."""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pandas as pd

from unweave.report.figures.codes import drawn_rows
from unweave.report.names import DATA, METHODS, data_sets, label, methods, regularisation_steps, score_label
from unweave.report.sections.section import Material
from unweave.report.style import look_of
from unweave.report.tables import quartiles

if TYPE_CHECKING:
    import altair

POINTS = 3000  # runs in a chart
ALL = "all"
ADVICE = "Charts that can be filtered need altair: pip install unweave[report], and write the report again."


def can_draw() -> bool:
    """Whether the extra is installed."""
    return find_spec("altair") is not None and find_spec("vl_convert") is not None


@cache
def scripts() -> str:
    """The code that draws every element with a chart's data; it loads nothing."""
    import vl_convert

    draw = """
    for (const place of document.querySelectorAll("[data-chart]")) {
      const spec = JSON.parse(document.getElementById(place.dataset.chart).textContent);
      vegaEmbed(place, spec, {actions: {export: true, source: false, compiled: false, editor: false},
                              renderer: "svg", defaultStyle: true});
    }
    """
    version = ".".join(_vega_lite_version().split(".")[:2])
    return vl_convert.javascript_bundle(draw, version).replace("</script", "<\\/script")


def _vega_lite_version() -> str:
    import altair

    return str(altair.SCHEMA_VERSION).removeprefix("v")


def charts(material: Material) -> dict[str, tuple[str, str]]:
    """For each chart its name, a caption, and its description in JSON."""
    if not material.scores:
        return {}
    described = {}
    if len(material.scores) > 1:
        shown = min(POINTS, len(material.runs))
        caption = f"Any two scores against each other: {shown:,} of {len(material.runs):,} runs."
        described["pairs"] = (caption, _json(pair_chart(material)))
    described["regularisation"] = (
        "Any score against regularisation, weakest first: medians, and quartiles over runs.",
        _json(regularisation_chart(material)),
    )
    return described


def _json(chart: Any) -> str:
    return json.dumps(chart.to_dict(), separators=(",", ":"), sort_keys=True).replace("<", "\\u003c")


def _choice(name: str, title: str, options: list[str], value: str | None = None) -> altair.Parameter:
    import altair

    return altair.param(
        name=name, value=value or options[0], bind=altair.binding_select(options=options, name=title)
    )


def _colours(runs: pd.DataFrame) -> altair.Color:
    import altair

    names = methods(runs)
    looks = look_of(names)
    scale = altair.Scale(
        domain=[label(name, METHODS) for name in names], range=[looks[name]["color"] for name in names]
    )
    return altair.Color("method:N", scale=scale, title="method")


def pair_chart(material: Material) -> Any:
    """Two scores of each run, filtered by data set and method."""
    import altair

    runs = material.runs
    shown = drawn_rows(runs, POINTS // len(data_sets(runs)))
    names = [score_label(score) for score in material.scores]
    frame = shown[["setting", "seed"]].assign(
        data=[label(name, DATA) for name in shown["data"]],
        method=[label(name, METHODS) for name in shown["method"]],
        **{name: shown[score].round(4) for name, score in zip(names, material.scores, strict=True)},
    )
    x, y = _choice("x", "across: ", names), _choice("y", "up: ", names, names[1])
    data = _choice("data", "data set: ", [ALL, *(label(name, DATA) for name in data_sets(runs))])
    method = _choice("method", "method: ", [ALL, *(label(name, METHODS) for name in methods(runs))])
    chart = (
        altair.Chart(_plain(frame))
        .mark_circle(size=22, opacity=0.6)
        .encode(
            x=altair.X("across:Q", scale=altair.Scale(zero=False), axis=altair.Axis(tickCount=8)),
            y=altair.Y("up:Q", scale=altair.Scale(zero=False)),
            color=_colours(runs),
            tooltip=["data:N", "method:N", "setting:N", "seed:Q", "across:Q", "up:Q"],
        )
    )
    chart = chart.add_params(x, y, data, method).transform_calculate(across="datum[x]", up="datum[y]")
    for name in ("data", "method"):
        chart = chart.transform_filter(f"{name} == '{ALL}' || datum.{name} == {name}")
    return chart.transform_filter("isValid(datum.across) && isValid(datum.up)").properties(
        width=560, height=380
    )


def regularisation_chart(material: Material) -> Any:
    """Medians and quartiles of a score, which the reader chooses, against regularisation."""
    import altair

    runs = material.runs.assign(step=regularisation_steps(material.runs))
    parts = []
    for score in material.scores:
        spread = quartiles(runs[runs[score].notna()].groupby(["data", "method", "step"])[score]).round(4)
        parts.append(spread.reset_index().assign(score=score_label(score)))
    frame = pd.concat(parts, ignore_index=True).rename(columns=lambda name: str(name).replace(" ", "_"))
    frame["data"] = [label(name, DATA) for name in frame["data"]]
    frame["method"] = [label(name, METHODS) for name in frame["method"]]
    score_choice = _choice("score", "score: ", [score_label(name) for name in material.scores])
    data_choice = _choice("data", "data set: ", [label(name, DATA) for name in data_sets(runs)])
    base = altair.Chart(_plain(frame)).encode(
        x=altair.X("step:O", title="place of the strength, weakest first", axis=altair.Axis(labelAngle=0)),
        color=_colours(runs),
    )
    band = base.mark_area(opacity=0.12).encode(y="lower_quartile:Q", y2="upper_quartile:Q")
    tips = ["method:N", "step:O", "min:Q", "lower_quartile:Q", "median:Q", "upper_quartile:Q", "max:Q"]
    line = base.mark_line(point=True).encode(
        y=altair.Y("median:Q", title="score", scale=altair.Scale(zero=False)), tooltip=tips
    )
    chart: Any = altair.layer(band, line).add_params(score_choice, data_choice)
    chart = chart.transform_filter("datum.score == score && datum.data == data")
    return chart.properties(width=560, height=340).configure_legend(symbolOpacity=1)


def _plain(frame: pd.DataFrame) -> Any:
    """The rows as plain data, so that altair does not copy them into a file or refuse many of them."""
    import altair

    records: Any = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return altair.InlineData(values=records)
