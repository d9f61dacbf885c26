"""Figures that a notebook shows without pyplot."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class InlineFigure(Figure):
    """A matplotlib figure with no window and no pyplot state; as the last value of a cell it is shown."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()
