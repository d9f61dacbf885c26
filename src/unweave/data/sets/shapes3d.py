"""Shapes3D: 480,000 colour images of one object in a room, from six factors.

Burgess, Kim: "3D Shapes dataset" (2018).

The official .h5 file is read in place: of its 5.9 GB of pixels only the rows that are asked for come into
memory. Its labels are compared with the order of the grid before any image is trusted.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.data.entry import Entry
from unweave.data.files import OfficialFile, describe, locate
from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.errors import UnweaveError
from unweave.progress import Progress
from unweave.streams import Stream

NAME = "shapes3d"
SIDE = 64
SHAPE = (3, SIDE, SIDE)
FACTORS = (
    Factor("floor_hue", 10, "circular"),
    Factor("wall_hue", 10, "circular"),
    Factor("object_hue", 10, "circular"),
    Factor("scale", 8, "ordinal"),
    Factor("shape", 4, "categorical", ("cube", "cylinder", "sphere", "capsule")),
    Factor("azimuth", 15, "ordinal"),
)
SIZES = tuple(factor.size for factor in FACTORS)

FOLDERS = ("shapes3d", "3dshapes")
FILES = (
    OfficialFile(
        "3dshapes.h5",
        "sha256:0a0f6ed98baff276a50f3a081a7434d788da63cb135a98189b2a5b5769be1785",
        267_573_662,
        ("https://storage.googleapis.com/3d-shapes/3dshapes.h5",),
    ),
)
CARD = Card(
    title="3D Shapes",
    licence="Apache-2.0",
    homepage="https://github.com/google-deepmind/3d-shapes",
    citation="""@misc{3dshapes18,
  author = {Burgess, Chris and Kim, Hyunjik},
  title = {3D Shapes Dataset},
  howpublished = {https://github.com/deepmind/3dshapes-dataset/},
  year = {2018}
}""",
    note="Azimuth runs from -30 to 30 degrees only, so it is ordered, not circular.",
)

# One open file a path, and the process that opened it.
_opened: dict[Path, tuple[int, Any]] = {}


def load(root: Path, *, check: bool = True, progress: Progress | None = None) -> GroundTruth:  # noqa: ARG001
    """Shapes3D from 3dshapes.h5 under root; nothing is unpacked, so there is no progress to report."""
    path = locate(NAME, root, FOLDERS, [FILES[0].name])
    source = describe(path, FILES[0], check)
    render = StoredImages(path.resolve(), SIZES)
    render.check_file()
    return GroundTruth(NAME, FACTORS, SHAPE, render, CARD, source)


ENTRY = Entry(NAME, FACTORS, 3, CARD, load, FILES, FOLDERS, wanted=(FILES[0].name,))


@dataclass(frozen=True)
class StoredImages:
    """The rule that reads images from an .h5 file in grid order.

    It holds no open file, so that it can be pickled and sent to other processes.
    """

    path: Path
    sizes: tuple[int, ...]

    def __call__(self, factors: Factors, _stream: Stream) -> Images:
        """Images of (n, 6) factors: (n, 3, 64, 64)."""
        rows = np.ravel_multi_index(tuple(factors.T), self.sizes)
        with _explained(self.path):
            images = read_rows(_open(self.path)["images"], np.asarray(rows, np.int64))
        return np.ascontiguousarray(images.transpose(0, 3, 1, 2))

    def check_file(self) -> None:
        """Refuse a file without the expected arrays, or with its images in another order."""
        n = math.prod(self.sizes)
        _close(self.path)  # another file may have been fetched under the same name
        with _explained(self.path):
            file = _open(self.path)
            _check_array(self.path, file.get("images"), "images", (n, SIDE, SIDE, 3), "uint8")
            _check_array(self.path, file.get("labels"), "labels", (n, len(self.sizes)), "float64")
            labels = np.asarray(file["labels"][:])
        check_labels(labels, self.sizes)


def read_rows(images: Any, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The asked rows of an h5py data set of images, in the asked order, repeats included."""
    wanted, back = np.unique(rows, return_inverse=True)
    out = np.empty((len(wanted), *images.shape[1:]), np.uint8)
    done = 0
    for together in _spans(wanted, images.chunks[0] if images.chunks else 1):
        first = int(together[0])
        span = images[first : int(together[-1]) + 1]
        out[done : done + len(together)] = span[together - first]
        done += len(together)
    return out[back]


def check_labels(labels: NDArray[np.floating[Any]], sizes: tuple[int, ...], name: str = NAME) -> None:
    """Refuse labels that are not the grid in mixed radix, the last factor fastest."""
    grid = np.stack(np.unravel_index(np.arange(len(labels)), sizes), axis=1)
    rounded = np.round(labels, 4)
    wrong = np.zeros(len(labels), np.bool_)
    for j, size in enumerate(sizes):
        values = np.unique(rounded[:, j])
        if len(values) != size:
            raise UnweaveError(
                f"column {j} of the labels of {name} should have {size} different values; "
                f"got {len(values)}. Fetch {name} again."
            )
        wrong |= rounded[:, j] != values[grid[:, j]]
    if wrong.any():
        row = int(np.argmax(wrong))
        raise UnweaveError(
            f"the labels of {name} should run through the whole grid {sizes}, the last factor fastest; "
            f"{int(wrong.sum())} of {len(labels)} rows do not, the first is row {row} with "
            f"{labels[row].tolist()}. Fetch {name} again."
        )


def _spans(rows: NDArray[np.int64], chunk: int) -> list[NDArray[np.int64]]:
    """Cut increasing rows into groups that are read together.

    A compressed chunk is unpacked whole for any row of it, so each chunk is touched once. Without chunks of
    several rows, neighbours are read together.
    """
    apart = np.diff(rows // chunk) > 0 if chunk > 1 else np.diff(rows) > 1
    return np.split(rows, np.flatnonzero(apart) + 1) if len(rows) else []


def _open(path: Path) -> Any:
    """The open file. One that was opened before a fork is opened again: its position would be shared."""
    import h5py

    process, file = _opened.get(path, (None, None))
    if process != os.getpid():
        _close(path)
        file = h5py.File(path, "r", locking=False)
        _opened[path] = (os.getpid(), file)
    return file


def _close(path: Path) -> None:
    if path in _opened:
        _opened.pop(path)[1].close()


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, KeyError, RuntimeError) as error:  # what h5py raises on damaged bytes
        raise UnweaveError(f"cannot read {path} as an HDF5 file ({error}). Fetch shapes3d again.") from error


def _check_array(path: Path, stored: Any, name: str, shape: tuple[int, ...], dtype: str) -> None:
    is_array = hasattr(stored, "dtype")
    if not is_array or stored.shape != shape or stored.dtype != dtype:
        stored_form = f"{stored.shape} in {stored.dtype}" if is_array else "none"
        raise UnweaveError(
            f'{path} should hold an array "{name}" of shape {shape} in {dtype}; got {stored_form}. '
            "Fetch shapes3d again."
        )
