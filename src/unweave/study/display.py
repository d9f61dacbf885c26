"""The progress of a study, as a bar on a terminal or as lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from unweave.study.progress import Status


@contextmanager
def teller() -> Iterator[Callable[[Status], None]]:
    """Shows progress: a bar on a terminal, a line now and then in a file."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    clock = _Clock()
    if not sys.stderr.isatty():
        said = [-60.0]

        def tell_line(found: Status) -> None:
            if clock.elapsed - said[0] >= 30 or found.finished:
                said[0] = clock.elapsed
                sys.stderr.write(f"{found}{clock.remaining(found)}\n")
                sys.stderr.flush()

        yield tell_line
        return
    columns = (
        BarColumn(),
        TextColumn("{task.percentage:.1f}%"),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=1.0)

        def tell_bar(found: Status) -> None:
            done = 0.9 * found.steps_done / found.steps + 0.1 * found.measured / found.runs
            bar.update(task, completed=done, description=f"{found}{clock.remaining(found)}")

        yield tell_bar


class _Clock:
    """Rate and remaining time, from what was done since it started."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.first: float | None = None

    @property
    def elapsed(self) -> float:
        """Seconds since it started."""
        return time.monotonic() - self.start

    def remaining(self, found: Status) -> str:
        """What is left, in words, once there is something to go by."""
        if self.first is None:
            self.first = found.steps_done
        done = found.steps_done - self.first
        if done <= 0 or self.elapsed < 2 or found.finished:
            return ""
        rate = done / self.elapsed
        left = duration((found.steps - found.steps_done) / rate)
        return f"; {rate:,.0f} model-steps/s, {left} of training left"


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"
