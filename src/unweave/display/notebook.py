"""HTML for notebooks: escaped text, tables and pictures that are part of the page. Needs no torch."""

from __future__ import annotations

import base64
import html
import io
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

REFRESH = 0.2  # seconds between two states of a progress bar
GAP = 2  # pixels between two images of a strip
CELL = "text-align:left;padding:1px 10px 1px 0"


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive is not None else None
    return getattr(shell, "kernel", None) is not None


@contextmanager
def live_html(draw: Callable[[], str]) -> Iterator[Callable[[], None]]:
    """Show what `draw` returns below the cell; yield a function that redraws it, a few times a second."""
    ipython: Any = import_module("IPython.display")
    shown = ipython.display(ipython.HTML(draw()), display_id=True)
    due = 0.0

    def refresh() -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + REFRESH
            shown.update(ipython.HTML(draw()))

    try:
        yield refresh
    finally:
        shown.update(ipython.HTML(draw()))


def progress_html(share: float | None, facts: Sequence[str]) -> str:
    """A progress bar and further facts; the bar moves back and forth where the share is not known."""
    value = "" if share is None else f' value="{share:.4f}"'
    text = html.escape(", ".join(fact for fact in facts if fact))
    return f'<div><progress max="1"{value} style="width:16em;vertical-align:middle"></progress> {text}</div>'


def heading(text: str) -> str:
    """A line in bold."""
    return f"<div><b>{html.escape(text)}</b></div>"


def paragraph(text: str) -> str:
    """A line of text."""
    return f"<div>{html.escape(text)}</div>"


def facts(pairs: Mapping[str, Any]) -> str:
    """Names and values, one pair a line."""
    names = [f'<th style="{CELL}">{html.escape(name)}</th>' for name in pairs]
    values = [f'<td style="{CELL}">{html.escape(str(value))}</td>' for value in pairs.values()]
    rows = [f"<tr>{name}{value}</tr>" for name, value in zip(names, values, strict=True)]
    return f"<table>{''.join(rows)}</table>"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table with a head; all cells are escaped."""
    head = "".join(f'<th style="{CELL}">{html.escape(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f'<td style="{CELL}">{html.escape(str(cell))}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def picture(image: Image | bytes, alt: str) -> str:
    """A picture, or the bytes of a PNG or GIF file, inside the page."""
    if not isinstance(image, bytes):
        buffer = io.BytesIO()
        image.save(buffer, "png")
        image = buffer.getvalue()
    kind = "gif" if image.startswith(b"GIF") else "png"
    address = f"data:image/{kind};base64,{base64.b64encode(image).decode()}"
    return f'<img src="{address}" alt="{html.escape(alt)}" style="max-width:100%">'


def strip(images: NDArray[np.uint8], alt: str) -> str:
    """Images (n, c, h, w) with 1 or 3 channels side by side; nothing for other channels or no image."""
    import numpy as np  # here, because the command line imports this module and answers --help at once
    from PIL.Image import fromarray

    n, channels, height, width = images.shape
    if not n or channels not in (1, 3):
        return ""
    sheet = np.full((height, n * (width + GAP) - GAP, 3), 255, np.uint8)
    for i, image in enumerate(images):
        left = i * (width + GAP)
        sheet[:, left : left + width] = np.moveaxis(image, 0, 2)
    return picture(fromarray(sheet), alt)
