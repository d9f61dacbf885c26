"""One process at a time: lock files that cannot outlive the process that holds them."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from unweave.errors import UnweaveError


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """Hold path.lock; the system releases it when the process ends, also after a kill.

    Others, threads of this process too, wait. The lock file stays: to remove it would let a third one in.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as file:
        try:
            import fcntl
        except ImportError:  # Windows has no such locks: writers must check what others wrote
            yield
            return
        # A file system that knows no locks: as on Windows.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def claim(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file `path`, or raise an error at once that names the process that holds it.

    The system releases the lock when the process ends, also after a kill. The file is removed on release.
    `what` is the subject of the error message.
    """
    with _locked(path, what) as file:
        file.seek(0)
        file.truncate()
        file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _locked(path: Path, what: str) -> IO[str]:
    """The lock file, open and locked by this process."""
    while True:
        file = path.open("a+")
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(file)
            file.close()
            raise UnweaveError(
                f"{what} is in use by {holder}. Wait until it has finished, or stop it, and run the same "
                "command again."
            ) from None
        except (ImportError, OSError):  # Windows, or a file system without locks
            return file
        if _is_at(path, file):
            return file
        file.close()  # its last holder removed it after it was opened here: open the new one


def _is_at(path: Path, file: IO[str]) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _holder(file: IO[str]) -> str:
    file.seek(0)
    try:
        record = json.loads(file.read())
        return f"process {record['pid']} on {record['host']}"
    except (ValueError, KeyError, TypeError):  # it has the lock, and has not written yet who it is
        return "another process"
