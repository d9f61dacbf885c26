"""Rooms with real-valued factors: any hue, scale and azimuth, for metrics of continuous factors.

The scene is that of `rooms`; there are no grids, so the data set is a collection of images whose factors are
drawn uniformly. Each image has a geometry of its own, so rendering takes about 0.1 s an image, where the grid
of `rooms` shares 480 geometries. Rendered images are kept in memory.
"""

from __future__ import annotations

import colorsys
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unweave.data.collection import Collection, Continuous
from unweave.data.grid import Factor, Images
from unweave.data.sets.rooms import (
    AZIMUTHS,
    CARD,
    LIGHT_COLOUR,
    ONE,
    RULE,
    SATURATION,
    SCALES,
    SHAPES,
    SIZE,
    geometry_maps,
)
from unweave.errors import UnweaveError
from unweave.streams import Stream

NAME = "rooms_continuous"
FACTORS: tuple[Factor | Continuous, ...] = (
    Continuous("floor_hue", 0.0, 1.0),
    Continuous("wall_hue", 0.0, 1.0),
    Continuous("object_hue", 0.0, 1.0),
    Continuous("scale", SCALES[0], SCALES[-1]),
    Factor("shape", len(SHAPES), "categorical", SHAPES),
    Continuous("azimuth", AZIMUTHS[0], AZIMUTHS[-1]),
)


def rooms_continuous(images: int = 1000, seed: int | Stream = 0) -> Collection:
    """Return a collection of rooms with real-valued factors, drawn uniformly and rendered on demand.

    Hues lie in 0 to 1 and are circular with period 1; the scale lies in 0.75 to 1.25 and the azimuth in -30
    to 30 degrees; the shape is one of four. A larger number of images adds images and changes none.

    >>> rooms = rooms_continuous(3)
    >>> rooms.images_at([0, 2]).shape, [factor.name for factor in rooms.factors][3:]
    ((2, 3, 64, 64), ['scale', 'shape', 'azimuth'])
    """
    if isinstance(images, bool) or not isinstance(images, int) or images < 1:
        raise UnweaveError(f"`images` must be a whole number, 1 or more; got {images!r}.")
    values = _drawn_values(images, Stream.of(seed).child(NAME))
    rendered: dict[int, Images] = {}

    def look(rows: NDArray[np.int64]) -> Images:
        for row in rows.tolist():
            if row not in rendered:
                rendered[row] = render(values[row])
        return np.stack([rendered[row] for row in rows.tolist()])

    return Collection(
        name=NAME,
        factors=FACTORS,
        shape=(3, SIZE, SIZE),
        values=values,
        look=look,
        card=replace(CARD, title="Rooms with real-valued factors"),
        source=f"rendered by unweave, rooms rule {RULE}, {images} images with real-valued factors",
    )


def render(values: NDArray[np.float64]) -> Images:
    """Return the image (3, 64, 64) of one row of factors, in the order of `FACTORS`.

    For factors of the grid of `rooms` it is the same image.
    """
    *hues, scale, shape, azimuth = (float(value) for value in values)
    shares = geometry_maps(azimuth, SHAPES[int(shape)], scale).astype(np.float64)
    colours = np.array([*(_colour(hue) for hue in hues), LIGHT_COLOUR], np.float64)
    levels = np.einsum("mp,mc->cp", shares, colours) / ONE + 0.5
    return np.asarray(levels, np.uint8).reshape(3, SIZE, SIZE)


def _colour(hue: float) -> list[int]:
    return [round(255 * channel) for channel in colorsys.hsv_to_rgb(hue % 1.0, SATURATION, 1.0)]


def _drawn_values(images: int, stream: Stream) -> NDArray[np.float64]:
    shares = stream.child("factors").uniform(images, len(FACTORS))
    shapes = stream.child("shape").integers(images, [len(SHAPES)])[:, 0]
    columns = [
        shapes.astype(np.float64)
        if isinstance(factor, Factor)
        else factor.low + (factor.high - factor.low) * shares[:, j]
        for j, factor in enumerate(FACTORS)
    ]
    return np.stack(columns, axis=1)
