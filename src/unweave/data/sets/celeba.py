"""CelebA: 202,599 colour images of faces with 40 binary attributes.

Liu, Luo, Wang, Tang: "Deep learning face attributes in the wild" (ICCV 2015).

The aligned images (178 x 218 pixels) are cut to the largest square in their middle and shrunk to 64 x 64 with
a Lanczos filter. Attributes are labels of people, not set factors: the data set is a collection.
"""

from __future__ import annotations

import zipfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unweave.data.collection import Collection
from unweave.data.entry import Entry
from unweave.data.files import OfficialFile, describe, locate
from unweave.data.grid import Card, Factor, Images
from unweave.data.own.folder import decode
from unweave.data.picture_rows import SIDE, Decoded, collection_of, decoded_pictures, decoded_rows
from unweave.errors import MissingFileError, UnweaveError
from unweave.progress import Progress

NAME = "celeba"
PICTURES = "img_align_celeba"
WIDTH, HEIGHT = 178, 218
ATTRIBUTES = [
    "5_o_Clock_Shadow",
    "Arched_Eyebrows",
    "Attractive",
    "Bags_Under_Eyes",
    "Bald",
    "Bangs",
    "Big_Lips",
    "Big_Nose",
    "Black_Hair",
    "Blond_Hair",
    "Blurry",
    "Brown_Hair",
    "Bushy_Eyebrows",
    "Chubby",
    "Double_Chin",
    "Eyeglasses",
    "Goatee",
    "Gray_Hair",
    "Heavy_Makeup",
    "High_Cheekbones",
    "Male",
    "Mouth_Slightly_Open",
    "Mustache",
    "Narrow_Eyes",
    "No_Beard",
    "Oval_Face",
    "Pale_Skin",
    "Pointy_Nose",
    "Receding_Hairline",
    "Rosy_Cheeks",
    "Sideburns",
    "Smiling",
    "Straight_Hair",
    "Wavy_Hair",
    "Wearing_Earrings",
    "Wearing_Hat",
    "Wearing_Lipstick",
    "Wearing_Necklace",
    "Wearing_Necktie",
    "Young",
]
FACTORS = tuple(Factor(name, 2, "categorical", ("no", "yes")) for name in ATTRIBUTES)

FOLDERS = ("celeba", "CelebA")
FILES = (
    OfficialFile("list_attr_celeba.txt", "md5:75e246fa4810816ffd6ee81facbd244c"),
    OfficialFile("img_align_celeba.zip", "md5:00d2c5bc6d35e252742224ab0c1e8fcb"),
)
CARD = Card(
    title="CelebA",
    licence="non-commercial research only",
    homepage="https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html",
    citation="""@inproceedings{liu2015deep,
  author = {Liu, Ziwei and Luo, Ping and Wang, Xiaogang and Tang, Xiaoou},
  title = {Deep Learning Face Attributes in the Wild},
  booktitle = {IEEE International Conference on Computer Vision},
  pages = {3730--3738},
  year = {2015}
}""",
    note="The largest square in the middle of each aligned image is shrunk to 64 x 64 pixels.",
)


class Attributes(NamedTuple):
    """File names, and the (n, 40) attributes of their pictures, 0 or 1."""

    files: list[str]
    values: NDArray[np.float64]


def load(root: Path, *, check: bool = True, progress: Progress | None = None) -> Collection:
    """CelebA from list_attr_celeba.txt, and from the pictures next to it, in a folder or an archive."""
    path = locate(NAME, root, FOLDERS, [FILES[0].name])
    listed = describe(path, FILES[0], check)
    attributes = read_attributes(path)
    decoded = _pictures(path.parent, attributes.files, check, progress)
    decoded = Decoded(decoded.table, f"{decoded.source}; {listed}")
    return collection_of(NAME, FACTORS, decoded, attributes.values, CARD)


ENTRY = Entry(NAME, FACTORS, 3, CARD, load, FILES, FOLDERS, wanted=(FILES[0].name,), rows=202_599)


def read_attributes(path: Path) -> Attributes:
    """The table of attributes: the number of pictures, the names, then a file name and 40 times -1 or 1."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UnweaveError(f"cannot read {path}: {error}.") from error
    if len(lines) < 3 or not lines[0].strip().isdecimal() or lines[1].split() != ATTRIBUTES:
        raise UnweaveError(
            f"{path} should start with the number of pictures and the names of {len(ATTRIBUTES)} attributes. "
            "Get the official list_attr_celeba.txt."
        )
    rows = [line.split() for line in lines[2:] if line.strip()]
    if len(rows) != int(lines[0]):
        raise UnweaveError(f"{path} should list {int(lines[0]):,} pictures; it lists {len(rows):,}.")
    for number, row in enumerate(rows, 3):
        if len(row) != 1 + len(ATTRIBUTES) or not set(row[1:]) <= {"-1", "1"}:
            raise UnweaveError(
                f"line {number} of {path} should be a file name and {len(ATTRIBUTES)} numbers, each -1 or 1; "
                f"got {' '.join(row)[:60]!r}."
            )
    values = np.array([row[1:] for row in rows], np.int64)
    return Attributes([row[0] for row in rows], (values > 0).astype(np.float64))


def _pictures(folder: Path, files: list[str], check: bool, progress: Progress | None) -> Decoded:
    if (folder / PICTURES).is_dir():
        _check_first(folder / PICTURES / files[0])
        return decoded_pictures(NAME, folder / PICTURES, files, "crop", progress)
    archive = folder / FILES[1].name
    if not archive.is_file():
        raise MissingFileError(
            f"celeba needs the folder {PICTURES} or the file {archive.name}, and neither is in {folder}. "
            f"Get the aligned pictures from {CARD.homepage} and put them there."
        )
    described = describe(archive, FILES[1], check)
    try:
        with zipfile.ZipFile(archive) as opened:
            read = partial(_read_member, opened, archive)
            mark = "\n".join([described, *files])
            decoded = decoded_rows(mark, files, (3, SIDE, SIDE), read, progress)
    except zipfile.BadZipFile as error:
        raise UnweaveError(f"cannot read {archive} as a zip file ({error}). Get it again.") from error
    return Decoded(decoded.table, described)


def _check_first(path: Path) -> None:
    """Refuse a folder of pictures that are not the aligned ones; one that is damaged is refused later."""
    from PIL import Image, UnidentifiedImageError

    with suppress(FileNotFoundError, UnidentifiedImageError), Image.open(path) as picture:
        _check_size(picture.size, str(path))


def _check_size(size: tuple[int, int], picture: str) -> None:
    if size != (WIDTH, HEIGHT):
        raise UnweaveError(
            f"{picture} should be an aligned picture, {WIDTH} pixels wide and {HEIGHT} high; got {size[0]} x "
            f"{size[1]}. Get {FILES[1].name}."
        )


def _read_member(opened: zipfile.ZipFile, archive: Path, file: str) -> Images:
    from PIL import Image

    try:
        with opened.open(f"{PICTURES}/{file}") as stored, Image.open(stored) as picture:
            _check_size(picture.size, f"{PICTURES}/{file} in {archive}")
            return decode(picture, (SIDE, SIDE), "crop", 3)
    except (zipfile.BadZipFile, UnweaveError):
        raise
    # Pillow's decoders raise almost anything on a damaged file; KeyError: there is no such member.
    except Exception as error:
        reason = str(error).removesuffix(".")
        raise UnweaveError(
            f"cannot read the picture {PICTURES}/{file} in {archive}: {reason}. Get the archive again."
        ) from error
