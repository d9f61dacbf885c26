"""Progress displays: a bar with numbers that fits any terminal, or a line now and then in a log file.

Training and studies share them. A display never prints to standard output, so results can be redirected.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeAlias

from unweave.display.notebook import in_notebook, live_html, progress_html

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

BAR = (8, 40)  # least and largest width of the bar, in columns
ONE_LINE_BAR = 20  # details share the line of the bar only if they leave it this many columns
LINE_EVERY = 30.0  # seconds between two lines in a log file
WINDOW = 30.0  # seconds over which a rate is measured
USUAL_LOSSES = ("reconstruction", "kl", "total_correlation")
SHORT_NAMES = {"reconstruction": "rec", "total_correlation": "tc"}

Draw: TypeAlias = Callable[[], "Frame"]


class TrainingReport(Protocol):
    """What the trainer reports at each line of the log; `unweave.training.trainer.Report` is one."""

    @property
    def step(self) -> int:
        """Updates that the population has made."""

    @property
    def steps(self) -> int:
        """Updates of its longest run."""

    @property
    def runs(self) -> tuple[str, ...]:
        """Ids of the runs that train together."""

    @property
    def terms(self) -> tuple[dict[str, float], ...]:
        """Losses by name, one record for each run."""

    @property
    def seconds(self) -> float:
        """Seconds since the population started."""


class Frame:
    """One state of a progress display, drawn to the width of the terminal.

    `facts` follow the bar, the most important first: those at the end are left out in a narrow terminal.
    `details` share the line with the bar if all of them fit, else they get a second line. Each of them may
    have a shorter form, which is used before the line is cut. `share` is None where it is not known yet.
    """

    def __init__(
        self,
        share: float | None,
        facts: Sequence[str],
        details: Sequence[str] = (),
        short_details: Sequence[str] | None = None,
    ) -> None:
        self.share, self.facts, self.details = share, list(facts), ", ".join(details)
        self.short_details = ", ".join(details if short_details is None else short_details)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        width = options.max_width
        facts = self.fitting_facts(width)
        alone = width - len(facts) - 2
        left = alone - len(self.details) - 2
        one_line = bool(self.details) and left >= ONE_LINE_BAR
        bar = ProgressBar(
            total=None if self.share is None else 1.0,
            completed=self.share or 0.0,
            width=min(BAR[1], left if one_line else max(alone, 1)),
        )
        texts = [facts, self.details] if one_line else [facts]
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_row(bar, *(Text(text, no_wrap=True) for text in texts))
        yield line
        if self.details and not one_line:
            text = self.details if len(self.details) <= width else self.short_details
            yield Text(text, no_wrap=True, overflow="ellipsis")

    @property
    def html(self) -> str:
        """The same for a notebook."""
        return progress_html(self.share, [*self.facts, self.details])

    def fitting_facts(self, width: int) -> str:
        """The facts that leave room for a bar, at least one."""
        number = len(self.facts)
        while number > 1 and len("  ".join(self.facts[:number])) + 2 + BAR[0] > width:
            number -= 1
        return "  ".join(self.facts[:number])


def has_live_display() -> bool:
    """Whether what was drawn can be drawn again: on a terminal, or in a notebook."""
    from rich.console import Console

    if in_notebook():
        return True

    screen = Console(stderr=True)
    return sys.stderr.isatty() and screen.is_terminal and not screen.is_dumb_terminal


@contextmanager
def live(draw: Draw) -> Iterator[Callable[[], None]]:
    """Show what `draw` returns, several times a second; yield a function that shows it at once.

    The last state stays on the screen.
    """
    from rich.console import Console
    from rich.live import Live

    if in_notebook():
        with live_html(lambda: draw().html) as refresh:
            yield refresh
        return

    with Live(
        get_renderable=draw,
        console=Console(stderr=True),
        redirect_stdout=False,
        redirect_stderr=False,
        refresh_per_second=5,
    ) as shown:
        try:
            yield shown.refresh
        except Exception:
            shown.transient = True  # an error message does not stand below a bar that never moved
            raise


class Rate:
    """Work per second over the last half minute."""

    def __init__(self) -> None:
        self.samples: deque[tuple[float, float]] = deque()

    def add(self, done: float, at: float | None = None) -> None:
        """Note how much is done now, or at another time of the monotonic clock."""
        now = time.monotonic() if at is None else at
        self.samples.append((now, done))
        while len(self.samples) > 2 and now - self.samples[1][0] > WINDOW:
            self.samples.popleft()

    def restart(self) -> None:
        """Forget what was measured: something else is counted from here on."""
        self.samples.clear()

    @property
    def value(self) -> float | None:
        """Work per second; None until there is something to measure."""
        if len(self.samples) < 2:
            return None
        (start, before), (end, after) = self.samples[0], self.samples[-1]
        return (after - before) / (end - start) if end > start and after > before else None


class TrainingProgress:
    """How far the training of some runs is.

    `lengths` are the steps of each run by its id, `starts` the steps that it has when training starts: those
    of its checkpoint, or all of them where it is finished.
    """

    def __init__(self, lengths: Mapping[str, int], starts: Mapping[str, int] | None = None) -> None:
        self.lengths = dict(lengths)
        self.done = {run: min((starts or {}).get(run, 0), steps) for run, steps in lengths.items()}
        self.report: TrainingReport | None = None
        self.activity = ""
        self.started = time.monotonic()
        self.updates, self.work = Rate(), Rate()  # steps of the population; steps of all runs together

    def update(self, report: TrainingReport) -> None:
        """Note a report of the trainer."""
        now, before = time.monotonic(), self.report
        if before is None or before.runs != report.runs:
            self._start_population(report, now - report.seconds)
        self.report, self.activity = report, ""
        for run in report.runs:
            self.done[run] = min(report.step, self.lengths.get(run, report.steps))
        self.updates.add(report.step, now)
        self.work.add(sum(self.done.values()), now)

    def _start_population(self, report: TrainingReport, at: float) -> None:
        """Begin to measure another population; runs that left the one before have ended."""
        for run in self.report.runs if self.report is not None else ():
            if run not in report.runs:
                self.done[run] = self.lengths.get(run, self.done[run])
        continued = self.report is not None and set(report.runs) < set(self.report.runs)
        self.updates.restart()
        self.work.restart()
        if not continued:
            self.updates.add(min(self.done.get(run, 0) for run in report.runs), at)
            self.work.add(sum(self.done.values()), at)

    def do(self, activity: str) -> None:
        """Note what goes on besides training, such as "drawing pictures"."""
        self.activity = activity

    @property
    def complete(self) -> bool:
        """Whether all runs are trained."""
        return all(self.done[run] >= steps for run, steps in self.lengths.items())

    @property
    def share(self) -> float | None:
        """The share of all steps that is done; None before anything is."""
        total, done = sum(self.lengths.values()), sum(self.done.values())
        return done / total if total and (done or self.report) else None

    @property
    def seconds_left(self) -> float | None:
        """An estimate of the seconds until all runs are trained."""
        rate = self.work.value
        left = sum(self.lengths.values()) - sum(self.done.values())
        return left / rate if rate and left > 0 else None

    @property
    def position(self) -> str:
        """The step of the population that trains."""
        step = self.report.step if self.report else max(self.done.values(), default=0)
        steps = self.report.steps if self.report else max(self.lengths.values(), default=0)
        return f"{step:,}/{steps:,} steps"

    @property
    def trained(self) -> str:
        """How many of the runs are trained."""
        trained = sum(self.done[run] >= steps for run, steps in self.lengths.items())
        return f"{trained}/{len(self.lengths)} runs trained"

    @property
    def frame(self) -> Frame:
        """What to draw."""
        left, rate = self.seconds_left, self.updates.value
        facts = [self.position]
        facts += [f"{clock(left)} left"] if left is not None else []
        facts += [self.trained] if len(self.lengths) > 1 else []
        facts += [f"{short(rate)} steps/s"] if rate is not None else []
        facts += [f"{clock(time.monotonic() - self.started)} elapsed"]
        if self.activity:
            return Frame(self.share, facts, [self.activity])
        return Frame(self.share, facts, losses(self.report), losses(self.report, SHORT_NAMES))

    @property
    def line(self) -> str:
        """The same for a log file."""
        report = self.report
        if report is None:
            return ""
        left, rate = self.seconds_left, self.updates.value
        pace = f"; {short(rate)} steps/s, {clock(left)} left" if rate and left is not None else ""
        return f"step {report.step:,} of {report.steps:,}: {', '.join(losses(report))}{pace}"


@contextmanager
def training_display(progress: TrainingProgress) -> Iterator[Callable[[TrainingReport], None]]:
    """Show how training goes on standard error: a bar on a terminal, a line now and then elsewhere."""
    if has_live_display():
        with live(lambda: progress.frame) as refresh:

            def show_bar(report: TrainingReport) -> None:
                progress.update(report)
                refresh()

            yield show_bar
        return
    due = 0.0

    def show_line(report: TrainingReport) -> None:
        nonlocal due
        progress.update(report)
        if time.monotonic() >= due or report.step == report.steps:
            due = time.monotonic() + LINE_EVERY
            sys.stderr.write(f"{progress.line}\n")
            sys.stderr.flush()

    yield show_line


def losses(report: TrainingReport | None, names: Mapping[str, str] | None = None) -> list[str]:
    """The losses of a report, means over its runs: the usual ones, or the first three that it has."""
    if report is None:
        return []
    known = dict.fromkeys(name for terms in report.terms for name in terms)
    chosen: Collection[str] = [name for name in USUAL_LOSSES if name in known] or list(known)[:3]
    parts = []
    for name in chosen:
        values = [terms[name] for terms in report.terms if name in terms]
        parts.append(f"{(names or {}).get(name, name)} {sum(values) / len(values):.4g}")
    return parts


def clock(seconds: float) -> str:
    """Seconds as on a clock.

    >>> clock(7), clock(3725), clock(200_000)
    ('0:07', '1:02:05', '2 days 7:33:20')
    """
    whole = max(0, round(seconds))
    days, hours, minutes = whole // 86_400, whole // 3600 % 24, whole // 60 % 60
    text = f"{hours}:{minutes:02}:{whole % 60:02}" if days or hours else f"{minutes}:{whole % 60:02}"
    return f"{days} day{'s' if days > 1 else ''} {text}" if days else text


def short(number: float) -> str:
    """A number with three digits, or all digits before the point.

    >>> short(0.01234), short(45.678), short(12345.6)
    ('0.0123', '45.7', '12,346')
    """
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
