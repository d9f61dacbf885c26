"""Arrays of images as users have them: checked, put into one layout, brought to another size, identified."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.data.cache import Table, cached_table, content_digest, fingerprint
from unweave.data.grid import Images
from unweave.data.own.sizing import (
    PIXELS,
    Fit,
    HeightWidth,
    Size,
    chosen_size,
    description,
    fit_image,
    is_padding,
)
from unweave.errors import UnweaveError

CHUNK = 1024
SAMPLED = 256
LAYOUTS = "(n, h, w), (n, c, h, w) or (n, h, w, c) with c 1 or 3 and h, w at least 4"


class Pixels(NamedTuple):
    """Images (n, c, h, w) that become `size` by padding, if they are smaller; `sizing` says what was done."""

    pixels: NDArray[Any]
    size: HeightWidth
    fit: Fit
    sizing: str


def checked_pixels(images: ArrayLike) -> NDArray[Any]:
    """Images as (n, c, h, w), neither copied nor loaded, or a sentence that says what is wrong with them."""
    pixels = _channels_first(_as_array(images))
    _check_values(pixels)
    return pixels


def sized(pixels: NDArray[Any], mark: str, size: Size | None, fit: Fit | None) -> Pixels:
    """Images brought to a size; what is not just padded is made once and kept in the cache."""
    height, width = pixels.shape[2:]
    chosen, fit = chosen_size([(height, width)], size, fit)
    sizing = description([(height, width)], chosen, fit)
    if is_padding((height, width), chosen, fit):
        return Pixels(pixels, chosen, fit, sizing)

    def chunks() -> Iterator[Table]:
        for start in range(0, len(pixels), CHUNK):
            part = to_bytes(pixels[start : start + CHUNK])
            yield np.stack([fit_image(image, chosen, fit) for image in part])

    shape = (*pixels.shape[:2], *chosen)
    name = f"arrays-{mark}-{shape[1]}x{chosen[0]}x{chosen[1]}-{fit}"
    return Pixels(cached_table(name, shape, chunks), chosen, fit, sizing)


def to_bytes(pixels: NDArray[Any]) -> Images:
    """Booleans, floats in [0, 1] or bytes as uint8 from 0 to 255."""
    if pixels.dtype == np.bool_:
        return pixels * np.uint8(255)
    if pixels.dtype.kind == "f":
        return np.rint(pixels.astype(np.float32) * 255).astype(np.uint8)
    return np.ascontiguousarray(pixels, np.uint8)


def pixel_mark(pixels: NDArray[Any]) -> str:
    """What tells these images from others: tables of a ground truth are cached under it."""
    path = getattr(pixels, "filename", None)
    if path is None:
        return digest(_content(pixels))
    # A memory map may be larger than memory and slow to read: the state of its file, and some of its rows.
    state = Path(path).stat()
    rows = np.linspace(0, len(pixels) - 1, min(SAMPLED, len(pixels))).astype(np.int64)
    head = f"{_head(pixels)} {path} {state.st_size} {state.st_mtime_ns}"
    return digest([head.encode(), pixels[rows].tobytes()])


def file_mark(pixels: NDArray[Any], path: Path) -> str:
    """The same mark as of these images in memory; computed once as long as their file does not change."""
    state = path.stat()
    key = fingerprint(f"{path.resolve()} {state.st_size} {state.st_mtime_ns} {_head(pixels)}")
    return content_digest(f"file-{key}", lambda: _content(pixels))


def digest(parts: Iterable[bytes]) -> str:
    """A fingerprint of bytes, 16 hexadecimal digits."""
    total = hashlib.blake2b(digest_size=8)
    for part in parts:
        total.update(part)
    return total.hexdigest()


def _content(pixels: NDArray[Any]) -> Iterable[bytes]:
    chunks = (pixels[start : start + CHUNK].tobytes() for start in range(0, len(pixels), CHUNK))
    return chain([_head(pixels).encode()], chunks)


def _head(pixels: NDArray[Any]) -> str:
    return f"{pixels.shape} {pixels.dtype.str}"


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
    if min(view.shape[2:]) < PIXELS:
        hint = " Is the axis of images missing?" if images.ndim == 3 else ""
        raise UnweaveError(f"images must be {LAYOUTS}; got {shape}.{hint}")
    return view


def _check_values(pixels: NDArray[Any]) -> None:
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
