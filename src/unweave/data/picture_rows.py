"""Data sets of many small picture files: decoded once into a table, as a grid or as a collection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unweave.data.cache import Table, cached_table, content_digest, fingerprint, table_render
from unweave.data.collection import Collection, Continuous
from unweave.data.grid import Card, Factor, GroundTruth, Images
from unweave.data.own.folder import read_pictures
from unweave.data.own.pixels import digest
from unweave.data.own.sizing import Fit
from unweave.errors import MissingFileError
from unweave.progress import Progress

SIDE = 64
CHUNK = 256


class Decoded(NamedTuple):
    """Images (n, c, h, w), one row a file, and what a run records of them."""

    table: Table
    source: str


def decoded_pictures(
    name: str, folder: Path, files: Sequence[str], fit: Fit = "resize", progress: Progress | None = None
) -> Decoded:
    """Colour pictures of a folder in the order of `files`, brought to 64 x 64 pixels."""
    missing = [file for file in files if not (folder / file).is_file()]
    if missing:
        raise MissingFileError(
            f"{name} needs {len(files):,} pictures in {folder}; {len(missing):,} are missing, the first is "
            f"{missing[0]}. Unpack the official archive again."
        )
    pictures = read_pictures(folder, files, SIDE, fit, 3, progress)
    return Decoded(pictures.pixels, _source(len(files), pictures.digest, pictures.sizing))


def decoded_rows(
    mark: str,
    files: Sequence[str],
    shape: tuple[int, int, int],
    read: Callable[[str], Images],
    progress: Progress | None = None,
) -> Decoded:
    """What `read` makes of each file, (n, c, h, w); `mark` changes when a file changes."""

    def chunks() -> Iterator[Table]:
        for start in range(0, len(files), CHUNK):
            yield np.stack([read(file) for file in files[start : start + CHUNK]])

    name = f"rows-{fingerprint(mark)}"
    table = cached_table(name, (len(files), *shape), chunks, progress)
    content = content_digest(
        name, lambda: (table[i : i + CHUNK].tobytes() for i in range(0, len(table), CHUNK))
    )
    return Decoded(table, _source(len(files), content))


def grid_of(name: str, factors: tuple[Factor, ...], decoded: Decoded, card: Card) -> GroundTruth:
    """The ground truth of images in grid order."""
    sizes, (channels, height, width) = tuple(factor.size for factor in factors), decoded.table.shape[1:]
    shape = (channels, height, width)
    render = table_render(decoded.table, sizes, shape, packed=False)
    return GroundTruth(name, factors, shape, render, card, decoded.source)


def collection_of(
    name: str,
    factors: tuple[Factor | Continuous, ...],
    decoded: Decoded,
    values: NDArray[np.float64],
    card: Card,
) -> Collection:
    """The collection of images and their (n, k) values."""
    table, (channels, height, width) = decoded.table, decoded.table.shape[1:]
    values.flags.writeable = False

    def look(rows: NDArray[np.int64]) -> Images:
        return np.asarray(table[rows])

    # The values are part of it: the same pictures under other names are other data.
    source = f"{decoded.source}, factors {digest([values.tobytes()])}"
    return Collection(name, factors, (channels, height, width), values, look, card, source)


def _source(count: int, content: str, sizing: str = "") -> str:
    return f"{count} pictures {content}{f' ({sizing})' if sizing else ''}"
