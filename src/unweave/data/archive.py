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
        paths = {archive.parent / name: size for name, size in record["members"].items()}
        if record["checksum"] == file.checksum and all(p.stat().st_size == n for p, n in paths.items()):
            return list(paths)
    return []


def unpack(archive: Path, file: OfficialFile) -> list[Path]:
    """Extract the wanted members into the folder of the archive, then remove it; return their paths."""
    scratch = archive.with_name(f"{archive.name}{UNPACKING}")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        names = _extract(archive, file, scratch)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    sizes = {name: (scratch / name).stat().st_size for name in names}
    for name in names:
        target = archive.parent / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (scratch / name).replace(target)
    record = scratch / "members"
    record.write_text(json.dumps({"checksum": file.checksum, "members": sizes}, indent=1))
    record.replace(_marker(archive))
    shutil.rmtree(scratch)
    archive.unlink()
    return [archive.parent / name for name in names]


def _extract(archive: Path, file: OfficialFile, folder: Path) -> list[str]:
    """Put the wanted members into the folder, flat or with their own folders; return their names in order."""
    names: set[str] = set()
    wanted = file.unpack
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                path = PurePosixPath(member.name)
                # Names with a dot in front are what an operating system left in the archive.
                if not member.isreg() or not path.match(wanted) or path.name.startswith("."):
                    continue
                name = path.as_posix() if file.tree else path.name
                if name in names:
                    raise UnweaveError(f'{archive} has two members "{name}"; "{wanted}" must choose one.')
                if path.is_absolute() or ".." in path.parts:
                    raise UnweaveError(f'{archive} has a member that points outside of it, "{path}".')
                _copy(tar, member, folder / name)
                names.add(name)
    except _BROKEN as error:
        raise UnweaveError(
            f"{archive} cannot be unpacked: {error}. Delete it and run the command again."
        ) from error
    if not names:
        raise UnweaveError(f'{archive} has no member "{wanted}". Delete it and run the command again.')
    return sorted(names)


def _copy(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    stored = tar.extractfile(member)
    if stored is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with stored, target.open("wb") as out:
            shutil.copyfileobj(stored, out)


def _marker(archive: Path) -> Path:
    return archive.with_name(f"{archive.name}.unpacked")
