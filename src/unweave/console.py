"""What commands show: tables as wide as they are, and a bar while something takes time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID


class Report(Protocol):
    """Tells how much of a long job is done."""

    def __call__(self, done: int, total: int, what: str = ...) -> None:
        """Say that `done` of `total` is done of `what`."""


def console() -> Console:
    """What tables are printed on. A pipe or a file has no width: lines are not cut to 80 columns there."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 200)


@contextmanager
def progress(title: str) -> Iterator[Report]:
    """A progress bar on the terminal, shown only when there is something to wait for."""
    from rich.console import Console
    from rich.progress import Progress, TimeRemainingColumn

    with Progress(
        *Progress.get_default_columns()[:-1],
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        tasks: dict[str, TaskID] = {}

        def report(done: int, total: int, what: str = title) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what)
            bar.update(tasks[what], completed=done, total=total)

        yield report
