"""Figures of a trained run: sheets of images and curves of losses. No pyplot state is touched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unweave.display.pictures import GAP, to_rgb
from unweave.errors import UnweaveError, did_you_mean
from unweave.runs.views import Row

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TILE = 0.6  # inches of an image
MARGIN = 0.06  # inches around a sheet and its labels
PANELS = 3  # curves side by side


def sheet_figure(title: str, rows: Sequence[Row]) -> Figure:
    """Labelled rows of images (n, c, h, w) as one figure."""
    from unweave.display.inline_figure import InlineFigure

    columns = max(len(images) for _, images in rows)
    height, paper = rows[0][1].shape[2], _tiled([images for _, images in rows], columns)
    size = np.array(paper.shape[1::-1]) * TILE / height
    figure = InlineFigure(figsize=size, dpi=110)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(paper, interpolation="nearest")
    middles = [r * (height + GAP) + (height - 1) / 2 for r in range(len(rows))]
    axes.set_yticks(middles, [_plain(label) for label, _ in rows], fontsize=7)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(_plain(title), fontsize=8, loc="left")
    _make_room(figure, axes, size)
    return figure


def _make_room(figure: Figure, axes: Axes, size: NDArray[np.float64]) -> None:
    """Enlarge a figure that its axes fill, (width, height) in inches, by the text around them.

    A layout engine would shrink the axes of images, or cut off text, because their sides have a fixed ratio.
    """
    around = axes.get_tightbbox() or axes.bbox
    inside, outside = (box.get_points() / figure.dpi for box in (axes.bbox, around))
    before = np.maximum(inside[0] - outside[0], 0) + MARGIN
    after = np.maximum(outside[1] - inside[1], 0) + MARGIN
    whole = before + size + after
    figure.set_size_inches(*whole)
    axes.set_position((*(before / whole), *(size / whole)))


def loss_figure(log: pd.DataFrame, terms: Sequence[str] | None, title: str) -> Figure:
    """The curves of logged quantities over the steps, one panel each."""
    from unweave.display.inline_figure import InlineFigure

    known = [str(name) for name in log.columns if name != "step"]
    if not known:
        raise UnweaveError("the run has an empty log, so there are no losses to plot.")
    names = known if terms is None else [terms] if isinstance(terms, str) else list(terms)
    for name in names:
        if name not in known:
            raise UnweaveError(f'the log has no quantity "{name}". {did_you_mean(str(name), known)}')
    if not names:
        raise UnweaveError(f"name at least one quantity of the log: {', '.join(known)}.")
    columns = min(PANELS, len(names))
    lines = math.ceil(len(names) / columns)
    figure = InlineFigure(figsize=(2.8 * columns, 1.9 * lines), dpi=110, layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        axes.plot(log["step"], log[name], linewidth=1, marker="." if len(log) == 1 else "")
        axes.set_title(_plain(name), fontsize=8)
        axes.tick_params(labelsize=7)
        axes.locator_params(axis="x", nbins=4)  # numbers of six digits do not overlap
        axes.set_xlabel("step", fontsize=7)
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    above = figure.suptitle(_plain(title), fontsize=9)
    figure.set_figwidth(max(figure.get_figwidth(), above.get_window_extent().width / figure.dpi + 2 * MARGIN))
    return figure


def _plain(text: str) -> str:
    """The text as it stands: matplotlib would read what is between two dollar signs as a formula."""
    return text.replace("$", r"\$")


def _tiled(rows: Sequence[NDArray[Any]], columns: int) -> NDArray[np.uint8]:
    """(h, w, 3): all images on white paper."""
    height, width = rows[0].shape[2:]
    shape = (len(rows) * (height + GAP) - GAP, columns * (width + GAP) - GAP, 3)
    paper = np.full(shape, 255, np.uint8)
    for r, images in enumerate(rows):
        top = r * (height + GAP)
        for c, image in enumerate(to_rgb(images)):
            left = c * (width + GAP)
            paper[top : top + height, left : left + width] = image
    return paper
