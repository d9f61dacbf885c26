"""Downloads of official files: resumed where they were cut, checked before they get their name.

While NAME is on its way its bytes are in NAME.part, and NAME.part.origin says from which address, and in
which version, they came. NAME appears only when size and checksum are right.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib import request
from urllib.error import HTTPError, URLError

from unweave.data.archive import unpack, unpacked
from unweave.data.files import OfficialFile, mismatch
from unweave.errors import UnweaveError
from unweave.locks import hold
from unweave.progress import Progress, no_progress

TIMEOUT = 30.0  # seconds without a byte
BLOCK = 1 << 18

_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)")


class _AddressError(Exception):
    """Why an address did not give the file; the next one is tried."""


def fetch(
    data_set: str, files: Sequence[OfficialFile], folder: Path, progress: Progress | None = None
) -> list[Path]:
    """Download the files into the folder, unless they are there; return their paths.

    For an archive these are the paths of its wanted members. Processes that fetch the same file into the
    same folder wait for each other. `progress` gets bytes; the total is the bytes done where the server does
    not say how many there are.
    """
    paths: list[Path] = []
    for file in files:
        try:
            paths += _present(file, folder) or _obtain(data_set, file, folder, progress)
        except OSError as error:
            raise UnweaveError(_explain(error, file, folder)) from error
    return paths


def _present(file: OfficialFile, folder: Path) -> list[Path]:
    """What is wanted of the file, if all of it is there; else nothing."""
    path = folder / file.name
    if file.unpack:
        return unpacked(path, file)
    return [path] if _is_official(path, file) else []


def _is_official(path: Path, file: OfficialFile) -> bool:
    return path.is_file() and not mismatch(path, file)


def _obtain(data_set: str, file: OfficialFile, folder: Path, progress: Progress | None) -> list[Path]:
    path = folder / file.name
    with hold(path):
        # Another process may have fetched it while we waited.
        if present := _present(file, folder):
            return present
        if not _is_official(path, file):
            _download(data_set, file, path, progress)
        return unpack(path, file) if file.unpack else [path]


def _download(data_set: str, file: OfficialFile, path: Path, progress: Progress | None) -> None:
    """Try the addresses in order until one gives the right file."""
    if not file.urls:
        raise UnweaveError(
            f"{file.name} of {data_set} cannot be downloaded: no public address is known for it. "
            f"Get it from its makers and put it into {path.parent}."
        )
    part = path.with_name(f"{file.name}.part")
    if file.size is not None and _length(part) >= file.size and not _accept_or_discard(part, file):
        return
    failures = []
    for url in file.urls:
        try:
            _receive(url, file, part, progress)
        except _AddressError as failure:
            failures.append(f"{url}: {failure}")
            continue
        wrong = _accept_or_discard(part, file)
        if not wrong:
            return
        failures.append(f"{url}: what came {wrong}, and was deleted")
    done = _length(part)
    resumable = f" Running the command again continues from the {done:,} bytes that are kept." if done else ""
    raise UnweaveError(
        f"{file.name} of {data_set} could not be downloaded ({'; '.join(failures)}).{resumable} "
        f"Try again later, or download it by hand into {path.parent}."
    )


def _accept_or_discard(part: Path, file: OfficialFile) -> str:
    """Give a finished download its name; or, if it is not the official file, delete it and return why."""
    wrong = mismatch(part, file)
    if wrong:
        _discard(part)
    else:
        part.replace(part.with_name(file.name))
        _origin(part).unlink(missing_ok=True)
    return wrong


def _receive(url: str, file: OfficialFile, part: Path, progress: Progress | None) -> None:
    """Download into the part, from where it ends if that is safe; return when all bytes are there."""
    done, version = _resume_point(url, file, part)
    with _ask(url, done, version) as answer:
        start, total = _range(answer)
        if answer.status == 416 and total == done:
            return  # nothing lies behind the end of the part: it is complete
        if answer.status == 206 and start != done:
            raise _AddressError("it sent another part of the file than was asked for")
        if answer.status != 416:
            if file.size is not None and total not in (None, file.size):
                raise _AddressError(f"it has a file of {total:,} bytes, and {file.size:,} were expected")
            if not done or answer.status != 206:  # the server cannot resume, or its file has changed
                done = 0
                _begin(url, answer, part)
            _copy(answer, part, done, total or file.size, file.name, progress or no_progress)
            return
    _discard(part)  # the part is longer than the file, so it is of another one
    _receive(url, file, part, progress)


def _copy(answer: Any, part: Path, done: int, total: int | None, name: str, progress: Progress) -> None:
    """Append what the server sends to the part, which has `done` bytes of `total` already."""
    with part.open("ab") as out:
        progress(done, total or done, name)
        while total is None or done < total:
            block = _read(answer, BLOCK if total is None else min(BLOCK, total - done))
            if not block:
                break
            out.write(block)
            done += len(block)
            progress(done, total or done, name)
        out.flush()
        os.fsync(out.fileno())
    if total is not None and done < total:
        raise _AddressError(f"the connection was cut after {done:,} of {total:,} bytes")


def _resume_point(url: str, file: OfficialFile, part: Path) -> tuple[int, str]:
    """How many bytes need not be sent again, and the version of the file they are of, where known.

    Two halves are put together only if something vouches that they fit: the address says that its file
    is still of that version, or the whole has a published checksum.
    """
    begun_at, version = "", ""
    with suppress(OSError, ValueError):
        begun_at, version = _origin(part).read_text().split("\n")
    version = version if begun_at == url else ""
    return (_length(part) if version or file.checksum else 0), version


def _begin(url: str, answer: Any, part: Path) -> None:
    """Start an empty part and note where it comes from."""
    _discard(part)
    tag = answer.headers.get("ETag", "")
    # A weak tag (W/) does not promise equal bytes.
    version = tag if tag.startswith('"') else answer.headers.get("Last-Modified", "")
    _origin(part).write_text(f"{url}\n{version}")


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _origin(part).unlink(missing_ok=True)


def _origin(part: Path) -> Path:
    return part.with_name(f"{part.name}.origin")


def _length(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _ask(url: str, done: int, version: str) -> Any:
    """The answer to a request for all bytes from `done` on: status 200, 206, or 416 if there are none."""
    headers = {"User-Agent": "unweave"}
    if done:
        headers["Range"] = f"bytes={done}-"
        headers |= {"If-Range": version} if version else {}
    try:
        # The opener knows http, https and file only.
        return _opener().open(request.Request(url, headers=headers), timeout=TIMEOUT)  # noqa: S310
    except HTTPError as error:
        if error.code == 416 and done:
            return error
        with error:
            raise _AddressError(f"HTTP status {error.code}, {error.reason}") from error
    except (OSError, HTTPException, ValueError) as error:
        raise _AddressError(_reason(error)) from error


def _opener() -> request.OpenerDirector:
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler,
        request.UnknownHandler,
        request.HTTPHandler,
        request.HTTPSHandler,
        request.HTTPDefaultErrorHandler,
        request.HTTPRedirectHandler,
        request.HTTPErrorProcessor,
        request.FileHandler,
    ):
        opener.add_handler(handler())
    return opener


def _range(answer: Any) -> tuple[int | None, int | None]:
    """First byte that is sent, and length of the whole file, as far as the answer says."""
    if content_range := _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", "")):
        start, total = content_range.groups()
        return int(start) if start else None, None if total == "*" else int(total)
    length = answer.headers.get("Content-Length", "")
    return None, int(length) if length.isdecimal() else None


def _read(answer: Any, most: int) -> bytes:
    try:
        block: bytes = answer.read1(most)
    except (OSError, HTTPException) as error:
        raise _AddressError(f"the connection was cut ({_reason(error)})") from error
    return block


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, TimeoutError):
        return f"no answer for {TIMEOUT:.0f} seconds"
    return str(getattr(cause, "strerror", None) or cause)


def _explain(error: OSError, file: OfficialFile, folder: Path) -> str:
    elsewhere = "name another folder by --data-root or UNWEAVE_DATA"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        need = "" if file.size is None else f", which has {file.size / 1e6:,.1f} MB"
        return (
            f"the disk is full: {folder} has no room for {file.name}{need}. "
            f"Make room and run the command again, which continues where it stopped, or {elsewhere}."
        )
    return (
        f"cannot put {file.name} into {folder}: {error.strerror or error}. Check the folder, or {elsewhere}."
    )
