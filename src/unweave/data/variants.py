"""Ground truths made from ground truths: colour, noise, a painting behind, a factor hidden.

Colour, noise and Scream are the stochastic variants of dSprites in Locatello et al., "Challenging common
assumptions in the unsupervised learning of disentangled representations" (ICML 2019). They work on uint8,
on any ground truth with one channel, and what they draw for image i comes from row i of the stream.

The rules are plain data (Painted, Hidden), not closures, so that the same images can be made elsewhere: see
`origin`, and `unweave.training.batches`, which draws them on a GPU.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.compilation import compiled
from unweave.data.grid import Factors, GroundTruth, Images
from unweave.errors import UnweaveError
from unweave.streams import Stream

# The painting is shrunk to fit into this width and height before patches are cut from it.
SCREAM_BOX = (350, 274)


@dataclass(frozen=True)
class Colour:
    """Channel c is u_c x, u_c ~ U(0.5, 1)."""

    def on(self, images: Images, stream: Stream) -> Images:
        """(n, 1, h, w) images -> (n, 3, h, w) painted ones; row i of the stream paints image i."""
        shades = 0.5 + 0.5 * stream.child("colour").uniform(len(images), 3)
        return np.asarray(_tint(images, shades))


@dataclass(frozen=True)
class Noise:
    """min(x + u, 1), u ~ U(0, 1) per pixel and channel."""

    def on(self, images: Images, stream: Stream) -> Images:
        """(n, 1, h, w) images -> (n, 3, h, w) painted ones; row i of the stream paints image i."""
        height, width = images.shape[2:]
        noise = stream.child("noise").bytes(len(images), 3 * height * width)
        # x is 0 to 255 and so is the noise: the sum is cut at 255 by adding at most what is left.
        return images + np.minimum(noise.reshape(-1, 3, height, width), 255 - images)


@dataclass(frozen=True, eq=False)
class Scream:
    """(patch + u) / 2 with u ~ U(0, 1) per channel, 1 minus this where the sprite is."""

    picture: Images  # (3, H, W), larger than the images

    def on(self, images: Images, stream: Stream) -> Images:
        """(n, 1, h, w) images -> (n, 3, h, w) painted ones; row i of the stream paints image i."""
        n, _, height, width = images.shape
        tall, wide = self.picture.shape[1:]
        # The last offset is left out, as in the published data.
        corners = stream.child("offset").integers(n, (tall - height, wide - width))
        shifts = 255 * stream.child("shift").uniform(n, 3)
        return np.asarray(_put_before(images, self.picture, corners, shifts))


Paint: TypeAlias = Colour | Noise | Scream


@dataclass(frozen=True)
class Painted:
    """A rule that paints the images of another ground truth."""

    base: GroundTruth
    paint: Paint

    def __call__(self, factors: Factors, stream: Stream) -> Images:
        """Images of the base, painted."""
        return self.paint.on(self.base.render(factors, stream), stream)


@dataclass(frozen=True)
class Hidden:
    """A rule that draws some factors of another ground truth, and is given the rest."""

    base: GroundTruth
    names: tuple[str, ...]

    def __call__(self, factors: Factors, stream: Stream) -> Images:
        """Images of the base, of given and drawn factors."""
        whole = stream.child("hidden", *self.names).integers(len(factors), self.base.sizes)
        whole[:, ~self.base.mask(self.names)] = factors
        return self.base.render(whole, stream)


@dataclass(frozen=True)
class Origin:
    """What the images of a ground truth are made of: images of its base, drawn factors and a paint.

    `streams` are children of the stream that factors and images are drawn from, and factor j of the base is
    column `columns[j][1]` of stream `columns[j][0]`. Painting draws from ("observe", ...).
    """

    base: GroundTruth
    paint: Paint | None
    streams: tuple[tuple[str, ...], ...]
    columns: tuple[tuple[int, int], ...]


def colour(ground_truth: GroundTruth, name: str) -> GroundTruth:
    """The sprite takes a colour of its own in each image: channel c is u_c x, u_c ~ U(0.5, 1)."""
    return _painted(ground_truth, name, Colour(), "a random colour")


def noise(ground_truth: GroundTruth, name: str) -> GroundTruth:
    """Uniform noise in each channel of the background: min(x + u, 1), u ~ U(0, 1) per pixel and channel."""
    return _painted(ground_truth, name, Noise(), "uniform noise")


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
    paint = Scream(np.ascontiguousarray(picture.transpose(2, 0, 1)))
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
    """The same images with some factors hidden: their values are drawn at random for each image."""
    columns = ground_truth.mask(list(hidden))
    if columns.all() or not columns.any():
        raise UnweaveError(f"hide some of the factors of {ground_truth.name}, not {list(hidden)}.")
    if ground_truth.weight is not None:
        raise UnweaveError(f"hide factors of {ground_truth.name} first, then correlate or hold out.")
    shown = tuple(f for f, gone in zip(ground_truth.factors, columns, strict=True) if not gone)
    source = f"{ground_truth.source}; {', '.join(hidden)} hidden"
    render = Hidden(ground_truth, tuple(hidden))
    return replace(
        ground_truth,
        name=name,
        factors=shown,
        render=render,
        source=source,
        stochastic=True,
        reference=None,
    )


def origin(ground_truth: GroundTruth) -> Origin:
    """Follow variants back to the ground truth that they are made from: itself, if it is none."""
    base, rule = ground_truth, ground_truth.render
    paint: Paint | None = None
    streams: list[tuple[str, ...]] = [("factors",)]
    columns = [(0, j) for j in range(len(ground_truth.factors))]
    while isinstance(rule, Painted | Hidden):
        base = rule.base
        if isinstance(rule, Painted):
            paint = rule.paint  # the only one: paints are for one channel and give three
        else:
            base_columns = iter(columns)
            gone = base.mask(rule.names)
            columns = [(len(streams), j) if gone[j] else next(base_columns) for j in range(len(gone))]
            streams.append(("observe", "hidden", *rule.names))
        rule = base.render
    return Origin(base, paint, tuple(streams), tuple(columns))


def _painted(ground_truth: GroundTruth, name: str, paint: Paint, what: str) -> GroundTruth:
    if ground_truth.shape[0] != 1:
        raise UnweaveError(
            f"colour, noise and scream are for images with one channel; {ground_truth.name} has "
            f"{ground_truth.shape[0]}."
        )
    return replace(
        ground_truth,
        name=name,
        shape=(3, *ground_truth.shape[1:]),
        render=Painted(ground_truth, paint),
        source=f"{ground_truth.source}; {what}",
        stochastic=True,
        binary=False,
        reference=None,
    )


@compiled()
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


@compiled()
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
