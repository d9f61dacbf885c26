"""One style for all figures: sizes for print, colours that colour-blind readers can tell apart.

A figure is as wide as a page of text and has panels of one size; margins are given in inches, so nothing has
to be found by trial when it is drawn, and the same table gives the same picture. Colours are those of Okabe
and Ito (2008); methods have markers of their own too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unweave.report.names import DATA, METHODS, in_order, label
from unweave.results import METHOD_ORDER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

WIDTH = 7.2  # inches
MANY = 12  # names under a small panel; where there are more, each panel is as wide as the page
A_LINE = 7  # names in a line of a legend
HANDLE, CHARACTER = 0.25, 0.055  # inches of a marker with its gaps, and of a letter, in a legend
SECOND_LINE = 0.12  # inches
CONDITION_SIZE = 6  # points, in titles
CONDITION = re.compile(r"[^\s:]+:\S{9,}")  # the name of a data set with a long condition
GREY = "#767676"
OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#56B4E9", "#D55E00", "#CC79A7", "#000000", "#B5A900")
MARKERS = ("o", "s", "^", "v", "D", "P", "X", "*")
DIVERGING = "RdBu_r"
SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 7,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlepad": 3,
    "axes.labelpad": 2,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 3,
    "xtick.major.size": 2,
    "ytick.major.size": 2,
    "xtick.major.pad": 1.5,
    "ytick.major.pad": 1.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "pdf.fonttype": 42,
    "svg.hashsalt": "unweave",
}

Parameters = ParamSpec("Parameters")


def dot_size(points: int) -> float:
    """The area of a dot of a scatter plot: few are seen from afar, many do not hide each other."""
    return float(np.clip(2000 / max(points, 1), 3, 20))


@contextmanager
def style() -> Iterator[None]:
    """Draw, or write to a file, in the style of the report."""
    import matplotlib

    # What the user has set for other figures must not change these.
    settings: Any = {**matplotlib.rcParamsDefault, "backend": "agg", **SETTINGS}
    with matplotlib.rc_context(settings):
        yield


def styled(draw: Callable[Parameters, Figure]) -> Callable[Parameters, Figure]:
    """A function that draws in the style of the report."""

    @wraps(draw)
    def drawn(*args: Parameters.args, **options: Parameters.kwargs) -> Figure:
        with style():
            figure = draw(*args, **options)
            wrap_conditions(figure)
            return figure

    return drawn


def wrap_conditions(figure: Figure) -> None:
    """Write the conditions of data sets in titles and vertical labels on a second line, with room for it."""
    titled = labelled = False
    for axes in figure.axes:
        if CONDITION.fullmatch(axes.get_title()):
            axes.set_title(axes.get_title().replace(":", ":\n", 1), fontsize=CONDITION_SIZE)
            titled = True
        if CONDITION.fullmatch(axes.get_ylabel()):
            axes.set_ylabel(axes.get_ylabel().replace(":", ":\n", 1))
            labelled = True
    if titled:
        add_room_above(figure, SECOND_LINE)
    if labelled:
        add_room_left(figure, SECOND_LINE)


def panels(
    rows: int,
    columns: int,
    *,
    height: float = 1.1,
    widest: float = 2.4,
    margins: tuple[float, float, float, float] = (0.45, 0.1, 0.35, 0.3),
    gaps: tuple[float, float] = (0.12, 0.14),
) -> tuple[Figure, NDArray[Any]]:
    """A figure and its (rows, columns) axes; all numbers are inches.

    Margins are left, right, top and bottom; gaps are between columns and between rows. Panels share the width
    of a page, and are never wider than `widest`.
    """
    from matplotlib.figure import Figure as NewFigure

    left, right, top, bottom = margins
    wide = min((WIDTH - left - right - gaps[0] * (columns - 1)) / columns, widest)
    size = (
        left + right + wide * columns + gaps[0] * (columns - 1),
        top + bottom + height * rows + gaps[1] * (rows - 1),
    )
    figure = NewFigure(figsize=size)
    axes = figure.subplots(rows, columns, squeeze=False)
    figure.subplots_adjust(
        left=left / size[0],
        right=1 - right / size[0],
        top=1 - top / size[1],
        bottom=bottom / size[1],
        wspace=gaps[0] / wide,
        hspace=gaps[1] / height,
    )
    return figure, axes


def room_for_names(names: Sequence[str], left: float) -> dict[str, Any]:
    """What `panels` needs so that names can stand under them, upright; `left` is the margin there."""
    wide = len(names) > MANY
    return {"widest": 6.6 if wide else 2.4, "margins": (left, 0.1, 0.25, 1.0 if wide else 0.75)}


def look_of(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """For each name its colour and marker; those of the study have the same ones in every figure."""
    known = list(METHOD_ORDER) if set(names) & set(METHOD_ORDER) else list(DATA)
    order = in_order([*names, *known], known)
    places = {name: order.index(name) for name in names}
    return {
        name: {"color": OKABE_ITO[i % len(OKABE_ITO)], "marker": MARKERS[(i + i // 8) % len(MARKERS)]}
        for name, i in places.items()
    }


def legend(figure: Figure, names: Sequence[str], *, dots: bool = False) -> None:
    """What colours and markers stand for, or colours only, at the top; it makes room for all but one line."""
    from matplotlib.lines import Line2D

    looks = look_of(names)
    if dots:
        looks = {name: {**look, "marker": "o"} for name, look in looks.items()}
    handles = [Line2D([], [], linestyle="", markersize=4, **looks[name]) for name in names]
    words = [label(name, {**METHODS, **DATA}) for name in names]
    # Handles that stand closer than matplotlib's default keep seven names on one line.
    options: dict[str, Any] = {"handletextpad": 0.1, "columnspacing": 1.0, "borderaxespad": 0.2}
    columns = legend_columns(words, float(figure.get_size_inches()[0]))
    figure.legend(handles, words, loc="upper center", ncols=columns, **options)
    add_room_above(figure, 0.14 * ((len(names) - 1) // columns))


def legend_columns(words: Sequence[str], width: float = WIDTH) -> int:
    """How many names stand in a line: seven, or as many as fit if names are long or the figure is narrow.

    >>> legend_columns(["dSprites", "Cars3D"]), legend_columns(["dSprites:montero_element"] * 8)
    (2, 4)
    >>> legend_columns(["FactorVAE"] * 6, width=3.5)
    4
    """
    most, inches = min(len(words), A_LINE), max(HANDLE + CHARACTER * len(word) for word in words)
    must_fit = width < WIDTH or any(map(CONDITION.fullmatch, words))
    return min(most, max(1, int(width // inches))) if must_fit else most


def add_room_above(figure: Figure, inches: float) -> None:
    """Make a figure taller; panels keep their sizes."""
    wide, tall = figure.get_size_inches()
    share, place = tall / (tall + inches), figure.subplotpars
    figure.set_size_inches(wide, tall + inches)
    figure.subplots_adjust(top=place.top * share, bottom=place.bottom * share)


def add_room_left(figure: Figure, inches: float) -> None:
    """Make a figure wider on its left; panels keep their sizes."""
    wide, tall = figure.get_size_inches()
    share, place = wide / (wide + inches), figure.subplotpars
    figure.set_size_inches(wide + inches, tall)
    figure.subplots_adjust(left=1 - (1 - place.left) * share, right=1 - (1 - place.right) * share)


def outer_labels(axes: NDArray[Any], rows: Sequence[str], columns: Sequence[str]) -> None:
    """Titles above the first row, names left of the first column, ticks only on the outside."""
    for axis, title in zip(axes[0], columns, strict=True):
        axis.set_title(title)
    for axis, name in zip(axes[:, 0], rows, strict=True):
        axis.set_ylabel(name)
    for axis in axes[:-1].ravel():
        axis.tick_params(which="both", labelbottom=False)
    for axis in axes[:, 1:].ravel():
        axis.tick_params(which="both", labelleft=False)


def same_limits(axes: NDArray[Any]) -> None:
    """Give axes the same limits, so that they can be compared; those without points do not count."""
    drawn = [axis for axis in axes.ravel() if np.isfinite(axis.dataLim.intervalx).all()]
    limits = np.array([axis.get_ylim() for axis in drawn or axes.ravel()])
    low, high = limits[:, 0].min(), limits[:, 1].max()
    # A panel whose values are all alike has hardly a margin of its own.
    room = 0.04 * (high - low) if axes.flat[0].get_yscale() == "linear" else 0.0
    for axis in axes.ravel():
        axis.set_ylim(low - room, high + room)


def few_ticks(axis: Axis, log: bool = False) -> None:
    """Ticks of a small panel."""
    from matplotlib.ticker import LogFormatter, LogLocator, MaxNLocator

    if log:
        axis.set_major_locator(LogLocator(numticks=5))
        # Within a decade there may be no power of ten, so the ticks between have numbers.
        axis.set_minor_formatter(LogFormatter(labelOnlyBase=False, minor_thresholds=(1, 0.4)))
    else:
        axis.set_major_locator(MaxNLocator(3))


def heat_map(
    axes: Axes, matrix: pd.DataFrame, *, low: float = -1, high: float = 1, colours: str = DIVERGING
) -> None:
    """A matrix of correlations with its numbers, in hundredths; what is not known is left white."""
    import matplotlib

    values = matrix.to_numpy(float)
    axes.imshow(values, cmap=colours, vmin=low, vmax=high, aspect="auto")
    axes.grid(visible=False)
    axes.set_xticks(range(values.shape[1]), [str(name) for name in matrix.columns], rotation=90)
    axes.set_yticks(range(values.shape[0]), [str(name) for name in matrix.index])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    colour_of = matplotlib.colormaps[colours]
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            red, green, blue, _ = colour_of((value - low) / (high - low))
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            ink = "white" if dark else "black"
            axes.text(j, i, f"{round(100 * value)}", ha="center", va="center", fontsize=5.5, color=ink)
