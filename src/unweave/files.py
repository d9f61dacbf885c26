"""Atomic writes: a file is written under another name, and renamed when it is complete."""

from __future__ import annotations

import errno
import glob
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unweave.errors import DiskFullError, UnweaveError


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record as JSON, atomically."""
    write_text(path, json.dumps(record, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically; its content is on the disk before it gets its name."""
    with explained(path), replacing(path) as part, part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def replacing(path: Path, keep_suffix: bool = False) -> Iterator[Path]:
    """A path to write to, which is renamed to `path` at the end, or removed after an error.

    With `keep_suffix` it ends like `path`, for libraries that choose a format by the suffix.
    """
    suffix = path.suffix if keep_suffix else ""
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part{suffix}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def remove_parts(folder: Path, name: str | None = None) -> None:
    """Remove what killed processes left of the files that they were writing: of one file, or of all."""
    for part in folder.glob(f".{'*' if name is None else glob.escape(name)}.*.part"):
        part.unlink(missing_ok=True)


class explained:  # noqa: N801  reads as a word in a with statement
    """Turns an error of the file system into one sentence."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            what = "the disk is full" if full else str(error.strerror)
            raise (DiskFullError if full else UnweaveError)(
                f"cannot write {self.path}: {what}. {'Make room' if full else 'Fix this'} and run the same "
                "command again."
            ) from error
