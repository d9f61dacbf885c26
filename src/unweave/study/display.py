"""The progress of a study, as a bar on a terminal or as lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields

from unweave.study.evaluation_time import EvaluationTime
from unweave.study.measure import Kind, Timed
from unweave.study.progress import Status

KIND_FIELDS = [field.name for field in fields(Kind)]


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


def training_table(found: Sequence[Timed]) -> list[str]:
    """The kinds of runs of a study, how fast each trains, and the sum."""
    several = {name for name in KIND_FIELDS if len({getattr(each.part.kind, name) for each in found}) > 1}

    def row(name: str, of: Sequence[Timed], rate: str) -> tuple[str, ...]:
        runs, steps = sum(each.part.runs for each in of), sum(each.part.model_steps for each in of)
        return name, f"{runs:,}", f"{steps:,}", rate, _short(sum(each.seconds for each in of) / 3600)

    rows: list[tuple[str, ...]] = [("kind", "runs", "model-steps", "a second", "hours")]
    for each in found:
        rate = f"{'' if each.measured else '~'}{_short(each.rate)}"
        rows.append(row(_name(each.part.kind, several), [each], rate))
    if len(found) > 1:
        rows.append(row("sum", found, ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join([cells[0].ljust(widths[0]), *map(str.rjust, cells[1:], widths[1:])]) for cells in rows]
    note = "~ not measured: as slow as the slowest that was"
    return lines + [note] * any(not each.measured for each in found)


def evaluation_lines(
    found: EvaluationTime, training: float, cores: int, runs: int, only_here: bool
) -> list[str]:
    """What evaluation adds to so many seconds of training: on a GPU machine the cores measure meanwhile."""
    each = f"{_short(found.core / runs)} seconds of a core each"
    if found.on_gpu:
        number = max(1, cores - 1)
        total = max(training + found.gpu, found.core / number)
        adds = f"{duration(found.gpu)} more of the GPU to encode, and meanwhile "
        adds += f"{duration(found.core / number)} of {number} cores"
    else:
        total = training + found.core / cores
        adds = f"{duration(found.core / cores)} more on {cores} cores"
    of, but = (", whose data is here", ", but for evaluating the others") if only_here else ("", "")
    return [f"evaluation of {runs:,} runs{of}: {each}, {adds}", f"about {duration(total)} in all{but}"]


def _short(number: float) -> str:
    """Three digits or more."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _name(kind: Kind, several: Collection[str]) -> str:
    """The kind in words: channels, further networks, and what else the kinds of the study differ in."""
    words = [f"{kind.channels} channel{'s' if kind.channels > 1 else ''}"]
    words += [f"{kind.images} images a step"] if "images" in several else []
    words += [getattr(kind, name) for name in ("architecture", "precision") if name in several]
    words += [f"{kind.players} more network{'s' if kind.players > 1 else ''}"] if kind.players else []
    return ", ".join(words)


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.0f} seconds"
