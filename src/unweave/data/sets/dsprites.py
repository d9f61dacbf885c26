"""dSprites: 737,280 binary images of one sprite, from five factors.

Matthey, Higgins, Hassabis, Lerchner: "dSprites: Disentanglement testing Sprites dataset" (2017).

No file is needed: the images are drawn as the original ones were. A sprite is a polygon; its corners are
scaled, turned and moved in float32, snapped to 1/256 pixel as graphics hardware does, and a pixel is set
if and only if its centre is inside the polygon (left and bottom edges count as inside, no smoothing). Of
46,080 original images this rule gives all but two bit for bit; the two differ in one pixel each. Where
the user has the original file, it is checked and used instead.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unweave.compilation import compiled
from unweave.data.cache import cached_table, fingerprint, table_render
from unweave.data.entry import Entry
from unweave.data.files import OfficialFile, describe, find
from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.data.npz import Member
from unweave.errors import UnweaveError
from unweave.progress import Progress
from unweave.streams import Stream

NAME = "dsprites"
RULE = 1  # counts up when any pixel of a rendered image changes
SIDE = 64
SHAPE = (1, SIDE, SIDE)
FACTORS = (
    Factor("shape", 3, "categorical", ("square", "ellipse", "heart")),
    Factor("scale", 6, "ordinal"),
    Factor("orientation", 40, "circular", period=39),
    Factor("x", 32, "ordinal"),
    Factor("y", 32, "ordinal"),
)
SIZES = tuple(factor.size for factor in FACTORS)

FOLDERS = ("dsprites",)
FILES = (
    OfficialFile(
        "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
        "git:d98996d3f8ee1550e06b9d4ed78d0beb478910d5",
        urls=(
            "https://github.com/google-deepmind/dsprites-dataset/raw/master/"
            "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
        ),
    ),
)
CARD = Card(
    title="dSprites",
    licence="Apache-2.0 (original file); images rendered by unweave are CC0",
    homepage="https://github.com/google-deepmind/dsprites-dataset",
    citation="""@misc{dsprites17,
  author = {Loic Matthey and Irina Higgins and Demis Hassabis and Alexander Lerchner},
  title = {dSprites: Disentanglement testing Sprites dataset},
  howpublished = {https://github.com/deepmind/dsprites-dataset/},
  year = {2017}
}""",
    note=(
        "Orientations 0 and 39 are the same image. A square looks almost the same after a quarter turn "
        "(9.75 values) and an ellipse after half a turn (19.5), so orientation is hard to tell."
    ),
)


def load(root: Path, *, check: bool = True, progress: Progress | None = None) -> GroundTruth:
    """The original images where the official file is under root, else the rendered ones."""
    path = find(root, FOLDERS, [FILES[0].name])
    return rendered() if path is None else from_file(path, check=check, progress=progress)


ENTRY = Entry(NAME, FACTORS, 1, CARD, load, FILES, FOLDERS)


def rendered() -> GroundTruth:
    """DSprites drawn on demand; 1.2 seconds for all 737,280 images on one core."""
    return GroundTruth(
        NAME, FACTORS, SHAPE, _render, CARD, f"rendered by unweave, dsprites rule {RULE}", binary=True
    )


def from_file(path: Path, *, check: bool = True, progress: Progress | None = None) -> GroundTruth:
    """DSprites from the official .npz file, unpacked once into a table of bits (377 MB) in the cache."""
    source = describe(path, FILES[0], check)
    member = Member(path, "imgs")
    if member.shape != (math.prod(SIZES), SIDE, SIDE) or member.dtype != np.uint8:
        raise UnweaveError(
            f"{path} should hold imgs of shape (737280, 64, 64) in uint8; got {member.shape} in "
            f"{member.dtype}. Delete it to use rendered images."
        )
    table = cached_table(
        f"{NAME}-{fingerprint(source)}",
        (member.shape[0], SIDE * SIDE // 8),
        lambda: (np.packbits(rows.reshape(len(rows), -1) > 0, axis=1) for rows in member.chunks(2)),
        progress,
    )
    render = table_render(table, SIZES, SHAPE, packed=True)
    return GroundTruth(NAME, FACTORS, SHAPE, render, CARD, source, binary=True)


def _render(factors: Factors, _stream: Stream) -> Images:
    rows = np.zeros((len(factors), SIDE), np.uint64)
    _draw(factors, _OUTLINES, _CORNERS, _COSINES, _SINES, _CENTRES, rows)
    bits = np.unpackbits(rows.astype(">u8").view(np.uint8), axis=1)
    return (bits * np.uint8(255)).reshape(len(factors), *SHAPE)


def _scaled_outlines() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Corners of each (shape, scale) round the origin, y down: (3, 6, 150, 2), and how many there are."""
    square = np.array([(-9.6, -9.6), (9.6, -9.6), (9.6, 9.6), (-9.6, 9.6)])
    t = np.arange(100) * (2 * np.pi / 100)
    ellipse = np.stack([9.6 * 1.33 * np.cos(t), 9.6 / 1.33 * np.sin(t)], axis=1)
    t = np.arange(150) * (2 * np.pi / 150)
    lobes = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    heart = np.stack([9.6 * np.sin(t) ** 3, -(19.2 / 29) * lobes - 1.44], axis=1)
    scales = np.linspace(0.5, 1, SIZES[1]).astype(np.float32)
    out = np.zeros((3, SIZES[1], 150, 2), np.float32)
    for shape, outline in enumerate((square, ellipse, heart)):
        out[shape, :, : len(outline)] = outline.astype(np.float32) * scales[:, None, None]
    return out, np.array([len(square), len(ellipse), len(heart)])


_OUTLINES, _CORNERS = _scaled_outlines()
# The angle is rounded to float32 before its cosine is taken, as the original program's was.
_ANGLES = (-np.linspace(0, 2 * np.pi, SIZES[2])).astype(np.float32).astype(np.float64)
_COSINES, _SINES = np.cos(_ANGLES).astype(np.float32), np.sin(_ANGLES).astype(np.float32)
_CENTRES = (16 + 32 * np.linspace(0, 1, SIZES[3])).astype(np.float32)


@compiled()
def _draw(factors, outlines, corners, cosines, sines, centres, rows):  # type: ignore[no-untyped-def]
    """Set the pixels of each image: rows[i, y] holds row y of image i, first pixel in the highest bit."""
    for i in range(len(factors)):
        shape, scale, turn, x, y = factors[i]
        outline = outlines[shape, scale, : corners[shape]]
        c, s, cx, cy = cosines[turn], sines[turn], centres[x], centres[y]
        x0, y0 = _place(outline[-1, 0], outline[-1, 1], c, s, cx, cy)
        for corner in range(len(outline)):
            x1, y1 = _place(outline[corner, 0], outline[corner, 1], c, s, cx, cy)
            if y0 < y1:
                _cross(x0, y0, x1, y1, rows[i])
            elif y1 < y0:
                _cross(x1, y1, x0, y0, rows[i])
            x0, y0 = x1, y1


@compiled()
def _place(x, y, c, s, cx, cy):  # type: ignore[no-untyped-def]
    """Turn a corner, move it, and snap it to 1/256 pixel: whole numbers.

    The hardware's y runs upwards, and it multiplies and adds in one rounding to float32. A product of
    two float32 is exact in float64, so rounding each sum to float32 gives the same numbers.
    """
    right = np.float32(np.float64(c) * x + np.float64(cx))
    right = np.float32(np.float64(-s) * y + np.float64(right))
    up = np.float32(np.float64(-s) * x + np.float64(np.float32(64) - cy))
    up = np.float32(np.float64(-c) * y + np.float64(up))
    return np.int64(np.rint(np.float64(right) * 256)), 16384 - np.int64(np.rint(np.float64(up) * 256))


@compiled()
def _cross(x0, y0, x1, y1, rows):  # type: ignore[no-untyped-def]
    """Flip, in each pixel row whose centre line the edge crosses, all pixels from the edge to the right.

    The edge runs downwards (y0 < y1). After all edges of a polygon, the pixels inside are those flipped
    an odd number of times. Whole-number arithmetic: a centre on a left edge is in, on a right edge out;
    counting y0 < centre <= y1 puts centres on a bottom edge in and on a top edge out.
    """
    all_pixels = np.uint64(0xFFFFFFFFFFFFFFFF)
    for row in range((y0 - 128) // 256 + 1, (y1 - 128) // 256 + 1):
        ahead = (256 * row + 128 - y0) * (x1 - x0)
        # First pixel with 256 * pixel + 128 >= x0 + ahead / (y1 - y0), rounded up without fractions.
        pixel = -((-((x0 - 128) * (y1 - y0) + ahead)) // (256 * (y1 - y0)))
        rows[row] ^= all_pixels >> np.uint64(pixel)
