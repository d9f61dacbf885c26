"""3D Faces: 127,050 grey renders of 50 faces, under 21 sides, 11 heights and 11 lights.

Paysan, Knothe, Amberg, Romdhani, Vetter: "A 3D face model for pose and illumination invariant face
recognition" (AVSS 2009). The grid is that of Chen, Li, Grosse, Duvenaud: "Isolating sources of
disentanglement in variational autoencoders" (NeurIPS 2018).

The renders may not be passed on, so users make them from the Basel face model or get them from their authors.
The file is an array of bytes, basel_face_renders.npy: one row an image of 64 x 64 pixels, in the order of the
grid (face, azimuth, elevation, lighting; the lighting fastest), or an array with an axis for each factor.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unweave.data.cache import table_render
from unweave.data.entry import Entry
from unweave.data.files import OfficialFile, describe, locate
from unweave.data.grid import Card, Factor, GroundTruth
from unweave.data.npy import read_npy
from unweave.errors import UnweaveError
from unweave.progress import Progress

NAME = "faces3d"
SIDE = 64
SHAPE = (1, SIDE, SIDE)
FACTORS = (
    Factor("face", 50, "categorical"),
    Factor("azimuth", 21, "ordinal"),
    Factor("elevation", 11, "ordinal"),
    Factor("lighting", 11, "ordinal"),
)
FOLDERS = ("faces3d", "3dfaces")
FILES = (OfficialFile("basel_face_renders.npy"),)
CARD = Card(
    title="3D Faces",
    licence="that of the Basel face model: research only, renders may not be passed on",
    homepage="https://faces.dmi.unibas.ch/bfm/",
    citation="""@inproceedings{paysan2009face,
  author = {Paysan, Pascal and Knothe, Reinhard and Amberg, Brian and Romdhani, Sami and Vetter, Thomas},
  title = {A {3D} Face Model for Pose and Illumination Invariant Face Recognition},
  booktitle = {IEEE International Conference on Advanced Video and Signal Based Surveillance},
  pages = {296--301},
  year = {2009}
}""",
    note="Users bring their own renders: there is no official file.",
)


def load(root: Path, *, check: bool = True, progress: Progress | None = None) -> GroundTruth:  # noqa: ARG001
    """3D Faces from basel_face_renders.npy under root, which is read in place."""
    path = locate(NAME, root, FOLDERS, [FILES[0].name])
    source = describe(path, FILES[0], check)
    sizes = tuple(factor.size for factor in FACTORS)
    images = open_renders(path, sizes).reshape(-1, *SHAPE)
    return GroundTruth(NAME, FACTORS, SHAPE, table_render(images, sizes, SHAPE, packed=False), CARD, source)


ENTRY = Entry(NAME, FACTORS, 1, CARD, load, FILES, FOLDERS, wanted=(FILES[0].name,))


def open_renders(path: Path, sizes: tuple[int, ...]) -> NDArray[np.uint8]:
    """The array in the file, mapped into memory."""
    images = read_npy(path, "Save it with numpy.save.", mapped=True)
    n = math.prod(sizes)
    accepted = [(n, SIDE, SIDE), (n, *SHAPE), (*sizes, SIDE, SIDE), (*sizes, *SHAPE)]
    if images.shape not in accepted or images.dtype != np.uint8:
        raise UnweaveError(
            f"{path} should hold an array of shape {accepted[0]} or {accepted[2]} in uint8; got "
            f"{images.shape} in {images.dtype}. Save bytes in the order of the grid."
        )
    return images
