"""One process at a time: lock files that cannot outlive the process that holds them."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Literal

from unweave.errors import UnweaveError

LOCKED_BYTE = 2**30  # Windows blocks reads of a locked byte, so it lies far beyond the content
POLL = 0.05  # seconds between two attempts on Windows, which has no lock that waits without limit


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """Hold path.lock; the system releases it when the process ends, also after a kill.

    Others wait, including threads of this process. The lock file stays: removing it would let a third one in.
    On a file system without locks no process waits, so writers must check what others wrote.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("a", encoding="utf-8") as file:
        while not _lock(file, wait=True):
            time.sleep(POLL)
        try:
            yield
        finally:
            _unlock(file)


@contextmanager
def claim(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file `path`, or raise an error at once that names the process that holds it.

    The system releases the lock when the process ends, also after a kill. The file is removed on release.
    `what` is the subject of the error message.
    """
    with _claimed(path, what) as file:
        file.seek(0)
        file.truncate()
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "born": process_start(os.getpid())}
        file.write(json.dumps(holder))
        file.flush()
        try:
            yield
        finally:
            _release(path, file)


def holder_of(path: Path) -> Literal["alive", "dead", "elsewhere"] | None:
    """How the process that claimed a lock file fares; None if there is no such file, or no process in it.

    The file of a killed process stays, so its process is looked for. A process of another machine cannot be
    seen. The lock itself is not tried: that could keep a process that starts from getting it.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        pid, host, born = int(record["pid"]), record["host"], record.get("born")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if host != socket.gethostname():
        return "elsewhere"
    start = process_start(pid)
    return "alive" if start is not None and born in (None, start) else "dead"


def process_start(pid: int) -> str | None:
    """When a process of this machine began; None if there is no such process.

    Process ids are reused; the id together with the start time is unique. Linux counts in ticks since the
    machine began, other systems in seconds.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    except OSError:
        return None if Path("/proc/self/stat").exists() else _start_without_proc(pid)


def _start_without_proc(pid: int) -> str | None:
    """When a process of macOS or Windows began. On Windows, `os.kill(pid, 0)` would end the process."""
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except psutil.AccessDenied:
        return "unknown"
    except psutil.NoSuchProcess:
        return None


def _claimed(path: Path, what: str) -> IO[str]:
    """The lock file, open and locked by this process."""
    while True:
        file = path.open("a+", encoding="utf-8")
        if not _lock(file, wait=False):
            holder = _holder(file)
            file.close()
            raise UnweaveError(
                f"{what} is in use by {holder}. Wait until it has finished, or stop it, and run the same "
                "command again."
            )
        if _is_at(path, file):
            return file
        file.close()  # its last holder removed it after it was opened here: open the new one


def _lock(file: IO[str], *, wait: bool) -> bool:
    """Lock an open file; False if another has locked it. On a file system without locks, always True.

    On Windows `wait` has no effect.
    """
    if sys.platform == "win32":
        import msvcrt

        return _lock_byte(file, msvcrt.LK_NBLCK)
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        pass
    return True


def _unlock(file: IO[str]) -> None:
    """Unlock a file before it is closed: a closed file is unlocked at once on POSIX, but later on Windows."""
    if sys.platform == "win32":
        import msvcrt

        _lock_byte(file, msvcrt.LK_UNLCK)


def _lock_byte(file: IO[str], action: int) -> bool:
    """Lock or unlock, on Windows, the byte that stands for the whole file; False if another has locked it."""
    if sys.platform == "win32":
        import msvcrt

        position = os.lseek(file.fileno(), 0, os.SEEK_CUR)
        os.lseek(file.fileno(), LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(file.fileno(), action, 1)
        except PermissionError:
            return False
        except OSError:  # a file system without locks
            pass
        finally:
            os.lseek(file.fileno(), position, os.SEEK_SET)
    return True


def _release(path: Path, file: IO[str]) -> None:
    """Remove and unlock a claimed file. Windows cannot remove an open file, so it is closed first."""
    if sys.platform == "win32":
        file.seek(0)
        file.truncate()
        _unlock(file)
        file.close()
        with suppress(PermissionError):  # the next process has already opened it
            path.unlink(missing_ok=True)
    else:
        path.unlink(missing_ok=True)


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
