"""Pictures for people: contact sheets, grids and moving pictures, all from plain arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from unweave.data.collection import Collection, Continuous
from unweave.data.grid import Factor, Factors, GroundTruth, Images
from unweave.errors import UnweaveError
from unweave.files import replacing
from unweave.streams import Stream

COLUMNS = 10
ZOOM = 2
GAP = 4
MARGIN = 190  # room for the factors' names, more for longer ones
TITLE = 44
INK, PAPER = (32, 32, 36), (250, 250, 248)


def data_sheet(ground_truth: GroundTruth, seed: int | Stream = 0, random_rows: int = 4) -> Image.Image:
    """One row a factor, in which only that factor changes, and below them images drawn at random."""
    stream = Stream.of(seed).child("sheet")
    middle = np.array([[size // 2 for size in ground_truth.sizes]])
    rows: list[tuple[str, Factors]] = []
    for j, factor in enumerate(ground_truth.factors):
        values = np.unique(np.linspace(0, factor.size - 1, min(COLUMNS, factor.size)).round().astype(int))
        moved = np.repeat(middle, len(values), axis=0)
        moved[:, j] = values
        rows.append((f"{factor.name}\n{factor.size} values, {factor.kind}", moved))
    drawn = ground_truth.sample_factors(COLUMNS * random_rows, stream)
    rows += [
        ("" if i else "at random", part) for i, part in enumerate(np.split(drawn, random_rows)) if len(part)
    ]
    # Row r of the sheet sees its own part of the stream: no two images share their noise.
    images = [ground_truth.observe(f, stream.child("row", r)) for r, (_, f) in enumerate(rows)]
    title = f"{ground_truth.name}: {len(ground_truth):,} combinations of factors"
    return _lay_out(title, [label for label, _ in rows], images)


def collection_sheet(collection: Collection, seed: int | Stream = 0, random_rows: int = 4) -> Image.Image:
    """One row a factor, of images in the order of its values, and below them images drawn at random."""
    rows: list[tuple[str, NDArray[np.int64]]] = []
    for j, factor in enumerate(collection.factors):
        known = np.flatnonzero(~np.isnan(collection.values[:, j]))
        ordered = known[np.argsort(collection.values[known, j], kind="stable")]
        kind = "measured" if isinstance(factor, Continuous) else f"{factor.size} values, {factor.kind}"
        if isinstance(factor, Factor):  # one image of each value
            ordered = ordered[np.unique(collection.values[ordered, j], return_index=True)[1]]
        places = np.unique(np.linspace(0, len(ordered) - 1, min(COLUMNS, len(ordered))).round().astype(int))
        rows.append((f"{factor.name}\n{kind}", ordered[places]))
    stream = Stream.of(seed).child("sheet")
    drawn = np.split(collection.sample_index(COLUMNS * random_rows, stream), random_rows)
    rows += [("" if i else "at random", part) for i, part in enumerate(drawn)]
    title = f"{collection.name}: {len(collection):,} images"
    return labelled_sheet(title, [(label, collection.images_at(index)) for label, index in rows])


def labelled_sheet(title: str, rows: Sequence[tuple[str, Images]]) -> Image.Image:
    """Rows of (n, c, h, w) images, each with its label."""
    return _lay_out(title, [label for label, _ in rows], [images for _, images in rows])


def moving_sheet(title: str, rows: Sequence[tuple[str, Images]]) -> list[Image.Image]:
    """One frame for each column: each row shows one image at a time, side by side with the others."""
    columns = np.stack([images for _, images in rows], axis=1)  # (columns, rows, c, h, w)
    return [_lay_out(title, [""], [tiles], margin=2 * GAP) for tiles in columns]


def save(picture: Image.Image | Sequence[Image.Image], path: Path) -> None:
    """Write a picture, or frames as an animation, atomically; the format follows the suffix."""
    try:
        with replacing(path, keep_suffix=True) as part:
            if isinstance(picture, Image.Image):
                picture.save(part)
            else:
                # There and back again, so that it never jumps.
                first, *others = [*picture, *picture[-2:0:-1]]
                first.save(part, save_all=True, append_images=others, duration=120, loop=0)
    except (OSError, ValueError) as error:
        raise UnweaveError(
            f"cannot write the picture {path}: {error}. Choose a name that ends in .png in a folder "
            "that you can write to."
        ) from error


def to_rgb(images: Images) -> NDArray[np.uint8]:
    """(n, 1 or 3, h, w) images as (n, h, w, 3)."""
    return np.moveaxis(np.broadcast_to(images, (len(images), 3, *images.shape[2:])), 1, 3)


def to_bytes(images: NDArray[np.floating[Any]]) -> Images:
    """Images in [0, 1] as uint8."""
    return np.asarray(np.rint(np.clip(images, 0, 1) * 255), np.uint8)


def _lay_out(title: str, labels: list[str], rows: list[Images], margin: int = MARGIN) -> Image.Image:
    height, width = (ZOOM * side for side in rows[0].shape[2:])
    heading, small = ImageFont.load_default(20), ImageFont.load_default(14)
    words = max(small.getlength(line) for label in labels for line in label.split("\n"))
    margin = max(margin, math.ceil(words) + 4 * GAP) if words else margin
    size = (
        max(
            margin + max(len(row) for row in rows) * (width + GAP),
            math.ceil(heading.getlength(title)) + 4 * GAP,
        ),
        TITLE + len(rows) * (height + GAP) + GAP,
    )
    sheet = Image.new("RGB", size, PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((2 * GAP, 2 * GAP), title, INK, heading)
    for r, (label, row) in enumerate(zip(labels, rows, strict=True)):
        top = TITLE + r * (height + GAP)
        draw.multiline_text((2 * GAP, top + height // 3), label, INK, small)
        for c, image in enumerate(to_rgb(row)):
            tile = Image.fromarray(image).resize((width, height), Image.Resampling.NEAREST)
            sheet.paste(tile, (margin + c * (width + GAP), top))
    return sheet
