"""Extended Yale B, cropped: 2,414 grey images of 38 people, each under 64 lights.

Georghiades, Belhumeur, Kriegman: "From few to many: illumination cone models for face recognition under
variable lighting and pose" (PAMI 2001). Lee, Ho, Kriegman: "Acquiring linear subspaces for face recognition
under variable lighting" (PAMI 2005).

A file name gives the person, the pose and the direction of the light in degrees: yaleB01_P00A+005E-10.pgm is
person 1 in the frontal pose, lit from 5 degrees to the side and 10 degrees below. 18 of 2,432 pictures were
lost (.pgm.bad), and the directions are no grid, so the data set is a collection. Pictures with ambient light
only are left out. The largest square in the middle of a picture is shrunk to 64 x 64 with a Lanczos filter.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from unweave.data.collection import Collection
from unweave.data.entry import Entry
from unweave.data.files import locate
from unweave.data.grid import Card, Factor, Images
from unweave.data.own.sizing import fit_image
from unweave.data.pgm import read_pgm
from unweave.data.picture_rows import SIDE, collection_of, decoded_rows
from unweave.errors import MissingFileError, UnweaveError
from unweave.progress import Progress

NAME = "yale_b"
HEIGHT, WIDTH = 192, 168
PICTURES = 2_414
PEOPLE = tuple(number for number in range(1, 40) if number != 14)
_SIDEWAYS = (5, 10, 15, 20, 25, 35, 50, 60, 70, 85, 95, 110, 120, 130)
AZIMUTHS = (*(-angle for angle in reversed(_SIDEWAYS)), 0, *_SIDEWAYS)
ELEVATIONS = (-40, -35, -20, -10, 0, 10, 15, 20, 40, 45, 65, 90)
FACTORS = (
    Factor("identity", len(PEOPLE), "categorical", tuple(f"yaleB{number:02}" for number in PEOPLE)),
    Factor("azimuth", len(AZIMUTHS), "ordinal", tuple(map(str, AZIMUTHS))),
    Factor("elevation", len(ELEVATIONS), "ordinal", tuple(map(str, ELEVATIONS))),
)
PICTURE = re.compile(r"yaleB(\d\d)_P00A([+-]\d{3})E([+-]\d\d)\.pgm")

FOLDERS = ("yale_b", "yale_b/CroppedYale", "CroppedYale")
WANTED = "yaleB*/yaleB*_P00A*.pgm"
CARD = Card(
    title="Extended Yale B",
    licence="free for research; the authors ask for citations",
    homepage="http://vision.ucsd.edu/~leekc/ExtYaleDatabase/ExtYaleB.html",
    citation="""@article{georghiades2001few,
  author = {Georghiades, Athinodoros S. and Belhumeur, Peter N. and Kriegman, David J.},
  title = {From Few to Many: Illumination Cone Models for Face Recognition under Variable Lighting and Pose},
  journal = {IEEE Transactions on Pattern Analysis and Machine Intelligence},
  volume = {23},
  number = {6},
  pages = {643--660},
  year = {2001}
}""",
    note="The cropped pictures (CroppedYale), without the ones in ambient light.",
)


def load(root: Path, *, check: bool = True, progress: Progress | None = None) -> Collection:
    """Extended Yale B from the folders yaleB01, yaleB02, ... under root.

    No checksum of it is published; with `check`, all of its pictures must be there.
    """
    folder = locate(NAME, root, FOLDERS, [WANTED]).parents[1]
    files = sorted(path.relative_to(folder).as_posix() for path in folder.glob(WANTED))
    if check and len(files) != PICTURES:
        raise MissingFileError(
            f"{folder} should have {PICTURES:,} pictures like yaleB01/yaleB01_P00A+005E-10.pgm; it has "
            f"{len(files):,}. Unpack CroppedYale.zip again."
        )
    values = np.array([values_of(folder / file) for file in files], np.float64)

    def read(file: str) -> Images:
        return read_face(folder / file)

    states = [(folder / file).stat() for file in files]
    marks = [f"{file} {s.st_size} {s.st_mtime_ns}" for file, s in zip(files, states, strict=True)]
    mark = "\n".join([NAME, str(folder.resolve()), *marks])
    decoded = decoded_rows(mark, files, (1, SIDE, SIDE), read, progress)
    return collection_of(NAME, FACTORS, decoded, values, CARD)


ENTRY = Entry(NAME, FACTORS, 1, CARD, load, (), FOLDERS, wanted=(WANTED,), rows=PICTURES)


def values_of(path: Path) -> tuple[int, int, int]:
    """Person, azimuth and elevation of a picture, as values of the factors."""
    name = PICTURE.fullmatch(path.name)
    numbers = tuple(int(number) for number in name.groups()) if name else ()
    known = (PEOPLE, AZIMUTHS, ELEVATIONS)
    if not numbers or any(number not in some for number, some in zip(numbers, known, strict=True)):
        raise UnweaveError(
            f"{path} should be called like yaleB01_P00A+005E-10.pgm: a person of 01 to 39 without 14, and "
            "a published direction of light. Remove it, or unpack the official archive again."
        )
    person, azimuth, elevation = numbers
    return PEOPLE.index(person), AZIMUTHS.index(azimuth), ELEVATIONS.index(elevation)


def read_face(path: Path) -> Images:
    """(1, 64, 64): the middle of a picture."""
    grey = read_pgm(path)
    if grey.shape != (HEIGHT, WIDTH):
        raise UnweaveError(
            f"{path} should be a cropped picture, {WIDTH} pixels wide and {HEIGHT} high; got "
            f"{grey.shape[1]} x {grey.shape[0]}. Use the pictures of CroppedYale.zip."
        )
    return fit_image(grey[None], (SIDE, SIDE), "crop")
