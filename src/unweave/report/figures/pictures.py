"""What models keep of an image: the sheets of reconstructions of some runs, below each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unweave.errors import UnweaveError
from unweave.report.style import WIDTH, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = 0.22  # inches


@styled
def reconstructions(sheets: Sequence[tuple[str, Path]]) -> Figure:
    """Sheets with their titles, two in a row."""
    from matplotlib.figure import Figure as NewFigure
    from PIL import Image

    pictures = []
    for title, path in sheets:
        try:
            with Image.open(path) as file:
                pictures.append((title, file.convert("RGB")))
        except OSError as error:
            raise UnweaveError(f"cannot read the picture {path}: {error}.") from error
    wide = WIDTH / 2
    tallest = [
        max(picture.height / picture.width for _, picture in pictures[i : i + 2]) * wide + TITLE
        for i in range(0, len(pictures), 2)
    ]
    figure = NewFigure(figsize=(WIDTH, sum(tallest)))
    top = sum(tallest)
    for i, (title, picture) in enumerate(pictures):
        height = picture.height / picture.width * wide
        bottom = top - sum(tallest[: i // 2]) - TITLE - height
        axes = figure.add_axes((0.5 * (i % 2), bottom / top, 0.49, height / top))
        axes.imshow(picture, aspect="auto", interpolation="antialiased")
        axes.set_title(title)
        axes.set_axis_off()
    return figure
