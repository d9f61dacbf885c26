"""Where things are on the user's disk."""

from __future__ import annotations

import os
from pathlib import Path

from unweave.errors import UnweaveError


def cache_folder() -> Path:
    """Folder for what can be made again: $UNWEAVE_CACHE, or unweave in the user's cache folder."""
    if folder := os.environ.get("UNWEAVE_CACHE"):
        return Path(folder).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "unweave"


def data_root(root: str | Path | None = None) -> Path:
    """Folder of downloaded data sets: the one given, $UNWEAVE_DATA, or data in the cache folder."""
    folder = root or os.environ.get("UNWEAVE_DATA")
    return Path(folder).expanduser() if folder else cache_folder() / "data"


def as_path(value: object, what: str) -> Path:
    """A path that a user gave as text or as an object that has one; `~` is the home folder."""
    if isinstance(value, str | os.PathLike):
        return Path(value).expanduser()
    raise UnweaveError(f"{what} must be named by its path; got {value!r}.")
