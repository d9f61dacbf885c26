"""Images of one horizontal and one vertical bar, which are rendered when they are asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unweave.data.entry import Entry
from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.progress import Progress
from unweave.streams import Stream

SIZE, WIDTH = 32, 4
FACTORS = (Factor("row", SIZE // WIDTH), Factor("column", SIZE // WIDTH))
CARD = Card("Bars", "CC0-1.0", "")


def render(factors: Factors, _stream: Stream) -> Images:
    """Images (n, 1, 32, 32) of factors (n, 2)."""
    bar = np.arange(SIZE) // WIDTH
    rows, columns = bar == factors[:, :1], bar == factors[:, 1:]
    return np.asarray((rows[:, :, None] | columns[:, None, :])[:, None] * np.uint8(255))


def load(root: Path, *, check: bool = True, progress: Progress | None = None) -> GroundTruth:  # noqa: ARG001
    """Open the data set; one that reads files would look for them under `root`."""
    return GroundTruth("bars", FACTORS, (1, SIZE, SIZE), render, CARD, "rendered, rule 1", binary=True)


ENTRY = Entry("bars", FACTORS, 1, CARD, load)
