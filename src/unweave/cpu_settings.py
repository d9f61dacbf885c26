"""Settings of a process for work on a CPU: speed, and numbers that do not depend on the number of cores."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # the names and numbers of malloc.h
KEPT_BYTES = 1 << 30
LARGEST_BYTES = (1 << 28, 1 << 25)  # of a tensor whose memory is kept; older C libraries accept the second
MEMORY_VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
SPIN_VARIABLES = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
SPINS = 10_000  # about 200 microseconds, longer than the pause between two operations of a step


@cache
def keep_freed_memory() -> bool:
    """Let the process keep up to 1 GiB of freed memory for its next tensors; return whether it does.

    By default, the C library of Linux returns the memory of large tensors to the system as soon as they are
    freed, and the next step gets it back page by page: about 12,000 page faults in a step of the study's
    networks, a fifth of its time. Variables by which a user has chosen otherwise are respected.
    """
    if sys.platform != "linux" or any(name in os.environ for name in MEMORY_VARIABLES):
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if set_option is None:
        return False
    kept = bool(set_option(M_TRIM_THRESHOLD, KEPT_BYTES))
    return kept and any(set_option(M_MMAP_THRESHOLD, largest) for largest in LARGEST_BYTES)


def wait_asleep() -> None:
    """Let threads of GNU OpenMP sleep soon when they wait for each other; has an effect before torch loads.

    By default they wait in a loop for milliseconds. If another process uses the same cores, a thread then
    waits for one that cannot run, at every operation of a step.
    """
    if not any(name in os.environ for name in SPIN_VARIABLES):
        os.environ["GOMP_SPINCOUNT"] = str(SPINS)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let linear algebra of NumPy, SciPy and scikit-learn use one thread.

    Small matrices are slower on several cores, and the last digits of products depend on their number.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield
