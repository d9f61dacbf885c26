"""Falcor3D and Isaac3D: 233,280 images of a living room and 737,280 of a kitchen, as full grids.

Nie, Karras, Garg, Debnath, Patney, Patel, Anandkumar: "Semi-supervised StyleGAN for disentanglement learning"
(ICML 2020).

Pictures are numbered in the order of the grid. Those of 128 x 128 pixels, or the larger originals, are shrunk
to 64 x 64 with a Lanczos filter. If the file of labels is there, it is compared with the order of the grid.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path

from unweave.data.entry import Entry
from unweave.data.files import locate
from unweave.data.grid import Card, Factor, GroundTruth
from unweave.data.npy import read_npy
from unweave.data.picture_rows import decoded_pictures, grid_of
from unweave.data.sets.shapes3d import check_labels
from unweave.errors import UnweaveError
from unweave.progress import Progress

FALCOR, ISAAC = "falcor3d", "isaac3d"
FACTORS = {
    FALCOR: (
        Factor("lighting_intensity", 5),
        Factor("lighting_x", 6),
        Factor("lighting_y", 6),
        Factor("lighting_z", 6),
        Factor("camera_x", 6),
        Factor("camera_y", 6),
        Factor("camera_z", 6),
    ),
    ISAAC: (
        Factor("object_shape", 3, "categorical"),
        Factor("robot_x", 8),
        Factor("robot_y", 5),
        Factor("camera_height", 4),
        Factor("object_scale", 4),
        Factor("lighting_intensity", 4),
        Factor("lighting_y", 6),
        Factor("object_colour", 4, "categorical"),
        Factor("wall_colour", 4, "categorical"),
    ),
}
FOLDERS = {
    FALCOR: ("falcor3d", "Falcor3D_down128", "falcor3d/Falcor3D_down128", "Falcor3D", "falcor3d/Falcor3D"),
    ISAAC: ("isaac3d", "Isaac3D_down128", "isaac3d/Isaac3D_down128", "Isaac3D", "isaac3d/Isaac3D"),
}
LABELS = {FALCOR: "train-rec.labels", ISAAC: "labels.npy"}
FIRST = "images/000000.png"
AGAIN = "Unpack the official archive again."
CARD = Card(
    title="Falcor3D",
    licence="CC BY 4.0",
    homepage="https://github.com/NVlabs/High-res-disentanglement-datasets",
    citation="""@inproceedings{nie2020semi,
  author = {Nie, Weili and Karras, Tero and Garg, Animesh and Debnath, Shoubhik and Patney, Anjul and
    Patel, Ankit and Anandkumar, Animashree},
  title = {Semi-Supervised {StyleGAN} for Disentanglement Learning},
  booktitle = {International Conference on Machine Learning},
  pages = {7360--7369},
  year = {2020}
}""",
    note="Pictures are shrunk to 64 x 64 pixels.",
)
CARDS = {FALCOR: CARD, ISAAC: replace(CARD, title="Isaac3D")}


def load(
    name: str,
    root: Path,
    *,
    check: bool = True,  # noqa: ARG001
    progress: Progress | None = None,
) -> GroundTruth:
    """Falcor3D or Isaac3D from its folder `images` under root; no checksum of it is published."""
    folder = locate(name, root, FOLDERS[name], [FIRST]).parents[1]
    factors = FACTORS[name]
    sizes = tuple(factor.size for factor in factors)
    _check_order(name, folder / LABELS[name], sizes)
    files = [f"images/{number:06}.png" for number in range(math.prod(sizes))]
    return grid_of(name, factors, decoded_pictures(name, folder, files, progress=progress), CARDS[name])


def _check_order(name: str, path: Path, sizes: tuple[int, ...]) -> None:
    """Refuse labels that do not run through the grid in the order of the numbers of the pictures."""
    if not path.is_file():
        return
    labels = read_npy(path, AGAIN)
    expected = (math.prod(sizes), len(sizes))
    if labels.shape != expected:
        raise UnweaveError(f"{path} should hold an array of shape {expected}; got {labels.shape}. {AGAIN}")
    check_labels(labels, sizes, name)


def _entry(name: str) -> Entry:
    return Entry(name, FACTORS[name], 3, CARDS[name], partial(load, name), (), FOLDERS[name], wanted=(FIRST,))


LIVING_ROOM, KITCHEN = _entry(FALCOR), _entry(ISAAC)
