"""Images and factors in a NumPy file: .npz with named arrays, or .npy with images alone.

An .npz file has the images as `images` or `imgs`. Its factors are one array (n, k), `factors` or, as in the
official dSprites file, `latents_values` or `latents_classes`, with their names in `names` or `factor_names`;
or any number of arrays (n,), one for each factor, under its name. Nothing is unpickled.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from unweave.errors import MissingFileError, UnweaveError

SUFFIXES = (".npz", ".npy")
IMAGES = ("images", "imgs")
FACTORS = ("factors", "latents_values", "latents_classes")
NAMES = ("names", "factor_names")


class Arrays(NamedTuple):
    """Images, their factors as a matrix or as named columns, and the names of a matrix's columns."""

    images: NDArray[Any]
    factors: NDArray[Any] | dict[str, NDArray[Any]] | None = None
    names: tuple[str, ...] | None = None


def read_arrays(path: Path) -> Arrays:
    """What an .npz or .npy file holds; the images of an .npy file are not loaded but memory-mapped."""
    if not path.is_file():
        raise MissingFileError(f"there is no file {path}.")
    with _explained(path):
        if path.suffix.lower() == ".npy":
            return Arrays(np.load(path, mmap_mode="r", allow_pickle=False))
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            return _from_archive(path, stored) if isinstance(stored, NpzFile) else Arrays(stored)


def _from_archive(path: Path, stored: Any) -> Arrays:
    held = list(stored)
    images = _first(IMAGES, held)
    if images is None:
        raise UnweaveError(
            f"{path} must hold the images as an array {' or '.join(IMAGES)}; it holds "
            f"{', '.join(held) or 'nothing'}. Write it by numpy.savez(path, images=..., factors=...)."
        )
    pixels = _read(path, stored, images)
    if (matrix := _first(FACTORS, held)) is not None:
        named = _first(NAMES, held)
        names = None if named is None else tuple(map(str, _read(path, stored, named).ravel()))
        return Arrays(pixels, _read(path, stored, matrix), names)
    columns = {name: _read(path, stored, name) for name in held if name != images}
    for name, column in columns.items():
        if column.shape != pixels.shape[:1]:
            raise UnweaveError(
                f'{path}: "{name}" must be of shape ({len(pixels)},), one value for each image, to be a '
                f"factor; got {column.shape}. Put a table of several factors under the name factors."
            )
    return Arrays(pixels, columns or None)


def _first(names: tuple[str, ...], held: list[str]) -> str | None:
    return next((name for name in names if name in held), None)


def _read(path: Path, stored: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(stored[name])
    except ValueError as error:
        if "pickle" not in str(error):
            raise
        raise UnweaveError(
            f'"{name}" in {path} holds Python objects, which are never loaded. Save it as an array of '
            "numbers, or of words: numpy.array(words, dtype=str)."
        ) from error


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn the ways in which a damaged file fails into one sentence."""
    try:
        yield
    except UnweaveError:
        raise
    # A damaged archive may also ask for a password (RuntimeError) or an unknown compression.
    except (ValueError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        reason = "it is damaged, or holds something else" if "allow_pickle" in str(error) else error
        raise UnweaveError(
            f"cannot read {path} as arrays saved by numpy.savez or numpy.save: {reason}."
        ) from error
