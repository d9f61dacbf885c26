"""A user's data: arrays, a file of arrays, or a folder of pictures and a table of factors.

Where the rows cover every combination of their factors, the data is a ground truth like any other. Where
they do not (combinations without an image, continuous factors, missing values, no factors at all), it is a
Collection; `abilities` says what can be done with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.data.catalogue import CATALOGUE
from unweave.data.collection import Collection, Continuous, as_ground_truth, binned, obstacle_to_grid
from unweave.data.grid import Card, GroundTruth, Images
from unweave.data.own.abilities import Ability, abilities
from unweave.data.own.array_file import read_arrays
from unweave.data.own.columns import FactorTable, Kinds, read_factors
from unweave.data.own.folder import find_pictures, read_factor_table, read_pictures
from unweave.data.own.pixels import Pixels, checked_pixels, digest, file_mark, pixel_mark, sized, to_bytes
from unweave.data.own.reference import Reference, ReferenceKind
from unweave.data.own.sizing import Fit, Size, check_size, padded
from unweave.errors import UnweaveError
from unweave.progress import Progress

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Ability",
    "Collection",
    "Continuous",
    "abilities",
    "as_ground_truth",
    "binned",
    "from_arrays",
    "from_file",
    "from_folder",
]


def from_arrays(
    images: ArrayLike,
    factors: FactorTable | None = None,
    *,
    name: str = "own",
    names: Sequence[str] | None = None,
    kinds: Kinds | None = None,
    grid: bool = True,
    size: Size | None = None,
    fit: Fit | None = None,
) -> GroundTruth | Collection:
    """A data set of n images and, if known, their factors.

    Parameters
    ----------
    images
        (n, h, w), (n, c, h, w) or (n, h, w, c), c 1 or 3: uint8, booleans, or floats in [0, 1]. They are
        neither copied nor loaded as a whole (a memory map stays one), so do not change them afterwards.
    factors
        (n, k) numbers or words, a dict of columns or a data frame; NaN, None and "" are missing values.
    name
        The name of the data set.
    names
        The names of the columns of an array; with a dict or a frame, the columns to take.
    kinds
        "categorical", "ordinal", "circular" or "continuous" for some columns by name, or for all in order.
        Otherwise words are categorical; numbers are ordinal if they are whole or if each value occurs in
        two rows or more on average, and continuous if not.
    grid
        False keeps the rows as a Collection even where they cover the full grid.
    size
        The height and width to bring images to: a number, (height, width), or "auto" for a size that the
        convolutional networks take (see docs/data/own.md). None leaves them as they are.
    fit
        How: "resize" (Lanczos filter, the default), "pad" (in the middle of black; larger images are shrunk
        first, keeping their proportions; the default of "auto") or "crop" (scaled, then cut to the middle).

    Returns
    -------
    A GroundTruth if every factor is known and discrete and each combination of values has an image, else a
    Collection.

    >>> images = np.zeros((6, 8, 8), np.uint8)
    >>> from_arrays(images, {"shape": ["disc", "box"] * 3, "x": [0, 0, 1, 1, 2, 2]}).sizes
    (2, 3)
    >>> type(from_arrays(images[:5], {"x": [0, 0.1, 0.25, 0.3, np.nan]})).__name__
    'Collection'
    """
    pixels = checked_pixels(images)
    mark = pixel_mark(pixels)
    made = sized(pixels, mark, size, fit)
    return _assemble(made, factors, _Table(name, names, kinds, grid), _source("arrays", mark, made.sizing))


def from_file(
    path: str | Path,
    *,
    name: str | None = None,
    names: Sequence[str] | None = None,
    kinds: Kinds | None = None,
    grid: bool = True,
    size: Size | None = None,
    fit: Fit | None = None,
) -> GroundTruth | Collection:
    """A data set of the arrays in an .npz file, or of the images in an .npy file.

    An .npz file holds `images` (or `imgs`) and, if known, their factors: one array (n, k) `factors` with
    names in `names`, or an array (n,) for each factor under its name. The other options are those of
    `from_arrays`. A run remembers the file and opens it again.
    """
    path = Path(path).expanduser()
    stored = read_arrays(path)
    pixels = checked_pixels(stored.images)
    mark = file_mark(pixels, path)
    made = sized(pixels, mark, size, fit)
    if names is None and not isinstance(stored.factors, dict):
        names = stored.names
    table = _Table(name or _name_of(path.with_suffix("")), names, kinds, grid)
    data = _assemble(made, stored.factors, table, _source("arrays", mark, made.sizing))
    return replace(data, reference=_reference("file", path, data, made.fit, table))


def from_folder(
    folder: str | Path,
    table: str | Path | Mapping[str, Any] | pd.DataFrame | None = None,
    *,
    size: Size = 64,
    fit: Fit | None = None,
    channels: int | None = None,
    name: str | None = None,
    names: Sequence[str] | None = None,
    kinds: Kinds | None = None,
    grid: bool = True,
    progress: Progress | None = None,
) -> GroundTruth | Collection:
    """A data set of all pictures in a folder and below it, in the order of their paths.

    Pictures (PNG, JPEG, BMP, GIF: its first frame, WebP, TIFF) are decoded once and kept in the cache;
    others than size x size are resized with a Lanczos filter, or brought to the size as `fit` says.
    `channels` is 1 or 3; if not given, 3 where any picture has colour.

    `table` is a .csv, .tsv, .parquet or .jsonl file, a dict of columns or a frame: a column `file` (or
    `filename`, `path`, `image`) with the path in the folder, and a column for each factor. If it is not
    given, factors.csv (.tsv, .parquet, .jsonl) in the folder is taken where there is one.
    `names`, `kinds`, `grid`, `size`, `fit` as in `from_arrays`. Unless the table is an object in memory, a
    run remembers the folder and opens it again.
    """
    folder = Path(folder).expanduser()
    check_size(size, fit)
    if size is None or channels not in (None, 1, 3):
        raise UnweaveError(
            f"pictures need one size for all of them, and 1 or 3 channels; got size = {size}, channels = "
            f"{channels}."
        )
    files = find_pictures(folder)
    factors = read_factor_table(folder, files, table)
    made = read_pictures(folder, files, size, fit, channels, progress)
    pixels = Pixels(made.pixels, made.pixels.shape[2:], made.fit, made.sizing)
    options = _Table(name or _name_of(folder), names, kinds, grid)
    data = _assemble(pixels, factors, options, _source("pictures", made.digest, made.sizing))
    if table is None or isinstance(table, str | Path):
        data = replace(data, reference=_reference("folder", folder, data, made.fit, options, table))
    return data


@dataclass(frozen=True)
class _Table:
    """How a table of factors is read, and what the data set is called."""

    name: str
    names: Sequence[str] | None
    kinds: Kinds | None
    grid: bool


def _source(what: str, mark: str, sizing: str) -> str:
    return f"{what} {mark}{f' ({sizing})' if sizing else ''}"


def _name_of(path: Path) -> str:
    """A name for the data in a folder or file; never that of a data set of the catalogue."""
    name = re.sub(r"[^\w.-]+", "-", path.resolve().name).lstrip(".-") or "own"
    return f"own-{name}" if name in [entry.name for entry in CATALOGUE] else name


def _reference(
    kind: ReferenceKind,
    path: Path,
    data: GroundTruth | Collection,
    fit: Fit,
    options: _Table,
    table: str | Path | None = None,
) -> Reference:
    place = path.resolve()
    if table is not None:
        table = Path(table).expanduser().resolve()
        table = table.relative_to(place) if table.is_relative_to(place) else table
    kinds = options.kinds
    if kinds is not None and not isinstance(kinds, Mapping):
        kinds = dict(zip([factor.name for factor in data.factors], kinds, strict=True))
    return Reference(
        kind=kind,
        path=str(place),
        name=data.name,
        size=data.shape[1:],
        fit=fit,
        channels=data.shape[0],
        source=data.source,
        table=None if table is None else str(table),
        names=None if options.names is None else tuple(options.names),
        kinds=None if kinds is None else tuple(kinds.items()),
        grid=options.grid,
    )


def _assemble(
    images: Pixels, table: FactorTable | None, options: _Table, source: str
) -> GroundTruth | Collection:
    name, pixels = options.name, images.pixels
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise UnweaveError(f'a name is made of letters, digits, "_", "-" and "."; got "{name}".')
    factors, values = read_factors(table, len(pixels), options.names, options.kinds)
    values.flags.writeable = False
    shape = (pixels.shape[1], *images.size)

    def look(rows: NDArray[np.int64]) -> Images:
        return padded(to_bytes(pixels[rows]), images.size)

    note = f"Image size: {images.sizing}." if images.sizing else ""
    collection = Collection(
        name=name,
        factors=factors,
        shape=shape,
        values=values,
        look=look,
        card=Card(title=name, licence="your own data", citation="", note=note),
        # The values are part of it: they decide which image stands where in a grid.
        source=f"{source}, factors {digest([repr(factors).encode(), values.tobytes()])}",
        # Binary images are tabled in whole bytes.
        binary=pixels.dtype == np.bool_ and int(np.prod(shape)) % 8 == 0,
    )
    return collection if not options.grid or obstacle_to_grid(collection) else as_ground_truth(collection)
