"""Glyphs: digits in twelve typefaces, a ground truth of classes and styles that needs no download.

The outlines in `glyph_outlines.json` are those of the fonts DejaVu 2.35 and STIX 1.0, which Matplotlib ships.
The rasteriser is our own: outlines are scaled and rotated in float64, snapped to 1/256 pixel and filled in
integer arithmetic. The images are therefore the same, bit for bit, on every machine.

The first factor is the class; all others are style. Positions are whole pixels apart, so each digit is drawn
once for each face, size and rotation, and is then copied to its place.
"""

from __future__ import annotations

import json
import math
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.compilation import compiled
from unweave.data.entry import Entry
from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.progress import Progress
from unweave.streams import Stream

# The closed contours of a glyph: (n, 3) whole numbers x, y and 1 for a point on the curve, else 0.
Contours: TypeAlias = tuple[NDArray[np.int64], ...]

NAME = "glyphs"
CENTRED_NAME = "glyphs_centred"
RULE = 1  # counts up when any pixel of a rendered image changes

SIDE = 64
SHAPE = (1, SIDE, SIDE)
CHARACTERS = tuple("0123456789")
FACES = (
    "sans", "sans bold", "sans oblique", "mono", "mono bold", "serif", "serif bold", "serif italic",
    "book", "book bold", "book italic", "book bold italic",
)  # fmt: skip
HEIGHTS = (20, 24, 28, 32, 36)  # of the digit 1, in pixels
ANGLES = tuple(-30 + 7.5 * k for k in range(9))  # in degrees, counter-clockwise
PLACES = tuple(25 + 2 * k for k in range(8))  # of the middle of the digit, in pixels

FACTORS = (
    Factor("character", len(CHARACTERS), "categorical", CHARACTERS),
    Factor("face", len(FACES), "categorical", FACES),
    Factor("size", len(HEIGHTS)),
    Factor("rotation", len(ANGLES)),
    Factor("x", len(PLACES)),
    Factor("y", len(PLACES)),
)
CENTRED_FACTORS = FACTORS[:4]

FRAME = 50  # side of the square in which every digit fits
UNIT = 256  # whole numbers stand for 1/256 pixel
PIECES = 8  # straight lines for each curve
SCANS = 16  # scan lines in each row of pixels

CARD = Card(
    title="Glyphs: digits in twelve typefaces",
    licence="CC0-1.0 (images), Apache-2.0 (the code that renders them); outlines: Bitstream Vera and OFL-1.1",
    citation=(
        "@software{unweave,\n"
        "  author = {{The unweave authors}},\n"
        "  title  = {unweave: learn, measure and compare disentangled representations},\n"
        f"  note   = {{Data set glyphs, rule {RULE}}},\n"
        "}"
    ),
    note="The class is the first factor, character; every other factor is style.",
)


def load(
    root: Path | None = None,  # noqa: ARG001  no file is needed
    *,
    check: bool = True,  # noqa: ARG001
    progress: Progress | None = None,  # noqa: ARG001
) -> GroundTruth:
    """Open the 345,600 images of digits, which are rendered on demand."""
    return GroundTruth(NAME, FACTORS, SHAPE, _render, CARD, f"rendered by unweave, glyphs rule {RULE}")


def load_centred(
    root: Path | None = None,  # noqa: ARG001  no file is needed
    *,
    check: bool = True,  # noqa: ARG001
    progress: Progress | None = None,  # noqa: ARG001
) -> GroundTruth:
    """Open the 5,400 images of digits in the middle of the image, which are rendered on demand."""
    source = f"rendered by unweave, glyphs rule {RULE}, centred"
    return GroundTruth(CENTRED_NAME, CENTRED_FACTORS, SHAPE, _render_centred, CARD, source)


ENTRY = Entry(NAME, FACTORS, 1, CARD, load)
# So few images could be memorised by what is fitted to their codes.
CENTRED = Entry(CENTRED_NAME, CENTRED_FACTORS, 1, CARD, load_centred, disjoint=True)


def _render(factors: Factors, _stream: Stream) -> Images:
    images = np.zeros((len(factors), SIDE, SIDE), np.uint8)
    corners = np.asarray(PLACES) - FRAME // 2
    _copy(np.ascontiguousarray(factors[:, :4]), bitmaps(), corners[factors[:, 4:]], images)
    return images.reshape(-1, *SHAPE)


def _render_centred(factors: Factors, _stream: Stream) -> Images:
    images = np.zeros((len(factors), SIDE, SIDE), np.uint8)
    corners = np.full((len(factors), 2), (SIDE - FRAME) // 2)
    _copy(np.ascontiguousarray(factors), bitmaps(), corners, images)
    return images.reshape(-1, *SHAPE)


@compiled()
def _copy(glyphs, bitmaps, corners, images):  # type: ignore[no-untyped-def]
    """Copy the bitmap of each glyph into its image; corners (n, 2) are its first column and row."""
    for i in range(len(glyphs)):
        bitmap = bitmaps[glyphs[i, 0], glyphs[i, 1], glyphs[i, 2], glyphs[i, 3]]
        left, top = corners[i, 0], corners[i, 1]
        for row in range(bitmap.shape[0]):
            for column in range(bitmap.shape[1]):
                images[i, top + row, left + column] = bitmap[row, column]


@cache
def bitmaps() -> NDArray[np.uint8]:
    """Every glyph in the middle of its frame: (10 characters, 12 faces, 5 sizes, 9 rotations, 50, 50)."""
    sizes = tuple(factor.size for factor in CENTRED_FACTORS)
    table = np.zeros((*sizes, FRAME, FRAME), np.uint8)
    for face, glyphs in enumerate(_outlines()):
        one = np.concatenate(glyphs[CHARACTERS.index("1")])[:, 1]
        for character, contours in enumerate(glyphs):
            lines = centred_lines(contours) / (one.max() - one.min())
            for size, height in enumerate(HEIGHTS):
                for rotation, angle in enumerate(ANGLES):
                    _fill(_placed(lines, height, angle), table[character, face, size, rotation])
    table.flags.writeable = False
    return table


def centred_lines(contours: Contours) -> NDArray[np.float64]:
    """Straight lines along the contours, (n, 2 ends, 2 coordinates), round the middle of the glyph.

    The middle is that of the box around the lines.
    """
    lines = np.concatenate([_contour_lines(contour) for contour in contours])
    ends = lines.reshape(-1, 2)
    return np.asarray(lines - (ends.min(axis=0) + ends.max(axis=0)) / 2)


def _contour_lines(contour: NDArray[np.int64]) -> NDArray[np.float64]:
    """Straight lines along one closed contour, all of them exact: coordinates are multiples of 1/128.

    A TrueType curve from a to b with the control point m is (1 - t)^2 a + 2 t (1 - t) m + t^2 b.
    """
    points, on_curve = _with_implied_points(contour)
    corners = [points[:1]]
    for i in np.flatnonzero(on_curve):
        a, m, b = points[i], points[(i + 1) % len(points)], points[(i + 2) % len(points)]
        if on_curve[(i + 1) % len(points)]:
            corners.append(m[None])
        else:
            t = np.arange(1, PIECES + 1)[:, None] / PIECES
            corners.append((1 - t) ** 2 * a + 2 * t * (1 - t) * m + t**2 * b)
    path = np.concatenate(corners)
    return np.stack([path[:-1], path[1:]], axis=1)


def _with_implied_points(contour: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """All points of a contour, (n, 2), and which are on the curve; the first one is.

    Between two control points, the curve passes through their middle, which the font leaves out.
    """
    points: list[tuple[float, float, bool]] = []
    for (x, y, on), (x_after, y_after, on_after) in zip(contour, np.roll(contour, -1, axis=0), strict=True):
        points.append((x, y, on == 1))
        if not on and not on_after:
            points.append(((x + x_after) / 2, (y + y_after) / 2, True))
    array = np.asarray(points, np.float64)
    array = np.roll(array, -int(np.argmax(array[:, 2])), axis=0)
    return array[:, :2], array[:, 2] == 1


def _placed(lines: NDArray[np.float64], height: int, angle: float) -> NDArray[np.int64]:
    """Lines in the frame, in units of 1/256 pixel, y down: (n, 4) columns x0, y0, x1, y1."""
    # Rounded, because C libraries do not agree on the last bit of a sine.
    sine, cosine = (round(f(math.radians(angle)), 12) for f in (math.sin, math.cos))
    x, y = lines[..., 0] * height, lines[..., 1] * height
    across, down = cosine * x - sine * y, -(sine * x + cosine * y)
    middle = FRAME // 2 * UNIT
    return (np.rint(np.stack([across, down], axis=-1) * UNIT).astype(np.int64) + middle).reshape(-1, 4)


@compiled()
def _fill(lines, bitmap):  # type: ignore[no-untyped-def]
    """Fill a bitmap with the share of each pixel inside the outline, 0 to 255, in integer arithmetic.

    A row of pixels has SCANS scan lines. Where a scan line crosses an edge, the winding number of all points
    to the right of the crossing changes by 1. A pixel's share is the mean of its scan lines.
    """
    rows, columns = bitmap.shape
    steps = np.zeros((rows, columns + 1), np.int64)
    gap = UNIT // SCANS
    for i in range(len(lines)):
        x0, y0, x1, y1 = lines[i]
        sign = 1
        if y0 > y1:
            x0, y0, x1, y1, sign = x1, y1, x0, y0, -1
        # Scan line s is at gap * s + gap / 2; an edge has those with y0 <= its place < y1.
        for s in range((y0 + gap // 2 - 1) // gap, (y1 + gap // 2 - 1) // gap):
            x = x0 + (gap * s + gap // 2 - y0) * (x1 - x0) // (y1 - y0)
            row, column = s // SCANS, x // UNIT
            part = x - column * UNIT
            steps[row, column] += sign * (UNIT - part)
            steps[row, column + 1] += sign * part
    for row in range(rows):
        share = 0
        for column in range(columns):
            share += steps[row, column]
            bitmap[row, column] = (255 * abs(share) + SCANS * UNIT // 2) // (SCANS * UNIT)


@cache
def _outlines() -> tuple[tuple[Contours, ...], ...]:
    """The contours of each face and character, in the units of the font."""
    text = resources.files(__package__).joinpath("glyph_outlines.json").read_text("utf-8")
    faces = json.loads(text)
    return tuple(
        tuple(tuple(np.asarray(flat, np.int64).reshape(-1, 3) for flat in glyph) for glyph in faces[face])
        for face in FACES
    )
