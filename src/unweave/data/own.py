"""One's own data: arrays, or a folder of pictures and a table of factors.

Where the rows cover every combination of their factors, the data is a ground truth like any other. Where
they do not (combinations without an image, continuous factors, missing values, no factors at all), it is a
Collection; `abilities` says what can be done with it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.data.abilities import Ability, abilities
from unweave.data.cache import Progress
from unweave.data.collection import Collection, Continuous, as_ground_truth, binned, obstacle_to_grid
from unweave.data.columns import FactorTable, Kinds, read_factors
from unweave.data.folder import find_pictures, read_factor_table, read_pictures
from unweave.data.grid import Card, GroundTruth, Images
from unweave.errors import UnweaveError

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
    "from_folder",
]

SMALLEST = 4  # pixels; a smaller axis cannot be told from an axis of channels
CHUNK = 1024
SAMPLED = 256
LAYOUTS = "(n, h, w), (n, c, h, w) or (n, h, w, c) with c 1 or 3 and h, w at least 4"


def from_arrays(
    images: ArrayLike,
    factors: FactorTable | None = None,
    *,
    name: str = "own",
    names: Sequence[str] | None = None,
    kinds: Kinds | None = None,
    grid: bool = True,
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
    pixels = _channels_first(_as_array(images))
    _check_pixels(pixels)
    return _assemble(pixels, factors, name, names, kinds, grid, f"arrays {_pixel_mark(pixels)}")


def from_folder(
    folder: str | Path,
    table: str | Path | Mapping[str, Any] | pd.DataFrame | None = None,
    *,
    size: int = 64,
    channels: int | None = None,
    name: str | None = None,
    names: Sequence[str] | None = None,
    kinds: Kinds | None = None,
    grid: bool = True,
    progress: Progress | None = None,
) -> GroundTruth | Collection:
    """A data set of all pictures in a folder and below it, in the order of their paths.

    Pictures (PNG, JPEG, BMP, GIF: its first frame, WebP, TIFF) are decoded once and kept in the cache;
    others than size x size are resized with a Lanczos filter. `channels` is 1 or 3; if not given, 3 where
    any picture has colour.

    `table` is a .csv, .tsv or .parquet file, a dict of columns or a frame: a column `file` (or `filename`,
    `path`, `image`) with the path in the folder, and a column for each factor. If it is not given,
    factors.csv (.tsv, .parquet) in the folder is taken where there is one.
    `names`, `kinds`, `grid` as in `from_arrays`.
    """
    folder = Path(folder).expanduser()
    if not isinstance(size, int) or size < SMALLEST or channels not in (None, 1, 3):
        raise UnweaveError(
            f"size must be a whole number, {SMALLEST} or more, and channels 1 or 3; "
            f"got size = {size}, channels = {channels}."
        )
    files = find_pictures(folder)
    factors = read_factor_table(folder, files, table)
    pixels, mark = read_pictures(folder, files, size, channels, progress)
    name = name or re.sub(r"[^\w.-]+", "-", folder.resolve().name) or "own"
    return _assemble(pixels, factors, name, names, kinds, grid, f"folder {folder.resolve().name} {mark}")


def _assemble(
    pixels: NDArray[Any],
    table: FactorTable | None,
    name: str,
    names: Sequence[str] | None,
    kinds: Kinds | None,
    grid: bool,
    source: str,
) -> GroundTruth | Collection:
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise UnweaveError(f'a name is made of letters, digits, "_", "-" and "."; got "{name}".')
    factors, values = read_factors(table, len(pixels), names, kinds)
    values.flags.writeable = False
    _, channels, height, width = pixels.shape

    def look(rows: NDArray[np.int64]) -> Images:
        return _to_bytes(pixels[rows])

    collection = Collection(
        name=name,
        factors=factors,
        shape=(channels, height, width),
        values=values,
        look=look,
        card=Card(title=name, licence="your own data", citation=""),
        # The values are part of it: they decide which image stands where in a grid.
        source=f"{source}, factors {_digest([repr(factors).encode(), values.tobytes()])}",
        # Binary images are tabled in whole bytes.
        binary=pixels.dtype == np.bool_ and channels * height * width % 8 == 0,
    )
    return collection if not grid or obstacle_to_grid(collection) else as_ground_truth(collection)


def _as_array(images: ArrayLike) -> NDArray[Any]:
    if isinstance(images, np.memmap):
        return images
    try:
        return np.asarray(images)
    except ValueError as error:  # lists of different lengths
        raise UnweaveError(f"images must be {LAYOUTS}, all of one size; got a ragged list.") from error


def _channels_first(images: NDArray[Any]) -> NDArray[Any]:
    """A view of the images as (n, c, h, w)."""
    shape = images.shape
    if images.ndim == 3:
        view = images[:, None]
    elif images.ndim == 4 and shape[1] in (1, 3):
        view = images
    elif images.ndim == 4 and shape[3] in (1, 3):
        view = images.transpose(0, 3, 1, 2)
    else:
        raise UnweaveError(f"images must be {LAYOUTS}; got {shape}.")
    if not len(images):
        raise UnweaveError(f"there must be at least one image; got {shape}.")
    if min(view.shape[2:]) < SMALLEST:
        hint = " Is the axis of images missing?" if images.ndim == 3 else ""
        raise UnweaveError(f"images must be {LAYOUTS}; got {shape}.{hint}")
    return view


def _check_pixels(pixels: NDArray[Any]) -> None:
    kind = pixels.dtype.kind
    if pixels.dtype == np.uint8:
        # Two values, 0 and 1, would look all black and train without a word.
        if pixels[:CHUNK].max() == 1:
            raise UnweaveError(
                "images of uint8 are 0 to 255; these are 0 and 1. Pass images.astype(bool), or images * 255."
            )
    elif kind == "f":
        for start in range(0, len(pixels), CHUNK):
            _check_floats(pixels[start : start + CHUNK], start)
    elif kind != "b":
        raise UnweaveError(
            f"images must be uint8 (0 to 255), booleans, or floats in [0, 1]; got {pixels.dtype}."
        )


def _check_floats(pixels: NDArray[Any], start: int) -> None:
    low, high = float(pixels.min()), float(pixels.max())
    if np.isnan(low):
        row = start + int(np.flatnonzero(np.isnan(pixels).any(axis=(1, 2, 3)))[0])
        raise UnweaveError(f"images must not have missing pixels; image {row} has NaN.")
    if low < 0 or high > 1:
        raise UnweaveError(
            f"images of floats must lie in [0, 1]; these reach from {low:g} to {high:g}. "
            "Scale them, or pass uint8 images of 0 to 255."
        )


def _to_bytes(pixels: NDArray[Any]) -> Images:
    if pixels.dtype == np.bool_:
        return pixels * np.uint8(255)
    if pixels.dtype.kind == "f":
        return np.rint(pixels.astype(np.float32) * 255).astype(np.uint8)
    return np.ascontiguousarray(pixels, np.uint8)


def _pixel_mark(pixels: NDArray[Any]) -> str:
    """What tells these images from others: tables of a ground truth are cached under it."""
    head = f"{pixels.shape} {pixels.dtype.str}"
    path = getattr(pixels, "filename", None)
    if path is None:
        chunks = (pixels[start : start + CHUNK].tobytes() for start in range(0, len(pixels), CHUNK))
        return _digest(chain([head.encode()], chunks))
    # A memory map may be larger than memory and slow to read: the state of its file, and some of its rows.
    state = Path(path).stat()
    rows = np.linspace(0, len(pixels) - 1, min(SAMPLED, len(pixels))).astype(np.int64)
    head = f"{head} {path} {state.st_size} {state.st_mtime_ns}"
    return _digest([head.encode(), pixels[rows].tobytes()])


def _digest(parts: Iterable[bytes]) -> str:
    total = hashlib.blake2b(digest_size=8)
    for part in parts:
        total.update(part)
    return total.hexdigest()
