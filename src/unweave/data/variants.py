"""Ground truths made from ground truths: colour, noise, a painting behind, a factor hidden.

Colour, noise and Scream are the stochastic variants of dSprites in Locatello et al., "Challenging common
assumptions in the unsupervised learning of disentangled representations" (ICML 2019). They work on uint8,
on any ground truth with one channel, and what they draw for image i comes from row i of the stream.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unweave.data.grid import Factors, GroundTruth, Images
from unweave.errors import UnweaveError
from unweave.streams import Stream

# The painting is shrunk to fit into this width and height before patches are cut from it.
SCREAM_BOX = (350, 274)

# (n, 1, h, w) images and their stream -> (n, 3, h, w) images.
Paint = Callable[[Images, Stream], Images]


def colour(ground_truth: GroundTruth, name: str) -> GroundTruth:
    """The sprite takes a colour of its own in each image: channel c is u_c x, u_c ~ U(0.5, 1)."""

    def paint(images: Images, stream: Stream) -> Images:
        shades = 0.5 + 0.5 * stream.child("colour").uniform(len(images), 3)
        return np.asarray(_tint(images, shades))

    return _painted(ground_truth, name, paint, "a random colour")


def noise(ground_truth: GroundTruth, name: str) -> GroundTruth:
    """Uniform noise in each channel of the background: min(x + u, 1), u ~ U(0, 1) per pixel and channel."""

    def paint(images: Images, stream: Stream) -> Images:
        height, width = images.shape[2:]
        noise = stream.child("noise").bytes(len(images), 3 * height * width)
        # x is 0 to 255 and so is the noise: the sum is cut at 255 by adding at most what is left.
        return images + np.minimum(noise.reshape(-1, 3, height, width), 255 - images)

    return _painted(ground_truth, name, paint, "uniform noise")


def scream(ground_truth: GroundTruth, name: str, picture: NDArray[np.uint8], source: str) -> GroundTruth:
    """A random patch of a painting behind the sprite, and its negative where the sprite is.

    background = (patch + u) / 2 with u ~ U(0, 1) per channel; 1 - background where the sprite is.
    `picture` is (H, W, 3) uint8, larger than the images.
    """
    height, width = ground_truth.shape[1:]
    tall, wide = picture.shape[:2]
    if picture.ndim != 3 or picture.shape[2] != 3 or tall <= height or wide <= width:
        raise UnweaveError(
            f"the picture must be (H, W, 3), larger than {height}x{width}; got {picture.shape}. "
            "Use a larger picture."
        )
    channels = np.ascontiguousarray(picture.transpose(2, 0, 1))

    def paint(images: Images, stream: Stream) -> Images:
        n = len(images)
        # The last offset is left out, as in the published data.
        corners = stream.child("offset").integers(n, (tall - height, wide - width))
        shifts = 255 * stream.child("shift").uniform(n, 3)
        return np.asarray(_put_before(images, channels, corners, shifts))

    return _painted(ground_truth, name, paint, source)


def read_picture(path: Path) -> tuple[NDArray[np.uint8], str]:
    """A painting from a file, shrunk to fit SCREAM_BOX: (H, W, 3) uint8, and its source for the record."""
    from PIL import Image, UnidentifiedImageError

    try:
        data = path.read_bytes()
        with Image.open(path) as file:
            picture = file.convert("RGB")
    except (UnidentifiedImageError, OSError) as error:
        raise UnweaveError(
            f"{path} cannot be read as a picture ({error}). Put a JPEG or PNG file of the painting there."
        ) from error
    shrink = max(picture.width / SCREAM_BOX[0], picture.height / SCREAM_BOX[1], 1.0)
    size = (round(picture.width / shrink), round(picture.height / shrink))
    shrunk = picture.resize(size, Image.Resampling.BICUBIC)
    return np.asarray(shrunk), f"{path.name} (sha256:{hashlib.sha256(data).hexdigest()})"


def hide(ground_truth: GroundTruth, hidden: Sequence[str], name: str) -> GroundTruth:
    """The same images with some factors no longer given: their values are drawn anew on each look."""
    columns = ground_truth.mask(list(hidden))
    if columns.all() or not columns.any():
        raise UnweaveError(f"hide some of the factors of {ground_truth.name}, not {list(hidden)}.")
    if ground_truth.weight is not None:
        raise UnweaveError(f"hide factors of {ground_truth.name} first, then correlate or hold out.")

    def render(factors: Factors, stream: Stream) -> Images:
        whole = stream.child("hidden", *hidden).integers(len(factors), ground_truth.sizes)
        whole[:, ~columns] = factors
        return ground_truth.render(whole, stream)

    shown = tuple(f for f, gone in zip(ground_truth.factors, columns, strict=True) if not gone)
    source = f"{ground_truth.source}; {', '.join(hidden)} hidden"
    return replace(ground_truth, name=name, factors=shown, render=render, source=source, stochastic=True)


def _painted(ground_truth: GroundTruth, name: str, paint: Paint, what: str) -> GroundTruth:
    if ground_truth.shape[0] != 1:
        raise UnweaveError(
            f"colour, noise and scream are for images with one channel; {ground_truth.name} has "
            f"{ground_truth.shape[0]}."
        )

    def render(factors: Factors, stream: Stream) -> Images:
        return paint(ground_truth.render(factors, stream), stream)

    return replace(
        ground_truth,
        name=name,
        shape=(3, *ground_truth.shape[1:]),
        render=render,
        source=f"{ground_truth.source}; {what}",
        stochastic=True,
        binary=False,
    )


@njit(cache=True)
def _tint(images, shades):  # type: ignore[no-untyped-def]
    """(n, 3, h, w): each image times its shade of each channel."""
    n, _, height, width = images.shape
    out = np.empty((n, 3, height, width), np.uint8)
    for i in range(n):
        for c in range(3):
            for y in range(height):
                for x in range(width):
                    out[i, c, y, x] = np.uint8(shades[i, c] * images[i, 0, y, x] + 0.5)
    return out


@njit(cache=True)
def _put_before(images, picture, corners, shifts):  # type: ignore[no-untyped-def]
    """(n, 3, h, w): the patch of the picture with its corner there, shifted; negative where a sprite is."""
    n, _, height, width = images.shape
    out = np.empty((n, 3, height, width), np.uint8)
    for i in range(n):
        top, left = corners[i]
        for c in range(3):
            for y in range(height):
                for x in range(width):
                    behind = np.uint8((picture[c, top + y, left + x] + shifts[i, c]) / 2 + 0.5)
                    out[i, c, y, x] = 255 - behind if images[i, 0, y, x] > 127 else behind
    return out
