"""Pictures for people: contact sheets of a ground truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from unweave.data.grid import Factors, GroundTruth, Images
from unweave.errors import UnweaveError
from unweave.streams import Stream

COLUMNS = 10
ZOOM = 2
GAP = 4
MARGIN = 190  # room for the factors' names
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


def save(picture: Image.Image, path: Path) -> None:
    """Write a picture; the format follows the file's ending."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.save(path)
    except (OSError, ValueError) as error:
        raise UnweaveError(
            f"cannot write the picture {path}: {error}. Choose a name that ends in .png in a folder "
            "that you can write to."
        ) from error


def to_rgb(images: Images) -> NDArray[np.uint8]:
    """(n, 1 or 3, h, w) images as (n, h, w, 3)."""
    return np.moveaxis(np.broadcast_to(images, (len(images), 3, *images.shape[2:])), 1, 3)


def _lay_out(title: str, labels: list[str], rows: list[Images]) -> Image.Image:
    height, width = (ZOOM * side for side in rows[0].shape[2:])
    size = (
        MARGIN + max(len(row) for row in rows) * (width + GAP),
        TITLE + len(rows) * (height + GAP) + GAP,
    )
    sheet = Image.new("RGB", size, PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((2 * GAP, 2 * GAP), title, INK, ImageFont.load_default(20))
    for r, (label, row) in enumerate(zip(labels, rows, strict=True)):
        top = TITLE + r * (height + GAP)
        draw.multiline_text((2 * GAP, top + height // 3), label, INK, ImageFont.load_default(14))
        for c, image in enumerate(to_rgb(row)):
            tile = Image.fromarray(image).resize((width, height), Image.Resampling.NEAREST)
            sheet.paste(tile, (MARGIN + c * (width + GAP), top))
    return sheet
