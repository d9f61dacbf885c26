"""Trained models that are opened by name: `unweave.load("zoo:beta_tcvae-10")`.

The models are in the folder zoo/ of the repository, which is not part of the installed package. A model is
checked against its SHA-256 checksums and copied into the cache folder. Scores that are measured later are
added to the copy, so the repository does not change.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from unweave.errors import ChecksumError, UnweaveError, did_you_mean
from unweave.files import write_bytes
from unweave.layout import SCORES_FILE
from unweave.places import cache_folder

PREFIX = "zoo:"
FOLDER_VARIABLE = "UNWEAVE_ZOO"
CHECKSUMS_FILE = "checksums.txt"
REPOSITORY = Path(__file__).parents[2]  # of the source, where unweave is installed from a clone


def run_path(path: str | Path) -> Path:
    """The folder of a run: that of a model for a name such as zoo:beta_tcvae-10, else the path itself.

    `~` is the home folder.
    """
    if is_zoo_name(path):
        return _copied_model(str(path).removeprefix(PREFIX))
    return Path(path).expanduser()


def is_zoo_name(subject: object) -> bool:
    """Whether something names a model of the zoo.

    >>> [is_zoo_name(subject) for subject in ("zoo:beta_tcvae-10", "zoo/beta_tcvae-10", None)]
    [True, False, False]
    """
    return isinstance(subject, str | Path) and str(subject).startswith(PREFIX)


def zoo_folder() -> Path:
    """The folder of the models: $UNWEAVE_ZOO, or zoo/ in the repository or in the current folder."""
    if named := os.environ.get(FOLDER_VARIABLE):
        folder = Path(named).expanduser()
        if not (folder / CHECKSUMS_FILE).is_file():
            raise UnweaveError(
                f"{FOLDER_VARIABLE} must name the folder zoo/ of the unweave repository; {folder} has no "
                f"{CHECKSUMS_FILE}."
            )
        return folder
    for folder in (REPOSITORY / "zoo", Path("zoo")):
        if (folder / CHECKSUMS_FILE).is_file():
            return folder
    raise UnweaveError(
        "the models of the zoo are not part of the installed package. Clone the repository of unweave, then "
        f"run the command in it or set {FOLDER_VARIABLE} to its folder zoo/."
    )


def zoo_files(zoo: Path) -> Mapping[str, Mapping[str, str]]:
    """The SHA-256 of the files of each model, by the name of the model and the path in its folder."""
    models: dict[str, dict[str, str]] = {}
    for line in (zoo / CHECKSUMS_FILE).read_text().splitlines():
        checksum, _, name = line.partition("  ")
        model, *inside = PurePosixPath(name).parts or ("",)
        if not inside or ".." in (model, *inside) or model == "/":
            raise UnweaveError(
                f'{zoo / CHECKSUMS_FILE} must have lines such as "SHA-256  beta_tcvae-10/spec.json"; got '
                f"{line!r}. Restore the file from the repository."
            )
        models.setdefault(model, {})["/".join(inside)] = checksum
    return models


def zoo_file(zoo: Path, model: str, file: str) -> bytes:
    """The content of a file of a model, which is compared with its checksum."""
    checksum = zoo_files(zoo)[model].get(file)
    if checksum is None:
        raise UnweaveError(f"{zoo / CHECKSUMS_FILE} lacks {model}/{file}. Restore it from the repository.")
    return _checked(zoo / model / file, checksum)


def _copied_model(name: str) -> Path:
    """The folder of a model in the cache, whose files are those of the checksums."""
    zoo = zoo_folder()
    models = zoo_files(zoo)
    if name not in models:
        raise UnweaveError(f'there is no model "{name}" in the zoo. {did_you_mean(name, models)}')
    version = _sha256(repr(sorted(models[name].items())).encode())[:12]
    copy = cache_folder() / "zoo" / version / name
    for file, checksum in models[name].items():
        if not _is_intact(copy / file, checksum):
            write_bytes(copy / file, _checked(zoo / name / file, checksum))
    return copy


def _is_intact(path: Path, checksum: str) -> bool:
    """Whether a copied file is the original; scores may have been added to it."""
    return path.is_file() and (path.name == SCORES_FILE or _sha256(path.read_bytes()) == checksum)


def _checked(path: Path, checksum: str) -> bytes:
    """The content of an original file."""
    if not path.is_file():
        raise UnweaveError(f"the zoo lacks {path}. Restore the file from the repository.")
    content = path.read_bytes()
    if _sha256(content) != checksum:
        raise ChecksumError(
            f"{path} is not the file that {CHECKSUMS_FILE} describes: its SHA-256 differs. Restore the file "
            "from the repository."
        )
    return content


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
