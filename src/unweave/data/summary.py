"""A data set in a notebook: its factors and a few of its images. Imported only when a notebook asks."""

from __future__ import annotations

from collections.abc import Callable

from unweave.data.collection import Collection, Continuous
from unweave.data.grid import Factor, GroundTruth, Images
from unweave.errors import UnweaveError
from unweave.notebook import facts, heading, paragraph, strip, table

SHOWN = 10  # images
LABELS = 6  # labels of a factor


def ground_truth_html(truth: GroundTruth) -> str:
    """A ground truth: its size, its factors, how they are drawn, images drawn at random."""
    size = f"{len(truth):,} combinations of factors"
    more = {"factors are drawn": truth.drawn}
    return _html(truth, size, more, lambda: truth.observe(truth.sample_factors(SHOWN, 0), 0))


def collection_html(collection: Collection) -> str:
    """A collection: its size, its factors, images drawn at random."""
    size = f"{len(collection):,} images"
    more = {"all factors known": f"{len(collection.complete):,} images"} if collection.factors else {}
    shown = min(SHOWN, len(collection))
    return _html(collection, size, more, lambda: collection.images_at(collection.sample_index(shown, 0)))


def _html(
    data: GroundTruth | Collection, size: str, more: dict[str, str], examples: Callable[[], Images]
) -> str:
    parts = [heading(f"{data.name}: {size}")]
    if data.factors:
        parts.append(table(["factor", "values", "kind", "labels"], [_row(factor) for factor in data.factors]))
    shape = " x ".join(map(str, data.shape))
    parts.append(facts({"image": f"{shape}, uint8", "source": data.source} | more))
    try:
        parts.append(strip(examples(), f"images of {data.name}"))
    except UnweaveError as error:  # the files of the data set may be gone
        parts.append(paragraph(f"No image can be shown: {error}"))
    return "".join(parts)


def _row(factor: Factor | Continuous) -> tuple[str, str, str, str]:
    if isinstance(factor, Continuous):
        return factor.name, f"{factor.low:g} to {factor.high:g}", "continuous", ""
    labels = factor.labels or ()
    cut = ", ..." if len(labels) > LABELS else ""
    return factor.name, f"{factor.size:,}", factor.kind, ", ".join(labels[:LABELS]) + cut
