"""3D Chairs: 86,366 colour images of 1,393 chairs, drawn from 31 sides and 2 heights.

Aubry, Maturana, Efros, Russell, Sivic: "Seeing 3D chairs" (CVPR 2014).

The official archive has a folder for each chair, and in it 62 pictures whose names give height and side in
degrees: rendered_chairs/CHAIR/renders/image_005_p020_t058_r096.png is seen from 20 degrees above and 58
degrees around. Pictures of 600 x 600 pixels are shrunk to 64 x 64 with a Lanczos filter.
"""

from __future__ import annotations

import re
from pathlib import Path

from unweave.data.entry import Entry
from unweave.data.files import OfficialFile, locate
from unweave.data.grid import Card, Factor, GroundTruth
from unweave.data.picture_rows import decoded_pictures, grid_of
from unweave.errors import UnweaveError
from unweave.progress import Progress

NAME = "chairs3d"
ELEVATIONS = (20, 30)
AZIMUTHS = (
    *(0, 11, 23, 34, 46, 58, 69, 81, 92, 104, 116, 127, 139, 150, 162, 174),
    *(185, 197, 209, 220, 232, 243, 255, 267, 278, 290, 301, 313, 325, 336, 348),
)
FACTORS = (
    Factor("chair", 1393, "categorical"),
    Factor("elevation", len(ELEVATIONS), "ordinal", tuple(map(str, ELEVATIONS))),
    Factor("azimuth", len(AZIMUTHS), "circular", tuple(map(str, AZIMUTHS))),
)
PICTURE = re.compile(r"image_\d+_p(\d{3})_t(\d{3})_r\d+\.png")

FOLDERS = ("chairs3d", "chairs3d/rendered_chairs", "rendered_chairs")
FILES = (
    OfficialFile(
        "rendered_chairs.tar",
        urls=("https://www.di.ens.fr/willow/research/seeing3Dchairs/data/rendered_chairs.tar",),
        unpack="renders/*.png",
        tree=True,
    ),
)
WANTED = "*/renders/image_000_p020_t000_r096.png"
CARD = Card(
    title="3D Chairs",
    licence="none stated by the authors; used for research",
    homepage="https://www.di.ens.fr/willow/research/seeing3Dchairs/",
    citation="""@inproceedings{aubry2014seeing,
  author = {Aubry, Mathieu and Maturana, Daniel and Efros, Alexei A. and Russell, Bryan C. and Sivic, Josef},
  title = {Seeing {3D} Chairs: Exemplar Part-Based {2D}-{3D} Alignment Using a Large Dataset of {CAD} Models},
  booktitle = {IEEE Conference on Computer Vision and Pattern Recognition},
  pages = {3762--3769},
  year = {2014}
}""",
    note="Chairs are numbered by the sorted names of their folders.",
)


def load(root: Path, *, check: bool = True, progress: Progress | None = None) -> GroundTruth:  # noqa: ARG001
    """3D Chairs from the folders of its archive under root; no checksum of them is published."""
    folder = locate(NAME, root, FOLDERS, [WANTED]).parents[2]
    decoded = decoded_pictures(NAME, folder, grid_files(folder, FACTORS[0].size), progress=progress)
    return grid_of(NAME, FACTORS, decoded, CARD)


ENTRY = Entry(NAME, FACTORS, 3, CARD, load, FILES, FOLDERS, wanted=(WANTED,))


def grid_files(folder: Path, count: int) -> list[str]:
    """The pictures in the order of the grid: by chair, height and side."""
    chairs = sorted(path for path in folder.iterdir() if (path / "renders").is_dir())
    if len(chairs) != count:
        raise UnweaveError(
            f"chairs3d needs {count:,} folders of chairs, each with renders; {folder} has {len(chairs):,}. "
            "Unpack the official archive rendered_chairs.tar again."
        )
    return [file for chair in chairs for file in _views(folder, chair)]


def _views(folder: Path, chair: Path) -> list[str]:
    seen: dict[tuple[int, int], str] = {}
    for path in sorted((chair / "renders").iterdir()):
        if view := PICTURE.fullmatch(path.name):
            elevation, azimuth = (int(degrees) for degrees in view.groups())
            seen[elevation, azimuth] = path.relative_to(folder).as_posix()
    wanted = [(elevation, azimuth) for elevation in ELEVATIONS for azimuth in AZIMUTHS]
    missing = [view for view in wanted if view not in seen]
    further = [file for view, file in seen.items() if view not in wanted]
    if missing or further:
        named = (
            f"image_..._p{missing[0][0]:03}_t{missing[0][1]:03}_r096.png is missing"
            if missing
            else (f"{Path(further[0]).name} is another view")
        )
        raise UnweaveError(
            f"{chair / 'renders'} should have {len(wanted)} pictures, {len(ELEVATIONS)} heights from "
            f"{len(AZIMUTHS)} sides; it has {len(seen)}, and {named}. Unpack the official archive again."
        )
    return [seen[view] for view in wanted]
