"""A data set in a notebook: its factors and a few of its images. Imported only when a notebook asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.display.notebook import facts, heading, paragraph, strip, table
from unweave.errors import UnweaveError

SHOWN = 10  # images
LABELS = 6  # labels of a factor

FactorRow: TypeAlias = tuple[str, str, str, Sequence[str]]  # name, values, kind, labels


def data_html(
    name: str,
    size: str,
    factors: Sequence[FactorRow],
    details: Mapping[str, Any],
    examples: Callable[[int], NDArray[np.uint8]],
) -> str:
    """A data set: its size, its factors, details, and some images, made by `examples`."""
    parts = [heading(f"{name}: {size}")]
    if factors:
        parts.append(table(["factor", "values", "kind", "labels"], [_cells(*row) for row in factors]))
    parts.append(facts(details))
    try:
        parts.append(strip(examples(SHOWN), f"images of {name}"))
    except UnweaveError as error:  # the files of the data set may be gone
        parts.append(paragraph(f"No image can be shown: {error}"))
    return "".join(parts)


def _cells(name: str, values: str, kind: str, labels: Sequence[str]) -> tuple[str, str, str, str]:
    cut = ", ..." if len(labels) > LABELS else ""
    return name, values, kind, ", ".join(labels[:LABELS]) + cut
