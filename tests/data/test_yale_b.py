"""Extended Yale B: PGM files with the official names; factors come from the names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from data.faces import LIGHTS, pgm, write_yale
from unweave.data import Collection, open_data
from unweave.data.pgm import read_pgm
from unweave.data.sets import yale_b
from unweave.errors import MissingFileError, UnweaveError

# The 64 lights of the database, from its description: (azimuth, its elevations), both signs of the azimuth.
PUBLISHED_LIGHTS = {
    0: (-35, -20, 0, 20, 45, 90),
    5: (-10, 10),
    10: (-20, 0),
    15: (20,),
    20: (-40, -10, 10),
    25: (0,),
    35: (-20, 15, 40, 65),
    50: (-40, 0),
    60: (-20, 20),
    70: (-35, 0, 45),
    85: (-20, 20),
    95: (0,),
    110: (-20, 15, 40, 65),
    120: (0,),
    130: (20,),
}


def test_factors_have_the_values_of_the_database() -> None:
    lights = {(side * a, e) for a, some in PUBLISHED_LIGHTS.items() for e in some for side in (-1, 1)}
    assert len(lights) == 64
    assert sorted({azimuth for azimuth, _ in lights}) == list(yale_b.AZIMUTHS)
    assert sorted({elevation for _, elevation in lights}) == list(yale_b.ELEVATIONS)
    assert len(yale_b.PEOPLE) * len(lights) - 18 == yale_b.ENTRY.images == 2_414


@pytest.mark.parametrize("folder", ["yale_b", "CroppedYale", "."])
def test_factors_come_from_the_names(tmp_path: Path, folder: str) -> None:
    write_yale(tmp_path / folder)
    data = open_data("yale_b", tmp_path, check=False)
    assert isinstance(data, Collection)
    assert (len(data), data.shape) == (2 * len(LIGHTS), (1, 64, 64))
    labels = [factor.labels or () for factor in yale_b.FACTORS]
    for row, image in enumerate(data.images_at(np.arange(len(data)))):
        person, azimuth, elevation = (labels[j][int(data.values[row, j])] for j in range(3))
        light = f"A{int(azimuth):+04}E{int(elevation):+03}"
        assert (image == 100 * (person == "yaleB39") + 10 * LIGHTS.index(light)).all()


def test_images_are_decoded_once_and_not_taken_from_other_files(tmp_path: Path) -> None:
    write_yale(tmp_path / "yale_b")
    first = open_data("yale_b", tmp_path, check=False)
    assert open_data("yale_b", tmp_path, check=False).source == first.source
    (tmp_path / "yale_b/yaleB01/yaleB01_P00A+000E+00.pgm").write_bytes(pgm(77))
    changed = open_data("yale_b", tmp_path, check=False)
    assert changed.source != first.source
    assert isinstance(changed, Collection)
    assert 77 in changed.images_at(np.arange(len(changed)))


def test_a_picture_under_another_name_is_other_data(tmp_path: Path) -> None:
    write_yale(tmp_path / "yale_b")
    before = open_data("yale_b", tmp_path, check=False)
    path = tmp_path / "yale_b/yaleB39/yaleB39_P00A-130E+20.pgm"
    path.rename(path.with_name("yaleB39_P00A-120E+00.pgm"))
    after = open_data("yale_b", tmp_path, check=False)
    rows = np.arange(len(before))
    assert isinstance(before, Collection)
    assert isinstance(after, Collection)
    np.testing.assert_array_equal(after.images_at(rows), before.images_at(rows))
    assert after.source != before.source


def test_the_middle_of_a_face_is_shown(tmp_path: Path) -> None:
    grey = np.zeros((192, 168), np.uint8)
    grey[12:-12] = 200
    (tmp_path / "face.pgm").write_bytes(b"P5 168 192 255\n" + grey.tobytes())
    assert yale_b.read_face(tmp_path / "face.pgm").min() > 180


@pytest.mark.parametrize(
    "name", ["yaleB14_P00A+000E+00", "yaleB40_P00A+000E+00", "yaleB01_P00A+001E+00", "yaleB01_P00A+000E+1"]
)
def test_other_names(tmp_path: Path, name: str) -> None:
    write_yale(tmp_path)
    (tmp_path / "yaleB01" / f"{name}.pgm").write_bytes(pgm(1))
    with pytest.raises(UnweaveError, match=rf"{name.replace('+', '.')}.pgm should be called like"):
        open_data("yale_b", tmp_path, check=False)


def test_pictures_that_are_not_cropped(tmp_path: Path) -> None:
    write_yale(tmp_path)
    (tmp_path / "yaleB01/yaleB01_P00A+005E-10.pgm").write_bytes(pgm(1, 640, 480))
    with pytest.raises(UnweaveError, match="168 pixels wide and 192 high; got 640 x 480"):
        open_data("yale_b", tmp_path, check=False)


def test_pictures_that_are_missing(tmp_path: Path) -> None:
    """There is no checksum, so a folder that was unpacked in part must not pass for the data set."""
    write_yale(tmp_path)
    with pytest.raises(MissingFileError, match=r"should have 2,414 pictures .*; it has 12\. Unpack Cropped"):
        open_data("yale_b", tmp_path)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="yale_b needs the file"):
        open_data("yale_b", tmp_path, check=False)


def test_headers_of_pgm(tmp_path: Path) -> None:
    path, data = tmp_path / "a.pgm", bytes(range(6))
    for header in (b"P5\n3 2\n255\n", b"P5 3 2 255 ", b"P5\n# a\n#b # c\n3 # width\n2\n# d\n255\n"):
        path.write_bytes(header + data)
        np.testing.assert_array_equal(read_pgm(path), np.arange(6).reshape(2, 3))
    # A byte of the image that looks like a comment or a space belongs to the image.
    path.write_bytes(b"P5 3 2 255\n" + b"# \n#\n ")
    assert read_pgm(path).tobytes() == b"# \n#\n "
    path.write_bytes(b"P5 3 2 5\n" + data)
    assert read_pgm(path).ravel().tolist() == [0, 51, 102, 153, 204, 255]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "header of a binary PGM file"),
        (b"P2 1 1 255\n0", "P5, width, height.*got b'P2 1 1"),
        (b"P5 3 2 65535\n" + bytes(12), "up to 255 at most; got 65535"),
        (b"P5 3 2 255\n" + bytes(5), "3 x 2 = 6 bytes after its header; it has 5"),
        (b"P5 3 2 255\n" + bytes(7), "it has 7"),
    ],
)
def test_damaged_pgm(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.pgm").write_bytes(content)
    with pytest.raises(UnweaveError, match=message):
        read_pgm(tmp_path / "a.pgm")
