"""The curves of a downstream task as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unweave.display.inline_figure import InlineFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unweave.evaluation.downstream import DownstreamCurves

TITLES = {"accuracy": "accuracy", "r2": "R²", "angular_error": "angular error (degrees)"}


def draw(curves: DownstreamCurves) -> Figure:
    """A panel for each measure, a colour for each factor; held-out combinations are dashed."""
    table = curves.frame()
    measures = list(dict.fromkeys(table["measure"]))
    factors = list(dict.fromkeys(table["factor"]))
    figure = InlineFigure(figsize=(2.0 + 2.9 * len(measures), 3.0), layout="constrained")
    lines = {}
    for axes, measure in zip(figure.subplots(1, len(measures), squeeze=False)[0], measures, strict=True):
        groups = table[table["measure"] == measure].groupby(["factor", "part"], sort=False)
        for (factor, part), rows in groups:
            colour = "black" if factor == "mean" else f"C{factors.index(factor)}"
            style, ending = ("s--", ", held out") if part == "held_out" else ("o-", "")
            [line] = axes.plot(rows["size"], rows["estimate"], style, color=colour, markersize=4)
            axes.fill_between(rows["size"], rows["low"], rows["high"], color=colour, alpha=0.12, linewidth=0)
            lines[f"{factor}{ending}"] = line
        axes.set_xscale("log")
        axes.set_xlabel("labelled images")
        axes.set_title(TITLES[measure])
        if measure == "r2":
            axes.set_ylim(max(-1.0, axes.get_ylim()[0]), 1.05)
    figure.legend(list(lines.values()), list(lines), loc="outside right upper", fontsize=7, frameon=False)
    return figure
