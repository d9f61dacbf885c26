"""MPI3D: colour images of a robot arm that holds an object, drawn in two ways or photographed.

Gondal et al.: "On the transfer of inductive bias from simulation to the real world: a new disentanglement
dataset" (NeurIPS 2019).

The three data sets mpi3d_toy, mpi3d_realistic and mpi3d_real have the same factors. Two editions of the
files are around: that of the challenge with 4 colours and 4 shapes (460,800 images), and the full one with 6
and 6 (1,036,800); which one it is shows in the file. The images (up to 12.7 GB) never come into memory
together: they are mapped where they lie if the file is not compressed, else unpacked once into the cache.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.data.cache import cached_table, fingerprint
from unweave.data.entry import Entry
from unweave.data.files import OfficialFile, describe, locate
from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images, Render
from unweave.data.npz import Member
from unweave.errors import UnweaveError, did_you_mean
from unweave.progress import Progress
from unweave.streams import Stream

SIDE = 64
SHAPE = (3, SIDE, SIDE)
_OTHER_FACTORS = (
    Factor("object_size", 2, "ordinal", ("small", "large")),
    Factor("camera_height", 3, "ordinal", ("top", "centre", "bottom")),
    Factor("background_colour", 3, "categorical", ("purple", "sea green", "salmon")),
    Factor("horizontal_axis", 40, "ordinal"),
    Factor("vertical_axis", 40, "ordinal"),
)
FACTORS = (
    Factor("object_colour", 6, "categorical", ("white", "green", "red", "blue", "brown", "olive")),
    Factor("object_shape", 6, "categorical", ("cone", "cube", "cylinder", "hexagonal", "pyramid", "sphere")),
    *_OTHER_FACTORS,
)
CHALLENGE_FACTORS = (
    Factor("object_colour", 4, "categorical", ("green", "red", "blue", "brown")),
    Factor("object_shape", 4, "categorical", ("cone", "cube", "hexagonal", "sphere")),
    *_OTHER_FACTORS,
)
EDITIONS = (FACTORS, CHALLENGE_FACTORS)

ADDRESS = "https://storage.googleapis.com/mpi3d_disentanglement_dataset/data/"
FILES = {
    name: OfficialFile(f"{name}.npz", f"md5:{md5}", urls=(f"{ADDRESS}{name}.npz",))
    for name, md5 in (
        ("mpi3d_toy", "55889cb7c7dfc655d6e0277beee88868"),
        ("mpi3d_realistic", "59a6225b88b635365f70c91b3e52f70f"),
        ("mpi3d_real", "0f33f609918fb5c97996692f91129802"),
    )
}
FOLDERS = {name: (name, "mpi3d") for name in FILES}
CARD = Card(
    title="MPI3D",
    licence="CC BY 4.0",
    homepage="https://github.com/rr-learning/disentanglement_dataset",
    citation="""@inproceedings{gondal2019transfer,
  author = {Gondal, Muhammad Waleed and W{\\"u}thrich, Manuel and Miladinovi{\\'c}, {\\DJ}or{\\dj}e and
    Locatello, Francesco and Breidt, Martin and Volchkov, Valentin and Akpo, Joel and Bachem, Olivier and
    Sch{\\"o}lkopf, Bernhard and Bauer, Stefan},
  title = {On the Transfer of Inductive Bias from Simulation to the Real World: a New Disentanglement
    Dataset},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {32},
  year = {2019}
}""",
    note="Files with 4 colours and 4 shapes (460,800 images) and with 6 and 6 (1,036,800) are both read.",
)


def load(name: str, root: Path, *, check: bool = True, progress: Progress | None = None) -> GroundTruth:
    """One of mpi3d_toy, mpi3d_realistic, mpi3d_real, from its .npz file under root."""
    if name not in FILES:
        raise UnweaveError(f'there is no data set "{name}" in MPI3D. {did_you_mean(name, FILES)}')
    file = FILES[name]
    path = locate(name, root, FOLDERS[name], [file.name])
    source = describe(path, file, check)
    member = Member(path, "images")
    factors = edition(member)
    images = open_images(member, f"{name}-{fingerprint(source)}", progress)
    return GroundTruth(name, factors, SHAPE, render_from(images, factors), CARD, source)


def _entry(name: str) -> Entry:
    file = FILES[name]
    return Entry(name, FACTORS, 3, CARD, partial(load, name), (file,), FOLDERS[name], wanted=(file.name,))


TOY, REALISTIC, REAL = (_entry(name) for name in FILES)


def edition(member: Member) -> tuple[Factor, ...]:
    """The factors of the edition that the file holds, by its number of images or by its axes."""
    for factors in EDITIONS:
        sizes = tuple(factor.size for factor in factors)
        image = (SIDE, SIDE, 3)
        if member.dtype == np.uint8 and member.shape in ((math.prod(sizes), *image), (*sizes, *image)):
            return factors
    raise UnweaveError(
        f"images in {member.path} should be (460800, 64, 64, 3) or (1036800, 64, 64, 3) in uint8, with one "
        f"row an image; got {member.shape} in {member.dtype}."
    )


def open_images(member: Member, table_name: str, progress: Progress | None = None) -> NDArray[np.uint8]:
    """(n, 64, 64, 3): the images mapped where they lie, or unpacked into a table of the cache."""
    n = math.prod(member.shape[:-3])
    mapped = member.mapped()
    if mapped is not None:
        return mapped.reshape(n, *member.shape[-3:])

    return cached_table(table_name, (n, *member.shape[-3:]), lambda: member.chunks(3), progress)


def render_from(images: NDArray[Any], factors: tuple[Factor, ...]) -> Render:
    """A rule that looks images up in grid order and puts their channels first."""
    sizes = tuple(factor.size for factor in factors)

    def render(values: Factors, _stream: Stream) -> Images:
        rows = images[np.ravel_multi_index(tuple(values.T), sizes)]
        return np.ascontiguousarray(np.asarray(rows).transpose(0, 3, 1, 2))

    return render
