"""3DIdent and Causal3DIdent: rendered objects with ten continuous factors.

Zimmermann, Sharma, Schneider, Bethge, Brendel: "Contrastive learning inverts the data generating process"
(ICML 2021): 250,000 images of a teapot with independent factors. Von Kuegelgen, Sharma, Gresele, Brendel,
Schoelkopf, Besserve, Locatello: "Self-supervised learning with data augmentations provably isolates content
from style" (NeurIPS 2021): 250,000 images of seven objects, with factors that depend on each other.

Both are read from the training part of the official archives: pictures of 224 x 224 pixels, which are shrunk
to 64 x 64 with a Lanczos filter, and the factors in raw_latents.npy, scaled to -1 .. 1.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unweave.data.collection import Collection, Continuous
from unweave.data.entry import Entry
from unweave.data.files import OfficialFile, checksum, locate
from unweave.data.grid import Card, Factor
from unweave.data.npy import read_npy
from unweave.data.picture_rows import Decoded, collection_of, decoded_pictures
from unweave.errors import UnweaveError
from unweave.progress import Progress

NAME, CAUSAL = "three_d_ident", "causal3dident"
OBJECTS = 7
LATENTS = (
    *("object_x", "object_y", "object_z"),
    *("rotation_alpha", "rotation_beta", "rotation_gamma"),
    *("spotlight_angle", "object_hue", "spotlight_hue", "background_hue"),
)
FACTORS = tuple(Continuous(name, -1.0, 1.0) for name in LATENTS)
CAUSAL_FACTORS: tuple[Factor | Continuous, ...] = (Factor("object", OBJECTS, "categorical"), *FACTORS)
TOLERANCE = 1e-6

FOLDERS = ("three_d_ident", "three_d_ident/3dident/train", "3dident/train")
CAUSAL_FOLDERS = ("causal3dident", "causal3dident/trainset", "Causal3DIdent/trainset")
FILES = (
    OfficialFile(
        "3dident_train.tar",
        "md5:df132b4dacf04fa28e1c8ca9d2168634",
        urls=("https://zenodo.org/record/4502485/files/3dident_train.tar",),
        unpack="*",
        tree=True,
    ),
)
CAUSAL_FILES = (
    OfficialFile(
        "trainset.tar.gz",
        "md5:acd98fda30eee75856dbbc7c54a27e45",
        urls=("https://zenodo.org/record/4784282/files/trainset.tar.gz",),
        unpack="*",
        tree=True,
    ),
)
CARD = Card(
    title="3DIdent",
    licence="stated on its page at Zenodo",
    homepage="https://zenodo.org/record/4502485",
    citation="""@inproceedings{zimmermann2021contrastive,
  author = {Zimmermann, Roland S. and Sharma, Yash and Schneider, Steffen and Bethge, Matthias and
    Brendel, Wieland},
  title = {Contrastive Learning Inverts the Data Generating Process},
  booktitle = {International Conference on Machine Learning},
  pages = {12979--12990},
  year = {2021}
}""",
    note="The training part; factors are scaled to -1 .. 1.",
)
CAUSAL_CARD = Card(
    title="Causal3DIdent",
    licence="stated on its page at Zenodo",
    homepage="https://zenodo.org/record/4784282",
    citation="""@inproceedings{vonkugelgen2021self,
  author = {von K{\\"u}gelgen, Julius and Sharma, Yash and Gresele, Luigi and Brendel, Wieland and
    Sch{\\"o}lkopf, Bernhard and Besserve, Michel and Locatello, Francesco},
  title = {Self-Supervised Learning with Data Augmentations Provably Isolates Content from Style},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {34},
  year = {2021}
}""",
    note="The training part; factors are scaled to -1 .. 1 and depend on each other.",
)


def load(root: Path, *, check: bool = True, progress: Progress | None = None) -> Collection:  # noqa: ARG001
    """3DIdent from images/ and raw_latents.npy under root; a checksum is published for the archive only."""
    path = locate(NAME, root, FOLDERS, ["raw_latents.npy"])
    values = read_latents(path)
    _refuse_further(path, "images", len(values))
    decoded = decoded_pictures(NAME, path.parent, numbered("images", len(values)), progress=progress)
    return collection_of(NAME, FACTORS, _with_latents(decoded, [path]), values, CARD)


def load_causal(
    root: Path,
    *,
    check: bool = True,  # noqa: ARG001
    progress: Progress | None = None,
) -> Collection:
    """Causal3DIdent from images_0/ .. images_6/ and raw_latents_0.npy .. raw_latents_6.npy under root."""
    paths = [locate(CAUSAL, root, CAUSAL_FOLDERS, [f"raw_latents_{number}.npy"]) for number in range(OBJECTS)]
    parts = [read_latents(path) for path in paths]
    for number, (path, part) in enumerate(zip(paths, parts, strict=True)):
        _refuse_further(path, f"images_{number}", len(part))
    files = [file for i, part in enumerate(parts) for file in numbered(f"images_{i}", len(part))]
    objects = np.repeat(np.arange(OBJECTS, dtype=np.float64), [len(part) for part in parts])
    values = np.column_stack([objects, np.concatenate(parts)])
    decoded = decoded_pictures(CAUSAL, paths[0].parent, files, progress=progress)
    return collection_of(CAUSAL, CAUSAL_FACTORS, _with_latents(decoded, paths), values, CAUSAL_CARD)


ENTRY = Entry(NAME, FACTORS, 3, CARD, load, FILES, FOLDERS, wanted=("raw_latents.npy",), rows=250_000)
CAUSAL_ENTRY = Entry(
    CAUSAL,
    CAUSAL_FACTORS,
    3,
    CAUSAL_CARD,
    load_causal,
    CAUSAL_FILES,
    CAUSAL_FOLDERS,
    wanted=("raw_latents_0.npy",),
    rows=250_000,
)


def read_latents(path: Path) -> NDArray[np.float64]:
    """(n, 10) factors in -1 .. 1."""
    latents = read_npy(path, "Unpack it again.")
    if latents.ndim != 2 or latents.shape[1] != len(LATENTS) or not len(latents):
        raise UnweaveError(
            f"{path} should hold an array of shape (n, {len(LATENTS)}), a row for each picture; got "
            f"{latents.shape}. Unpack it again."
        )
    values: NDArray[np.float64] = latents.astype(np.float64)
    if not (np.abs(values) <= 1 + TOLERANCE).all():
        raise UnweaveError(
            f"{path} should hold numbers from -1 to 1; got {values.min():g} to {values.max():g}. Take the "
            "file raw_latents of the archive, not the file latents."
        )
    return np.clip(values, -1, 1)


def _refuse_further(path: Path, folder: str, count: int) -> None:
    """Refuse fewer factors than pictures."""
    further = _picture(folder, count, count + 1)
    if (path.parent / further).exists():
        raise UnweaveError(
            f"{path} has factors of {count:,} pictures, and there are more: {further}. Unpack the official "
            "archive again."
        )


def numbered(folder: str, count: int) -> list[str]:
    """The pictures of a folder: their numbers have as many digits as the count needs."""
    return [_picture(folder, number, count) for number in range(count)]


def _picture(folder: str, number: int, count: int) -> str:
    digits = math.ceil(math.log10(count))
    return f"{folder}/{str(number).zfill(digits)}.png"


def _with_latents(decoded: Decoded, paths: list[Path]) -> Decoded:
    marks = ", ".join(f"{path.name} ({checksum(path, 'sha256')})" for path in paths)
    return Decoded(decoded.table, f"{decoded.source}; {marks}")
