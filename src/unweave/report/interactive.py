"""Charts that the reader can filter, with all scripts inside of the page; they need the extra `report`."""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pandas as pd

from unweave.report.figures.codes import drawn_rows
from unweave.report.figures.settings import method_groups
from unweave.report.names import DATA, METHODS, data_sets, label, methods, score_label
from unweave.report.sections.section import Material
from unweave.report.style import look_of
from unweave.report.tables import setting_curves

if TYPE_CHECKING:
    import altair

POINTS = 3000  # runs in a chart
ALL = "all"
HEADLINES = ("mig", "dci.disentanglement", "sap")  # scores that charts begin with
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
                              renderer: "svg", defaultStyle: true})
        .then(() => place.querySelector("summary").setAttribute("aria-label", "Save the chart"));
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
        "Any score against the setting of each method, the weakest regularisation on the left: medians, and "
        "quartiles over runs.",
        _json(regularisation_chart(material)),
    )
    return described


def first_scores(material: Material) -> list[str]:
    """The scores with those first that are shown first: headline scores that are not saturated anywhere."""
    useful = [name for name in material.scores if not _is_saturated(material, name)]
    first = [name for name in HEADLINES if name in useful] + useful
    return list(dict.fromkeys([*first, *material.scores]))


def _is_saturated(material: Material, score: str) -> bool:
    return bool(material.informative[score].isna().sum() > material.runs[score].isna().sum())


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

    runs, scores = material.runs, first_scores(material)
    shown = drawn_rows(runs, POINTS // len(data_sets(runs)))
    names = [score_label(score) for score in scores]
    frame = shown[["setting", "seed"]].assign(
        data=[label(name, DATA) for name in shown["data"]],
        method=[label(name, METHODS) for name in shown["method"]],
        **{name: shown[score].round(4) for name, score in zip(names, scores, strict=True)},
    )
    x = _choice("x", "horizontal axis: ", names, names[1])
    y = _choice("y", "vertical axis: ", names)
    data = _choice("data", "data set: ", [ALL, *(label(name, DATA) for name in data_sets(runs))])
    method = _choice("method", "method: ", [ALL, *(label(name, METHODS) for name in methods(runs))])
    points = (
        altair.Chart(_plain(frame))
        .mark_circle(size=22, opacity=0.6)
        .encode(
            x=altair.X("x_value:Q", scale=altair.Scale(zero=False), axis=altair.Axis(tickCount=8, title="")),
            y=altair.Y("y_value:Q", scale=altair.Scale(zero=False), title=""),
            color=_colours(runs),
            tooltip=[
                *("data:N", "method:N", "setting:N", "seed:Q"),
                *(altair.Tooltip(f"{axis}_value:Q", title=f"{axis} axis") for axis in ("x", "y")),
            ],
        )
        .transform_calculate(x_value="datum[x]", y_value="datum[y]")
    )
    for name in ("data", "method"):
        points = points.transform_filter(f"{name} == '{ALL}' || datum.{name} == {name}")
    points = points.transform_filter("isValid(datum.x_value) && isValid(datum.y_value)")
    chart: Any = altair.layer(points, _axis_name("x"), _axis_name("y", vertical=True)).add_params(
        x, y, data, method
    )
    return chart.properties(width=560, height=380)


def _axis_name(parameter: str, *, vertical: bool = False) -> altair.Chart:
    """The chosen score as the name of an axis, since the title of an axis cannot depend on a choice."""
    import altair

    across = {"x": altair.expr("width / 2"), "y": altair.expr("height + 32")}
    upwards = {"x": -42, "y": altair.expr("height / 2"), "angle": 270}
    place: Any = upwards if vertical else across
    chart: altair.Chart = altair.Chart(altair.InlineData(values=[{}])).mark_text(
        text=altair.expr(parameter), fontWeight="bold", fontSize=11, **place
    )
    return chart


def regularisation_chart(material: Material) -> Any:
    """Medians and quartiles of a score, which the reader chooses: a panel for the setting of each method."""
    import altair

    scores = {score_label(score): score for score in first_scores(material)}
    curves = setting_curves(dict.fromkeys(scores, material.runs), scores)
    data = _choice("data", "data set: ", [label(name, DATA) for name in data_sets(curves)])
    score = _choice("score", "score: ", list(scores))
    names = [name for group in method_groups(curves) for name in group]
    panels = [_setting_panel(curves[curves["method"] == name], name, names) for name in names]
    chart: Any = altair.concat(*panels, columns=3).resolve_scale(y="shared").add_params(score, data)
    return chart.properties(
        title=altair.TitleParams(text=altair.expr("score + ' on ' + data"), anchor="middle")
    )


def _setting_panel(curves: pd.DataFrame, method: str, names: list[str]) -> Any:
    """Medians and quartiles of one method; the axis has the values of its setting, weakest first."""
    import altair

    order = [
        f"{value:g}" for value in curves.drop_duplicates("step").sort_values("step")["strength"].fillna(0)
    ]
    frame = curves.assign(
        data=[label(name, DATA) for name in curves["data"]],
        value=[f"{value:g}" for value in curves["strength"].fillna(0)],
    ).rename(columns=lambda name: str(name).replace(" ", "_"))
    columns = ["row", "data", "value", "lower_quartile", "median", "upper_quartile", "runs"]
    quartiles = {name: frame[name].round(4) for name in ("lower_quartile", "median", "upper_quartile")}
    axis = altair.X(
        "value:O",
        sort=order,
        title=str(curves["strength name"].iloc[0]),
        axis=altair.Axis(labelAngle=0),
        scale=altair.Scale(padding=0.3),
    )
    colour = look_of(names)[method]["color"]
    base = altair.Chart(_plain(frame.assign(**quartiles)[columns])).encode(x=axis)
    base = base.transform_filter("datum.row == score && datum.data == data")
    band = base.mark_area(opacity=0.15, color=colour).encode(y="lower_quartile:Q", y2="upper_quartile:Q")
    line = base.mark_line(point={"color": colour}, color=colour).encode(
        y=altair.Y("median:Q", title="", scale=altair.Scale(zero=False)),
        tooltip=["value:O", "lower_quartile:Q", "median:Q", "upper_quartile:Q", "runs:Q"],
    )
    return altair.layer(band, line, _axis_name("score", vertical=True)).properties(
        width=190, height=150, title=label(method, METHODS)
    )


def _plain(frame: pd.DataFrame) -> Any:
    """The rows as plain data, so that altair does not copy them into a file or refuse many of them."""
    import altair

    records: Any = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return altair.InlineData(values=records)
