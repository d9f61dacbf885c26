"""What a terminal shows of a study: how far it is, and how long it will take."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields

from unweave.display.progress import LINE_EVERY, Frame, clock, has_live_display, live, short
from unweave.study.forecast import Forecast
from unweave.study.measure import Kind, Timed
from unweave.study.progress import Status, StatusCallback, tasks

KIND_FIELDS = [field.name for field in fields(Kind)]


@contextmanager
def study_display() -> Iterator[StatusCallback]:
    """Show how far a study is on standard error: a bar on a terminal, a line now and then elsewhere."""
    progress = StudyProgress()
    if has_live_display():
        with live(lambda: progress.frame) as refresh:

            def show_bar(status: Status) -> None:
                progress.update(status)
                refresh()

            yield show_bar
        return
    due = 0.0

    def show_line(status: Status) -> None:
        nonlocal due
        progress.update(status)
        if progress.elapsed >= due or status.finished:
            due = progress.elapsed + LINE_EVERY
            sys.stderr.write(f"{progress.line}\n")
            sys.stderr.flush()

    yield show_line


class StudyProgress:
    """How far a study is, with a rate and a remaining time from what was done since this object was made."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.status: Status | None = None
        self.steps_before = 0.0

    def update(self, status: Status) -> None:
        """Note how far the study is now."""
        if self.status is None:
            self.steps_before = status.steps_done
        self.status = status

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    @property
    def rate(self) -> float | None:
        """Steps of all runs together per second; None until there is something to go by."""
        status = self.status
        if status is None or status.finished or self.elapsed < 2:
            return None
        done = status.steps_done - self.steps_before
        return done / self.elapsed if done > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """An estimate of the seconds of training that are left."""
        if self.status is None or self.rate is None:
            return None
        return (self.status.steps - self.status.steps_done) / self.rate

    @property
    def frame(self) -> Frame:
        """What to draw: training is nine tenths of the bar, evaluation one."""
        status, elapsed = self.status, f"{clock(self.elapsed)} elapsed"
        if status is None:
            return Frame(None, ["starting", elapsed])
        left, rate = self.seconds_left, self.rate
        facts = [f"{status.measured:,}/{status.runs:,} runs done"]
        facts += [f"{clock(left)} left"] if left else []
        facts += [f"{short(rate)} steps/s"] if rate is not None else []
        details = [f"{status.trained:,} trained", f"{tasks(status.running)} running"]
        details += [f"{status.failed:,} failed"] if status.failed else []
        share = 0.9 * status.steps_done / max(status.steps, 1) + 0.1 * status.measured / max(status.runs, 1)
        return Frame(share, [*facts, elapsed], details)

    @property
    def line(self) -> str:
        """The same for a log file."""
        left, rate = self.seconds_left, self.rate
        pace = f"; {rate:,.0f} model-steps/s, {duration(left)} of training left" if left and rate else ""
        return f"{self.status}{pace}"


def training_table(parts: Sequence[Timed]) -> list[str]:
    """The kinds of runs of a study, how fast each trains, and the sum."""
    several = {name for name in KIND_FIELDS if len({getattr(timed.part.kind, name) for timed in parts}) > 1}

    def row(name: str, of: Sequence[Timed], rate: str) -> tuple[str, ...]:
        runs, steps = sum(timed.part.runs for timed in of), sum(timed.part.model_steps for timed in of)
        return name, f"{runs:,}", f"{steps:,}", rate, short(sum(timed.seconds for timed in of) / 3600)

    rows: list[tuple[str, ...]] = [("kind", "runs", "model-steps", "a second", "hours")]
    for timed in parts:
        rate = f"{'' if timed.measured else '~'}{short(timed.rate)}"
        rows.append(row(_name(timed.part.kind, several), [timed], rate))
    if len(parts) > 1:
        rows.append(row("sum", parts, ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join([cells[0].ljust(widths[0]), *map(str.rjust, cells[1:], widths[1:])]) for cells in rows]
    note = "~ not measured: as slow as the slowest that was"
    return lines + [note] * any(not timed.measured for timed in parts)


def forecast_lines(forecast: Forecast, only_here: bool) -> list[str]:
    """What evaluation adds to training, and the sum: on a GPU machine other processes measure meanwhile."""
    runs, crew = forecast.runs, forecast.crew
    of, but = (", whose data is here", ", but for evaluating the others") if only_here else ("", "")
    if crew.separate:
        means = f"{crew.training} GPU{'s' if crew.training > 1 else ''}"
    else:
        means = f"{crew.training} worker{'s' if crew.training > 1 else ''} of {crew.threads} threads"
    total = f"about {duration(forecast.total)} in all with {means}{but}"
    if not runs:
        return [total]
    adds = f"{duration(forecast.measuring)} more"
    if crew.separate:
        adds = f"{duration(forecast.encoding)} more of the GPU to encode, and meanwhile "
        adds += f"{duration(forecast.measuring)} of {crew.measuring} processes"
    each = f"{short(forecast.evaluation.seconds / runs)} seconds each"
    return [f"evaluation of {runs:,} runs{of}: {each}, {adds}", total]


def _name(kind: Kind, several: Collection[str]) -> str:
    """The kind in words: channels, further networks, and what else the kinds of the study differ in."""
    words = [f"{kind.channels} channel{'s' if kind.channels > 1 else ''}"]
    words += [f"{kind.images} images a step"] if "images" in several else []
    written = [name for name in ("architecture", "precision", "own") if name in several]
    words += [word for name in written if (word := getattr(kind, name))]
    words += [f"{kind.players} more network{'s' if kind.players > 1 else ''}"] if kind.players else []
    return ", ".join(words)


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.0f} seconds"
