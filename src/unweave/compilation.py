"""Functions compiled by Numba: kept on the disk for later processes, and announced when compiled.

Compiled code is cached next to the source, or in the user's cache folder where the source is read-only. Only
the first use takes seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import config, njit
from numba.core import event

from unweave.display.notebook import in_notebook
from unweave.places import cache_folder

COMPILE = "numba:compile"  # the event exists only where code is compiled, not where it is loaded


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function that Numba compiles when it is first called; `options` are those of numba.njit.

    Where neither the package's folder nor that of the user can be written, compiled code is kept in the cache
    folder of unweave; if that cannot be written either, every process compiles again.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:  # Numba has no folder to write to
            return _with_own_cache(function, options)

    return decorate


def _with_own_cache(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    settings = vars(config)  # Numba sets them from the environment, so they are not declared anywhere
    before, settings["CACHE_DIR"] = settings["CACHE_DIR"], str(cache_folder() / "compiled")
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:
        return njit(**options)(function)
    finally:
        settings["CACHE_DIR"] = before


@contextmanager
def announced() -> Iterator[None]:
    """Announce compilation within this context to someone who waits at a terminal or in a notebook."""
    if not (sys.stderr.isatty() or in_notebook()):
        yield
        return
    announcer = _Announcer()
    event.register(COMPILE, announcer)
    try:
        yield
    finally:
        event.unregister(COMPILE, announcer)


class _Announcer(event.Listener):  # type: ignore[misc]
    """Writes one line to standard error when the first function of a metric is compiled."""

    def __init__(self) -> None:
        self.done = False

    def on_start(self, event: Any) -> None:
        """Announce that a function is being compiled."""
        module = event.data["dispatcher"].py_func.__module__
        if not self.done and module.startswith("unweave.metrics."):
            self.done = True
            sys.stderr.write("unweave: compiling metrics for this machine, once (up to 15 s)\n")

    def on_end(self, event: Any) -> None:
        """Do nothing when a function has been compiled."""
