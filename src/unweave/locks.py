"""One process at a time: a lock file that cannot outlive the process that holds it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """Hold path.lock; the system lets go of it when the process ends, however it ends.

    Others, threads of this process too, wait. The lock file stays: to remove it would let a third one in.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as file:
        try:
            import fcntl
        except ImportError:  # Windows: nobody waits, so whoever writes must notice that others wrote too
            yield
            return
        # A file system that knows no locks: as on Windows.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
