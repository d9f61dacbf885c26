"""Glyphs: outlines against Matplotlib's fonts, images against a slow rasteriser, and the meaning of factors.

`python tests/data/test_glyphs.py` writes the file of outlines from the fonts of the installed Matplotlib.
"""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from fontTools.ttLib import TTFont  # type: ignore[import-untyped]
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D
from numpy.typing import NDArray

from unweave.data import load
from unweave.data.sets import glyphs

GLYPHS = glyphs.load()
OUTLINES = Path(glyphs.__file__).with_name("glyph_outlines.json")
FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
FILES = {
    "sans": "DejaVuSans", "sans bold": "DejaVuSans-Bold", "sans oblique": "DejaVuSans-Oblique",
    "mono": "DejaVuSansMono", "mono bold": "DejaVuSansMono-Bold", "serif": "DejaVuSerif",
    "serif bold": "DejaVuSerif-Bold", "serif italic": "DejaVuSerif-Italic", "book": "STIXGeneral",
    "book bold": "STIXGeneralBol", "book italic": "STIXGeneralItalic",
    "book bold italic": "STIXGeneralBolIta",
}  # fmt: skip
VERSIONS = {"DejaVu": "Version 2.35", "STIXGe": "Version 1.0.0"}
# Of all bitmaps, and of four images. If they change, RULE counts up and CHANGELOG says so.
FINGERPRINT = "6f3a1613e4f6620dd1010fb12f7c079c49e3d96f0126d2966d3a403d3b434012"
PINNED = ["8febb674f18b5156", "a6da47d981960e8d", "04e6c6dc0277aa40", "1435aa978947afbb"]
PINNED_FACTORS = [[0, 3, 0, 0, 0, 0], [4, 6, 2, 4, 3, 5], [7, 11, 4, 8, 7, 0], [9, 8, 3, 6, 2, 7]]


def contours_in_font(font: TTFont, character: str) -> list[list[int]]:
    """The contours of a character: x, y and whether the point is on the curve, one after another."""
    table = font["glyf"]
    points, ends, flags = table[font.getBestCmap()[ord(character)]].getCoordinates(table)
    starts = [0, *(end + 1 for end in ends[:-1])]
    return [
        [int(value) for i in range(start, end + 1) for value in (*points[i], flags[i] & 1)]
        for start, end in zip(starts, ends, strict=True)
    ]


def outlines_in_matplotlib() -> dict[str, list[list[list[int]]]]:
    fonts = {face: TTFont(FONTS / f"{file}.ttf") for face, file in FILES.items()}
    return {face: [contours_in_font(font, c) for c in "0123456789"] for face, font in fonts.items()}


def varied(name: str, base: tuple[int, ...] = (4, 1, 2, 5, 3, 4)) -> NDArray[np.int64]:
    """Images in which one factor takes all of its values."""
    j = GLYPHS.position(name)
    factors = np.tile(base, (GLYPHS.sizes[j], 1))
    factors[:, j] = np.arange(GLYPHS.sizes[j])
    return GLYPHS.observe(factors)[:, 0].astype(np.int64)


def centroid(image: NDArray[Any]) -> tuple[float, float]:
    """Column and row of the centre of the ink."""
    places = np.arange(64) + 0.5
    return float(image.sum(axis=0) @ places / image.sum()), float(image.sum(axis=1) @ places / image.sum())


def placed_contours(
    character: str, face: str, height: float, angle: float, middle: float
) -> list[NDArray[np.float64]]:
    """The outline in the image, y down, by Matplotlib: a polygon for each contour."""
    font = FontProperties(fname=str(FONTS / f"{FILES[face]}.ttf"))
    unit = TextPath((0, 0), "1", size=1000, prop=font).get_extents().height
    path = TextPath((0, 0), character, size=1000, prop=font)
    box = path.get_extents()
    place = Affine2D().translate(-(box.x0 + box.x1) / 2, -(box.y0 + box.y1) / 2).scale(height / unit)
    place = place.rotate_deg(angle).scale(1, -1).translate(middle, middle)
    return [np.asarray(place.transform(polygon)) for polygon in path.to_polygons()]


def test_it_is_the_grid_that_it_says() -> None:
    assert GLYPHS.sizes == (10, 12, 5, 9, 8, 8)
    assert [factor.name for factor in GLYPHS.factors] == ["character", "face", "size", "rotation", "x", "y"]
    assert [factor.kind for factor in GLYPHS.factors] == ["categorical"] * 2 + ["ordinal"] * 4
    assert len(GLYPHS) == 345_600
    assert len(load("glyphs_centred")) == 5_400
    assert load("glyphs").source == "rendered by unweave, glyphs rule 1"
    assert not GLYPHS.stochastic
    assert not GLYPHS.binary


def test_all_images_of_rule_1() -> None:
    assert hashlib.sha256(glyphs.bitmaps().tobytes()).hexdigest() == FINGERPRINT
    images = GLYPHS.observe(PINNED_FACTORS)
    assert [hashlib.sha256(image.tobytes()).hexdigest()[:16] for image in images] == PINNED
    assert len(np.unique(glyphs.bitmaps().reshape(5400, -1), axis=0)) == 5400


def test_outlines_are_those_of_the_fonts() -> None:
    for file in FILES.values():
        versions = {str(name) for name in TTFont(FONTS / f"{file}.ttf")["name"].names if name.nameID == 5}
        if versions != {VERSIONS[file[:6]]}:
            pytest.skip(f"this Matplotlib has another version of {file}: {versions}")
    assert json.loads(OUTLINES.read_text()) == outlines_in_matplotlib()


@pytest.mark.parametrize(
    ("character", "face", "size", "rotation"),
    [(8, "book italic", 4, 0), (4, "sans bold", 1, 6), (0, "mono", 2, 8)],
)
def test_images_equal_a_slow_rasteriser(character: int, face: str, size: int, rotation: int) -> None:
    contours = placed_contours(
        str(character), face, glyphs.HEIGHTS[size], glyphs.ANGLES[rotation], glyphs.PLACES[0]
    )
    side = (np.arange(64 * 12) + 0.5) / 12
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    # Contours one by one, even-odd: a hole of the outline is inside of two contours.
    inside = np.sum([Outline(contour).contains_points(points) for contour in contours], axis=0) % 2
    expected = 255 * inside.reshape(64, 12, 64, 12).mean(axis=(1, 3))
    row = [character, glyphs.FACES.index(face), size, rotation, 0, 0]
    difference = np.abs(GLYPHS.observe([row])[0, 0] - expected)
    assert difference.max() < 20  # 144 samples a pixel against 16 exact scan lines
    assert difference.mean() < 0.3


def test_areas_follow_the_size() -> None:
    areas = varied("size").sum(axis=(1, 2)) / 255
    np.testing.assert_allclose(areas / areas[0], np.square(np.asarray(glyphs.HEIGHTS) / 20), rtol=0.01)
    for name in ("rotation", "x", "y"):
        areas = varied(name).sum(axis=(1, 2)) / 255
        np.testing.assert_allclose(areas, areas[0], rtol=0.005)


def test_the_centre_follows_the_position() -> None:
    for axis, name in enumerate(("x", "y")):
        centres = np.asarray([centroid(image) for image in varied(name)])
        np.testing.assert_allclose(np.diff(centres[:, axis]), 2)
        np.testing.assert_allclose(np.diff(centres[:, 1 - axis]), 0, atol=1e-12)


def test_rotation_is_counter_clockwise_and_never_turns_a_six_into_a_nine() -> None:
    images = varied("rotation", (1, 0, 4, 0, 4, 4)).astype(float)
    tilts = []
    for image in images:
        column, row = centroid(image)
        x, y = np.arange(64) + 0.5 - column, np.arange(64) + 0.5 - row
        xx, yy, xy = image.sum(axis=0) @ x**2, image.sum(axis=1) @ y**2, y @ image @ x
        tilts.append(math.degrees(0.5 * math.atan2(2 * xy, yy - xx)))  # of the long axis, from the vertical
    np.testing.assert_allclose(np.diff(tilts), 7.5, atol=0.3)
    for rotation in range(9):  # the bowl of a six is below that of a nine, also in the most rotated ones
        pair = GLYPHS.observe([[character, 0, 4, rotation, 0, 0] for character in (6, 9)])[:, 0]
        six, nine = (centroid(image)[1] for image in pair)
        assert six > nine + 0.2


@pytest.mark.parametrize("name", [factor.name for factor in glyphs.FACTORS])
def test_every_value_of_every_factor_makes_another_picture(name: str) -> None:
    images = varied(name)
    for i in range(len(images)):
        for j in range(i):
            assert (np.abs(images[i] - images[j]) > 40).sum() > 20, (name, i, j)


def test_digits_never_touch_the_border_of_the_image() -> None:
    ink = glyphs.bitmaps().reshape(-1, 50, 50).max(axis=0)
    assert not ink[[0, -1]].any()
    assert not ink[:, [0, -1]].any()
    corners = GLYPHS.observe([[8, 6, 4, 4, x, y] for x in (0, 7) for y in (0, 7)])
    assert len({int(image.sum()) for image in corners}) == 1  # no corner cuts anything off


def test_centred_images_are_those_in_the_middle() -> None:
    factors = GLYPHS.sample_factors(200, seed=1)
    factors[:, 4:] = 0  # the middle of the digit at 25, seven pixels before that of the image
    centred = load("glyphs_centred").observe(factors[:, :4])
    np.testing.assert_array_equal(centred[:, :, 7:, 7:], GLYPHS.observe(factors)[:, :, :57, :57])


if __name__ == "__main__":
    blocks = [
        f" {json.dumps(face)}: [\n"
        + ",\n".join(f"  {json.dumps(glyph, separators=(',', ':'))}" for glyph in outlines)
        + "\n ]"
        for face, outlines in outlines_in_matplotlib().items()
    ]
    OUTLINES.write_text("{\n" + ",\n".join(blocks) + "\n}\n")
