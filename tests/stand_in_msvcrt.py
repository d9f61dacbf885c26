"""The locks of Windows on another system: `msvcrt.locking` by byte-range locks of POSIX."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

LK_UNLCK, LK_NBLCK = 0, 2


def locking(descriptor: int, mode: int, count: int) -> None:
    """Lock or unlock bytes at the current position; raise PermissionError if another has locked them."""
    import fcntl

    start = os.lseek(descriptor, 0, os.SEEK_CUR)
    action = fcntl.LOCK_UN if mode == LK_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB
    try:
        fcntl.lockf(descriptor, action, count, start)
    except BlockingIOError as error:
        raise PermissionError(error.errno, "Permission denied") from None


def behave_like_windows(monkeypatch: pytest.MonkeyPatch | None = None) -> None:
    """Let unweave.locks take its path for Windows, in a test or for the rest of the process."""
    module = ModuleType("msvcrt")
    module.__dict__.update(LK_UNLCK=LK_UNLCK, LK_NBLCK=LK_NBLCK, locking=locking)
    if monkeypatch is None:
        sys.modules["msvcrt"], sys.platform = module, "win32"
    else:
        monkeypatch.setitem(sys.modules, "msvcrt", module)
        monkeypatch.setattr(sys, "platform", "win32")
