"""CelebA: the list of attributes and the pictures, in a folder or in a zip file."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from data.faces import save_colour
from unweave.data import Collection, open_data
from unweave.data.sets import celeba
from unweave.errors import ChecksumError, MissingFileError, UnweaveError

COLOURS = [(200, 20, 20), (20, 200, 20), (20, 20, 200)]


def listing(rows: int = 3) -> str:
    """The official layout: two spaces before a positive number, one before a negative one."""
    lines = [str(rows), " ".join(celeba.ATTRIBUTES) + " "]
    for row in range(rows):
        values = [1 if column % (row + 2) == 0 else -1 for column in range(40)]
        lines.append(f"{row + 1:06}.jpg " + " ".join(f"{value:2}" for value in values))
    return "\n".join(lines) + "\n"


def write(folder: Path, *, archive: bool = False) -> None:
    folder.mkdir(parents=True)
    (folder / "list_attr_celeba.txt").write_text(listing())
    for number, colour in enumerate(COLOURS, 1):
        save_colour(folder / "img_align_celeba" / f"{number:06}.jpg", colour, (178, 218))
    if archive:
        with zipfile.ZipFile(folder / "img_align_celeba.zip", "w") as out:
            for path in sorted((folder / "img_align_celeba").iterdir()):
                out.write(path, f"img_align_celeba/{path.name}")
                path.unlink()
        (folder / "img_align_celeba").rmdir()


@pytest.mark.parametrize("archive", [False, True])
def test_attributes_and_pictures(tmp_path: Path, archive: bool) -> None:
    write(tmp_path / "celeba", archive=archive)
    data = open_data("celeba", tmp_path, check=False)
    assert isinstance(data, Collection)
    assert (len(data), data.shape, len(data.factors)) == (3, (3, 64, 64), 40)
    for row in range(3):
        expected = [int(column % (row + 2) == 0) for column in range(40)]
        assert data.values[row].tolist() == expected
    seen = data.images_at([0, 1, 2]).mean(axis=(2, 3))
    np.testing.assert_allclose(seen, COLOURS, atol=4)  # JPEG
    assert data.factors[20].name == "Male"
    assert "unverified" in data.source


def test_the_largest_square_in_the_middle_is_shown(tmp_path: Path) -> None:
    write(tmp_path / "celeba")
    striped = np.full((218, 178, 3), 250, np.uint8)
    striped[:20] = striped[-20:] = 0
    Image.fromarray(striped).save(tmp_path / "celeba/img_align_celeba/000001.jpg", quality=100)
    data = open_data("celeba", tmp_path, check=False)
    assert isinstance(data, Collection)
    assert data.images_at([0]).min() > 220


def test_other_files_than_the_published_ones_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "celeba")
    with pytest.raises(ChecksumError, match=r"list_attr_celeba.txt is not the published file"):
        open_data("celeba", tmp_path)


def test_missing_pictures(tmp_path: Path) -> None:
    write(tmp_path / "celeba")
    (tmp_path / "celeba/img_align_celeba/000002.jpg").unlink()
    with pytest.raises(MissingFileError, match=r"needs 3 pictures .* 1 are missing, the first is 000002.jpg"):
        open_data("celeba", tmp_path, check=False)
    for path in (tmp_path / "celeba/img_align_celeba").iterdir():
        path.unlink()
    (tmp_path / "celeba/img_align_celeba").rmdir()
    with pytest.raises(
        MissingFileError, match=r"the folder img_align_celeba or the file img_align_celeba.zip"
    ):
        open_data("celeba", tmp_path, check=False)


def test_a_damaged_archive(tmp_path: Path) -> None:
    write(tmp_path / "celeba", archive=True)
    archive = tmp_path / "celeba/img_align_celeba.zip"
    archive.write_bytes(archive.read_bytes()[:-30])
    with pytest.raises(UnweaveError, match=r"img_align_celeba.zip as a zip file"):
        open_data("celeba", tmp_path, check=False)
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("img_align_celeba/000001.jpg", b"no picture")
    with pytest.raises(UnweaveError, match=r"cannot read the picture img_align_celeba/000001.jpg in"):
        open_data("celeba", tmp_path, check=False)


@pytest.mark.parametrize("archive", [False, True])
def test_pictures_that_are_not_the_aligned_ones(tmp_path: Path, archive: bool) -> None:
    """The pictures in the wild have the same names, and faces elsewhere."""
    write(tmp_path / "celeba")
    save_colour(tmp_path / "celeba/img_align_celeba/000001.jpg", (9, 9, 9), (409, 687))
    if archive:
        with zipfile.ZipFile(tmp_path / "celeba/img_align_celeba.zip", "w") as out:
            out.write(tmp_path / "celeba/img_align_celeba/000001.jpg", "img_align_celeba/000001.jpg")
        (tmp_path / "celeba/img_align_celeba").rename(tmp_path / "celeba/other")
    with pytest.raises(UnweaveError, match=r"aligned picture, 178 pixels wide and 218 high; got 409 x 687\."):
        open_data("celeba", tmp_path, check=False)


@pytest.mark.parametrize("archive", [False, True])
def test_a_picture_that_is_cut(tmp_path: Path, archive: bool) -> None:
    write(tmp_path / "celeba")
    path = tmp_path / "celeba/img_align_celeba/000002.jpg"
    path.write_bytes(path.read_bytes()[:300])
    if archive:
        with zipfile.ZipFile(tmp_path / "celeba/img_align_celeba.zip", "w") as out:
            for picture in sorted(path.parent.iterdir()):
                out.write(picture, f"img_align_celeba/{picture.name}")
        path.parent.rename(tmp_path / "celeba/other")
    message = r"cannot read the picture .*000002.jpg.*\. (Replace the file|Get the archive again)"
    with pytest.raises(UnweaveError, match=message):
        open_data("celeba", tmp_path, check=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "should start with the number of pictures"),
        (listing().replace("Bald", "Hairy"), "names of 40 attributes"),
        (listing().replace("3\n", "4\n", 1), "should list 4 pictures; it lists 3"),
        (listing().replace(" 1\n", "\n", 1), r"line \d of .* a file name and 40 numbers"),
        (listing().replace(" -1", "  0", 1), "each -1 or 1"),
    ],
)
def test_damaged_lists(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "list.txt").write_text(text)
    with pytest.raises(UnweaveError, match=message):
        celeba.read_attributes(tmp_path / "list.txt")
