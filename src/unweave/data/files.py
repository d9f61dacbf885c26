"""Official files of data sets: where they are, and whether they are, byte for byte, the published ones.

A run records which file its images came from, so a file is hashed before it is read. The checksum is stored
in the cache folder (verified.json) and reused until the file's size or modification time changes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unweave.errors import ChecksumError, MissingFileError, UnweaveError
from unweave.files import replacing
from unweave.places import cache_folder

CHECKSUM = re.compile("sha256:[0-9a-f]{64}|md5:[0-9a-f]{32}|git:[0-9a-f]{40}")
# The suffix of the folder that marks an archive whose members are not all in place yet.
UNPACKING = ".unpacking"


@dataclass(frozen=True)
class OfficialFile:
    """A file as its makers publish it.

    `checksum` is "sha256:<hex>", "md5:<hex>", "git:<hex>" (the git blob id: SHA-1 of "blob <size>", a zero
    byte and the content), or "" where none is published. `size` is in bytes. `urls` are tried in order.
    `unpack` is for a tar archive: the members that are wanted, matched from the right of their paths as
    in "*.mat" or "cars/*.mat"; "" where the file itself is wanted. With `tree`, members keep their folders.
    """

    name: str
    checksum: str = ""
    size: int | None = None
    urls: tuple[str, ...] = ()
    unpack: str = ""
    tree: bool = False

    def __post_init__(self) -> None:
        if self.name in ("", "..") or self.name != Path(self.name).name:
            raise UnweaveError(f'an official file has a name without folders; got "{self.name}".')
        if self.checksum and not CHECKSUM.fullmatch(self.checksum):
            raise UnweaveError(
                f"the checksum of {self.name} must be sha256:, md5: or git: with 64, 32 or 40 digits 0-9a-f; "
                f'got "{self.checksum}".'
            )


def find(root: Path, folders: Sequence[str], names: Sequence[str]) -> Path | None:
    """The first file there is: in each of the folders in root, then in root itself, names in order.

    A name may be a pattern such as "*.mat"; it stands for the first file that fits it.
    """
    for folder in _places(root, folders):
        for name in names:
            try:
                matching = sorted(path for path in folder.glob(name) if path.is_file())
            except OSError as error:
                raise UnweaveError(
                    f"cannot look into {folder}: {error.strerror}. Check the folder."
                ) from error
            if matching:
                return matching[0]
    return None


def locate(data_set: str, root: Path, folders: Sequence[str], names: Sequence[str]) -> Path:
    """The file that `find` finds, or an error that says where it was looked for and what to do."""
    path = find(root, folders, names)
    if path is None:
        looked_in = ", ".join(str(folder) for folder in _places(root, folders))
        raise MissingFileError(
            f"{data_set} needs the file {' or '.join(names)}, which is not in {looked_in}. "
            f"Run `unweave data fetch {data_set}`, "
            "or point --data-root or UNWEAVE_DATA to the folder that has it."
        )
    if any(path.parent.glob(f"*{UNPACKING}")):
        raise MissingFileError(
            f"the files of {data_set} in {path.parent} are only in part unpacked. "
            f"Run `unweave data fetch {data_set}` to unpack the rest."
        )
    return path


def verify(path: Path, file: OfficialFile) -> str:
    """Check size and checksum; return name and checksum for the record of a run."""
    try:
        wrong = mismatch(path, file)
        if wrong:
            raise ChecksumError(f"{path} {wrong}. Delete it and fetch it again with `unweave data fetch`.")
        return f"{path.name} ({file.checksum or checksum(path, 'sha256')})"
    except FileNotFoundError as error:
        raise MissingFileError(f"there is no file {path}. Fetch it with `unweave data fetch`.") from error
    except OSError as error:
        raise UnweaveError(f"cannot read {path}: {error.strerror}. Check that you may read it.") from error


def describe(path: Path, file: OfficialFile, check: bool) -> str:
    """As `verify`; without a check, the file is named by a checksum of its own and called unverified."""
    return verify(path, file) if check else f"{verify(path, OfficialFile(path.name))}, unverified"


def mismatch(path: Path, file: OfficialFile) -> str:
    """How the file differs from the official one, as a phrase that follows its name; "" if it does not."""
    size = path.stat().st_size
    if file.size is not None and size < file.size:
        return f"is cut short: it has {size:,} of {file.size:,} bytes"
    if file.size is not None and size > file.size:
        return f"is too long: it has {size:,} bytes, and {file.size:,} were expected"
    if not file.checksum:
        return ""
    actual = checksum(path, file.checksum.partition(":")[0])
    if actual == file.checksum:
        return ""
    return f"is not the published file: expected {file.checksum}, got {actual}"


def checksum(path: Path, kind: str) -> str:
    """The checksum of a file, "kind:<hex>"; remembered until the file changes."""
    # The status is taken first: if the file changes while it is hashed, the memory will not fit it.
    status = path.stat()
    key, stamp = str(path.resolve()), [status.st_size, status.st_mtime_ns]
    match _remembered().get(key):
        case [size, changed, str(known)] if [size, changed] == stamp:
            if CHECKSUM.fullmatch(known) and known.startswith(f"{kind}:"):
                return known
    actual = f"{kind}:{_digest(path, kind, status.st_size)}"
    _remember(key, [*stamp, actual])
    return actual


def _digest(path: Path, kind: str, size: int) -> str:
    begun = hashlib.new("sha1" if kind == "git" else kind, usedforsecurity=False)
    if kind == "git":
        begun.update(b"blob %d\0" % size)
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: begun).hexdigest()


def _places(root: Path, folders: Sequence[str]) -> list[Path]:
    return [*(root / folder for folder in folders), root]


def _remembered() -> dict[str, Any]:
    """Path -> [size, time of change, checksum]; empty if there is no record that can be read."""
    with suppress(OSError, ValueError, RecursionError):
        record = json.loads((cache_folder() / "verified.json").read_text())
        if isinstance(record, dict):
            return record
    return {}


def _remember(key: str, entry: list[Any]) -> None:
    """Add to the record, and drop files that are gone. If this fails, the file is hashed again next time."""
    path = cache_folder() / "verified.json"
    with suppress(OSError):
        present = {known: value for known, value in _remembered().items() if Path(known).exists()}
        with replacing(path) as part:
            part.write_text(json.dumps(present | {key: entry}))
