"""A few labelled rows of a collection: the labels that `labels` gives to points of a grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unweave.data.collection import Collection, Continuous
from unweave.data.grid import Factor, Factors, GroundTruth, Images
from unweave.data.supervision.choices import whole_number
from unweave.data.supervision.labels import PERFECT, Chosen, Labelled, Labeller
from unweave.errors import UnweaveError
from unweave.streams import Stream

NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows (n,) of a collection, all different, and what a labeller says about them."""

    rows: NDArray[np.int64]
    points: Labelled


def labelled_rows(
    collection: Collection, n: int, seed: int | Stream, labeller: Labeller = PERFECT
) -> LabelledRows:
    """n different rows with labels, drawn from the rows whose labelled factors are known."""
    stream = Stream.of(seed).child("labelled")
    known = known_rows(collection, stream.child("labeller"), labeller)
    if whole_number(n, "the number of labelled images", 0) > len(known):
        raise UnweaveError(
            f"{collection.name} has {len(known):,} images whose labels are known; got labels = {n:,}. Set "
            f"labels to {len(known)} or less."
        )
    rows = known[stream.permutations(1, len(known))[0, :n]]
    return LabelledRows(rows, labels_of_rows(collection, rows, stream.child("labeller"), labeller))


def rows_of_run(collection: Collection, n: int, run: Stream, labeller: Labeller) -> LabelledRows:
    """The labelled rows that a run is trained on, from the stream of its seed."""
    return labelled_rows(collection, n, run.child("labelled points"), labeller)


def known_rows(collection: Collection, stream: Stream, labeller: Labeller) -> NDArray[np.int64]:
    """The rows in which every labelled factor is known."""
    names = labels_of_rows(collection, NO_ROWS, stream, labeller).names
    columns = [collection.position(name) for name in names]
    return np.flatnonzero(~np.isnan(collection.values[:, columns]).any(axis=1))


def labels_of_rows(
    collection: Collection, rows: NDArray[np.int64], stream: Stream, labeller: Labeller
) -> Labelled:
    """What a labeller says about rows whose labelled factors are known."""
    _refuse_continuous(collection, labeller)
    grid = _grid_of_labels(collection)
    columns = [collection.position(factor.name) for factor in grid.factors]
    # A labeller sees all factors and may use a part of them: an unknown one stands as 0 and is not used.
    values = np.nan_to_num(collection.values[rows][:, columns]).astype(np.int64)
    return labeller(grid, values, stream)


def _grid_of_labels(collection: Collection) -> GroundTruth:
    """The discrete factors of a collection as a grid, which is never rendered."""
    discrete = tuple(factor for factor in collection.factors if isinstance(factor, Factor))
    if not discrete:
        raise UnweaveError(f"{collection.name} has no factor with separate values, so it has no labels.")

    def render(_factors: Factors, _stream: Stream) -> Images:
        raise UnweaveError(f"{collection.name} has no full grid of factors, so no combination is rendered.")

    return GroundTruth(
        collection.name, discrete, collection.shape, render, collection.card, collection.source
    )


def _refuse_continuous(collection: Collection, labeller: Labeller) -> None:
    named = labeller.factors.split(",") if isinstance(labeller, Chosen) else []
    for factor in collection.factors:
        if isinstance(factor, Continuous) and factor.name in [name.strip() for name in named]:
            raise UnweaveError(
                f'"{factor.name}" of {collection.name} is continuous and cannot be a label. Bin it first, '
                f'with binned(collection, "{factor.name}").'
            )
