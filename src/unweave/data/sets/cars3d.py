"""Cars3D: 17,568 colour images of 183 car models, seen from 24 sides and 4 heights.

Reed, Zhang, Zhang, Lee: "Deep visual analogy-making" (NIPS 2015).

The official archive holds one .mat file a car, with all views of it in one array. They are shrunk from
128 to 64 pixels and tabled once in the order of the grid. Cars are numbered by their sorted file names, so
that a number means the same car on every machine.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unweave.data.cache import Table, cached_table, fingerprint, table_render
from unweave.data.entry import Entry
from unweave.data.files import OfficialFile, locate, verify
from unweave.data.grid import Card, Factor, GroundTruth
from unweave.errors import UnweaveError
from unweave.progress import Progress

NAME = "cars3d"
SIDE = 64
STORED_SIDE = 128
SHAPE = (3, SIDE, SIDE)
FACTORS = (
    Factor("elevation", 4, "ordinal"),
    Factor("azimuth", 24, "circular"),
    Factor("object", 183, "categorical"),
)

FOLDERS = ("cars3d", "cars3d/cars", "cars", "data/cars")
FILES = (
    OfficialFile(
        "nips2015-analogy-data.tar.gz",
        "md5:4e866a7919c1beedf53964e6f7a23686",
        urls=(
            "https://www.scottreed.info/files/nips2015-analogy-data.tar.gz",
            "http://www.scottreed.info/files/nips2015-analogy-data.tar.gz",
        ),
        unpack="cars/*.mat",
    ),
)
CARD = Card(
    title="Cars3D",
    licence="none stated by the authors; used for research",
    homepage="https://www.scottreed.info",
    citation="""@inproceedings{reed2015deep,
  author = {Reed, Scott E. and Zhang, Yi and Zhang, Yuting and Lee, Honglak},
  title = {Deep Visual Analogy-Making},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {28},
  pages = {1252--1260},
  year = {2015}
}""",
    note="Objects are numbered by sorted file name; the order of other libraries may differ.",
)


def load(root: Path, *, check: bool = True, progress: Progress | None = None) -> GroundTruth:
    """Cars3D from its .mat files under root, shrunk once into a table (216 MB) in the cache."""
    sizes = tuple(factor.size for factor in FACTORS)
    paths = car_files(root, sizes[2])
    source = _source(paths, check)

    def chunks() -> Iterator[Table]:
        # All images are made before the first is written: the grid runs across the files.
        yield grid_images(paths, sizes[0], sizes[1], progress)

    table = cached_table(f"{NAME}-{fingerprint(source)}", (math.prod(sizes), *SHAPE), chunks)
    render = table_render(table, sizes, SHAPE, packed=False)
    return GroundTruth(NAME, FACTORS, SHAPE, render, CARD, source)


ENTRY = Entry(NAME, FACTORS, 3, CARD, load, FILES, FOLDERS, wanted=("*.mat",))


def car_files(root: Path, count: int) -> list[Path]:
    """The .mat files of the first folder that has any, in the order of their names."""
    for folder in [*(root / name for name in FOLDERS), root]:
        visible = (path for path in folder.glob("*.mat") if not path.name.startswith("."))
        paths = sorted(visible, key=lambda path: path.name)
        if paths:
            break
    # Says what to do where there are none, or where they are not all unpacked yet.
    folder = locate(NAME, root, FOLDERS, [paths[0].name if paths else "*.mat"]).parent
    if len(paths) != count:
        raise UnweaveError(
            f"cars3d needs {count} .mat files, one a car; {folder} has {len(paths)}. "
            "Put there all files of the folder data/cars of the official archive, and no others."
        )
    return paths


def grid_images(
    paths: Sequence[Path], elevations: int, azimuths: int, progress: Progress | None = None
) -> Table:
    """(elevations * azimuths * cars, 3, 64, 64) images, the car running fastest."""
    out = np.empty((elevations, azimuths, len(paths), *SHAPE), np.uint8)
    for car, path in enumerate(paths):
        out[:, :, car] = read_views(path, elevations, azimuths)
        if progress is not None:
            progress((car + 1) * elevations * azimuths, elevations * azimuths * len(paths))
    return out.reshape(-1, *SHAPE)


def read_views(path: Path, elevations: int, azimuths: int) -> NDArray[np.uint8]:
    """(elevations, azimuths, 3, 64, 64): all views of one car."""
    from PIL import Image

    stored = _read_variable(path, (STORED_SIDE, STORED_SIDE, 3, azimuths, elevations))
    views = np.ascontiguousarray(np.transpose(stored, (4, 3, 0, 1, 2)))
    out = np.empty((elevations, azimuths, *SHAPE), np.uint8)
    for view in np.ndindex(elevations, azimuths):
        small = Image.fromarray(views[view]).resize((SIDE, SIDE), Image.Resampling.LANCZOS)
        out[view] = np.asarray(small).transpose(2, 0, 1)
    return out


def _read_variable(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    from scipy.io import loadmat

    try:
        stored = loadmat(path, variable_names=["im"]).get("im")
    except Exception as error:  # scipy raises whatever the damaged bytes happen to lead to
        raise UnweaveError(f"cannot read {path} as a MATLAB file ({error}). Fetch cars3d again.") from error
    if stored is None:
        raise UnweaveError(f'{path} should hold a variable "im"; it has none. Fetch cars3d again.')
    if stored.shape != shape or stored.dtype != np.uint8:
        raise UnweaveError(
            f"im in {path} should be {shape} in uint8 (height, width, channel, azimuth, elevation); "
            f"got {stored.shape} in {stored.dtype}."
        )
    return np.asarray(stored, np.uint8)


def _source(paths: Sequence[Path], check: bool) -> str:
    """What the files are. No checksum is published for them, so that their own names them, no more."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(verify(path, OfficialFile(path.name)).encode())
    described = f"{len(paths)} .mat files (sha256 of names and checksums {digest.hexdigest()})"
    return described if check else f"{described}, unverified"
