"""Archives of official files: unpacked whole, or not at all.

An archive is unpacked into the folder NAME.unpacking. When all of its wanted members are there, they are
moved out of it one by one; then NAME.unpacked is written, a list of the members and their sizes, and
NAME.unpacking and the archive are removed. So NAME.unpacking marks a folder whose files are not complete
yet (`files.locate` refuses it), and NAME.unpacked one where nothing is left to do.
"""

from __future__ import annotations

import gzip
import json
import lzma
import shutil
import tarfile
import zlib
from contextlib import suppress
from pathlib import Path, PurePosixPath

from unweave.data.files import UNPACKING, OfficialFile
from unweave.errors import UnweaveError

_BROKEN = (tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)


def unpacked(archive: Path, file: OfficialFile) -> list[Path]:
    """The members of the archive, if its marker is there and they are as it says; else nothing."""
    with suppress(FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        record = json.loads(_marker(archive).read_text())
        paths = {archive.with_name(name): size for name, size in record["members"].items()}
        if record["checksum"] == file.checksum and all(p.stat().st_size == n for p, n in paths.items()):
            return list(paths)
    return []


def unpack(archive: Path, file: OfficialFile) -> list[Path]:
    """Extract the wanted members into the folder of the archive, then remove it; return their paths."""
    scratch = archive.with_name(f"{archive.name}{UNPACKING}")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        names = _extract(archive, file.unpack, scratch)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    sizes = {name: (scratch / name).stat().st_size for name in names}
    for name in names:
        (scratch / name).replace(archive.with_name(name))
    record = scratch / "members"
    record.write_text(json.dumps({"checksum": file.checksum, "members": sizes}, indent=1))
    record.replace(_marker(archive))
    scratch.rmdir()
    archive.unlink()
    return [archive.with_name(name) for name in names]


def _extract(archive: Path, wanted: str, folder: Path) -> list[str]:
    """Put the wanted members flat into the folder; return their names in order."""
    names: list[str] = []
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                path = PurePosixPath(member.name)
                # Names with a dot in front are what an operating system left in the archive.
                if not member.isreg() or not path.match(wanted) or path.name.startswith("."):
                    continue
                if path.name in names:
                    raise UnweaveError(
                        f'{archive} has two members "{path.name}"; "{wanted}" must choose one.'
                    )
                if path.is_absolute() or ".." in path.parts:
                    raise UnweaveError(f'{archive} has a member that points outside of it, "{path}".')
                stored = tar.extractfile(member)
                if stored is not None:
                    with stored, (folder / path.name).open("wb") as out:
                        shutil.copyfileobj(stored, out)
                names.append(path.name)
    except _BROKEN as error:
        raise UnweaveError(
            f"{archive} cannot be unpacked: {error}. Delete it and run the command again."
        ) from error
    if not names:
        raise UnweaveError(f'{archive} has no member "{wanted}". Delete it and run the command again.')
    return sorted(names)


def _marker(archive: Path) -> Path:
    return archive.with_name(f"{archive.name}.unpacked")
