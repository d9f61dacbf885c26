"""The variants of dSprites under their names: colour, noise, Scream, and without the shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from unweave.data import variants
from unweave.data.entry import Entry, Load
from unweave.data.files import OfficialFile, locate
from unweave.data.grid import GroundTruth
from unweave.data.sets import dsprites
from unweave.progress import Progress

# No checksum of the painting's file is published: a run records the SHA-256 of the one it had.
PAINTING = OfficialFile(
    "the_scream.jpg", urls=("https://upload.wikimedia.org/wikipedia/commons/f/f4/The_Scream.jpg",)
)
PAINTING_NAMES = (PAINTING.name, "The_Scream.jpg", "scream.jpg", "scream.png")
PAINTING_FOLDERS = ("scream",)


def _from_sprites(make: Callable[[GroundTruth, str], GroundTruth], name: str) -> Load:
    def load(root: Path, *, check: bool = True, progress: Progress | None = None) -> GroundTruth:
        return make(dsprites.load(root, check=check, progress=progress), name)

    return load


def _load_scream(root: Path, *, check: bool = True, progress: Progress | None = None) -> GroundTruth:
    path = locate("scream_dsprites", root, PAINTING_FOLDERS, PAINTING_NAMES)
    sprites = dsprites.load(root, check=check, progress=progress)
    return variants.scream(sprites, "scream_dsprites", *variants.read_picture(path))


def _without_shape(ground_truth: GroundTruth, name: str) -> GroundTruth:
    return variants.hide(ground_truth, ["shape"], name)


LOCATELLO = """@inproceedings{locatello2019challenging,
  author = {Francesco Locatello and Stefan Bauer and Mario Lucic and Gunnar R{\\"a}tsch and Sylvain Gelly and
    Bernhard Sch{\\"o}lkopf and Olivier Bachem},
  title = {Challenging Common Assumptions in the Unsupervised Learning of Disentangled Representations},
  booktitle = {International Conference on Machine Learning},
  year = {2019}
}"""
_CARD = replace(dsprites.CARD, citation=f"{dsprites.CARD.citation}\n\n{LOCATELLO}")
_OF_DSPRITES = replace(dsprites.ENTRY, channels=3, card=_CARD)

COLOR = replace(_OF_DSPRITES, name="color_dsprites", load=_from_sprites(variants.colour, "color_dsprites"))
NOISY = replace(_OF_DSPRITES, name="noisy_dsprites", load=_from_sprites(variants.noise, "noisy_dsprites"))
SCREAM = replace(
    _OF_DSPRITES,
    name="scream_dsprites",
    load=_load_scream,
    files=(PAINTING,),
    folders=PAINTING_FOLDERS,
    wanted=PAINTING_NAMES,
)
NOSHAPE = Entry(
    "dsprites_noshape",
    dsprites.FACTORS[1:],
    1,
    dsprites.CARD,
    _from_sprites(_without_shape, "dsprites_noshape"),
    dsprites.FILES,
    dsprites.FOLDERS,
    looks=dsprites.SIZES[0],
)
