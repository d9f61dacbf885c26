"""The theorem as a picture: codes, their information on factors, and scores, before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unweave.streams import Stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unweave.impossibility.comparison import Comparison

BEFORE, AFTER = "#0072B2", "#D55E00"  # of Okabe and Ito: distinct for colour-blind readers, and in grey
MOST_MARGINALS = 10
MOST_POINTS = 2000
FEW_VALUES = 60  # a code with at most so many values is drawn value by value


def draw(comparison: Comparison) -> Figure:
    """Marginals, two codes coloured by a factor, factor-latent information and scores, before and after."""
    from matplotlib import rc_context

    from unweave.display.inline_figure import InlineFigure

    d, most = len(comparison.code_names), int(comparison.table()["labels"].value_counts().max())
    heights = [1.5, max(2.6, 0.24 * d), 0.3 * most + 0.6]
    style: Any = {"font.size": 8, "axes.titlesize": 9, "axes.spines.top": False, "axes.spines.right": False}
    with rc_context(style):
        figure = InlineFigure(figsize=(10.5, sum(heights)), layout="constrained")
        parts: Any = figure.subfigures(3, 1, height_ratios=heights)
        top, middle, bottom = parts
        _draw_marginals(top, comparison)
        scatter, information = middle.subfigures(1, 2)
        _draw_codes(scatter, comparison)
        _draw_information(information, comparison)
        _draw_scores(bottom, comparison)
    return figure


def _draw_marginals(figure: Any, comparison: Comparison) -> None:
    shown = min(len(comparison.code_names), MOST_MARGINALS)
    for j, axes in enumerate(figure.subplots(1, shown, squeeze=False)[0]):
        before, after = comparison.before[:, j], comparison.after[:, j]
        edges = _edges(np.concatenate([before, after]))
        axes.hist(before, edges, color=BEFORE, alpha=0.35)
        axes.hist(after, edges, color=AFTER, histtype="step", linewidth=1.2)
        axes.set(yticks=[], xlabel=comparison.code_names[j], xlim=(edges[0], edges[-1]))
        axes.set_title(f"KS {comparison.distances[j]:.3f}", fontsize=7, color="0.3", loc="right", pad=2)
        axes.spines["left"].set_visible(False)
    all_of_them = len(comparison.code_names)
    rest = "" if shown == all_of_them else f", the first {shown} of {all_of_them}"
    _head(
        figure,
        f"How the values of each code are distributed{rest} "
        f"(KS distances of two samples of one law: below {comparison.chance:.3f}, 95 times in 100)",
    )


def _head(figure: Any, text: str) -> None:
    figure.suptitle(text, fontsize=9, fontweight="bold")


def _edges(values: NDArray[Any]) -> NDArray[np.float64]:
    """Edges of bins: around each value of a code that has few, else 40 of equal width."""
    distinct = np.unique(values)
    if 1 < len(distinct) <= FEW_VALUES:
        middles = (distinct[1:] + distinct[:-1]) / 2
        return np.array([2 * distinct[0] - middles[0], *middles, 2 * distinct[-1] - middles[-1]])
    return np.histogram_bin_edges(values.astype(np.float64), 40)


def _draw_codes(figure: Any, comparison: Comparison) -> None:
    first, second, factor = most_informative(comparison.scores_before.matrices["mutual_information"])
    colours = comparison.factors[:MOST_POINTS, factor]
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, codes, title in zip(
        panels, (comparison.before, comparison.after), ("before", "after"), strict=True
    ):
        x, y = (_jittered(codes[:MOST_POINTS, j], f"{title} {j}") for j in (first, second))
        points = axes.scatter(x, y, c=colours, s=4, cmap="viridis", linewidths=0, rasterized=True)
        axes.set(title=title, xlabel=comparison.code_names[first])
    panels[0].set_ylabel(comparison.code_names[second])
    bar = figure.colorbar(points, ax=list(panels), aspect=30, pad=0.02)
    bar.outline.set_visible(False)
    _head(figure, f"Two codes, coloured by the factor {comparison.factor_names[factor]}")


def most_informative(information: NDArray[np.float64]) -> tuple[int, int, int]:
    """The most informative code of any factor, that of another factor, and the factor of the first.

    >>> most_informative(np.array([[0.1, 0.0], [0.9, 0.8], [0.0, 0.7]]))
    (1, 2, 0)
    """
    first, factor = np.unravel_index(information.argmax(), information.shape)
    others = information.copy()
    if others.shape[1] > 1:
        others[:, factor] = -1
    others[first] = -2
    return int(first), int(np.unravel_index(others.argmax(), others.shape)[0]), int(factor)


def _jittered(values: NDArray[Any], purpose: str) -> NDArray[np.float64]:
    """Values that lie on each other drawn side by side: spread over the gap to their neighbours."""
    distinct = np.unique(values)
    if not 1 < len(distinct) <= FEW_VALUES:
        return values.astype(np.float64)
    spread = Stream.of(0).child("figure", purpose).uniform(len(values), 1)[:, 0] - 0.5
    shaken: NDArray[np.float64] = values + 0.9 * np.diff(distinct).min() * spread
    return shaken


def _draw_information(figure: Any, comparison: Comparison) -> None:
    pair = [
        scores.matrices["mutual_information"]
        for scores in (comparison.scores_before, comparison.scores_after)
    ]
    highest = max(float(matrix.max()) for matrix in pair)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, matrix, title in zip(panels, pair, ("before", "after"), strict=True):
        picture = axes.imshow(matrix, cmap="Blues", vmin=0, vmax=highest or 1, aspect="auto")
        axes.set_xticks(
            range(matrix.shape[1]), comparison.factor_names, rotation=40, ha="right", rotation_mode="anchor"
        )
        axes.set_yticks(range(matrix.shape[0]), comparison.code_names)
        axes.set_title(title)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        for (i, j), value in np.ndenumerate(matrix):
            shade = "w" if value > 0.6 * highest else "0.25"
            axes.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=6.5, color=shade)
    figure.colorbar(picture, ax=list(panels), aspect=30, pad=0.02).outline.set_visible(False)
    _head(figure, "Information of each code (row) on each factor, in nats")


def _draw_scores(figure: Any, comparison: Comparison) -> None:
    table = comparison.table()
    most = int(table["labels"].value_counts().max())
    panels = figure.subplots(1, 2)
    titles = ("Measured without labels", "Measured with labels")
    for axes, needs, title in zip(panels, (False, True), titles, strict=True):
        rows = table[table["labels"] == needs]
        place = np.arange(len(rows))
        for shift, column, colour in ((-0.19, "before", BEFORE), (0.19, "after", AFTER)):
            bars = axes.barh(place + shift, rows[column], 0.36, color=colour, label=column)
            axes.bar_label(bars, fmt="%.3f", padding=2, fontsize=6.5, color="0.3")
        axes.set_yticks(place, [name.replace("_", " ").replace(".", ": ") for name in rows["quantity"]])
        low, high = rows[["before", "after"]].min().min(), rows[["before", "after"]].max().max()
        axes.set_xlim(min(0.0, 1.15 * low), 1.12 * max(1.0, high))
        axes.set_ylim(most - 0.5, -0.5)  # bars of both panels are equally thick
        axes.tick_params(axis="y", length=0)
        axes.set_title(title, fontweight="bold")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", frameon=False, ncols=2)
