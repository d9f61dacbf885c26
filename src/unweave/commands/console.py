"""What commands print: how much of it, tables as wide as they are, and a bar while something takes time."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

from unweave.display.progress import has_live_display
from unweave.errors import UnweaveError
from unweave.progress import Progress, no_progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

Verbosity = Literal["quiet", "normal", "verbose"]
FLAGS: dict[str, Verbosity] = {"-q": "quiet", "--quiet": "quiet", "-v": "verbose", "--verbose": "verbose"}
FLAGS_HELP = (
    "Every command takes -q or --quiet, which prints only results and errors, and -v or --verbose, which "
    "prints more detail and the traceback of an error."
)
_verbosity: ContextVar[Verbosity] = ContextVar("verbosity", default="normal")


def print_problem(text: str) -> None:
    """Print one line on standard error about something that does not end the command."""
    sys.stderr.write(f"unweave: {' '.join(text.split())}\n")


def split_verbosity(tokens: Iterable[str]) -> tuple[list[str], Verbosity]:
    """The words of a command line without --quiet and --verbose, and which of the two was among them."""
    words = list(tokens)
    end = words.index("--") if "--" in words else len(words)
    chosen = {FLAGS[word] for word in words[:end] if word in FLAGS}
    if len(chosen) > 1:
        raise UnweaveError("give either --quiet or --verbose, not both.")
    rest = [word for word in words[:end] if word not in FLAGS] + words[end:]
    return rest, chosen.pop() if chosen else "normal"


@contextmanager
def verbosity(level: Verbosity) -> Iterator[None]:
    """Print more or less while this is open."""
    token = _verbosity.set(level)
    try:
        yield
    finally:
        _verbosity.reset(token)


def is_quiet() -> bool:
    """Whether only results and errors are printed."""
    return _verbosity.get() == "quiet"


def is_verbose() -> bool:
    """Whether details and tracebacks are printed."""
    return _verbosity.get() == "verbose"


def say(text: str) -> None:
    """Print what is no result, such as what a command is about to do; not with --quiet."""
    if not is_quiet():
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def detail(text: str) -> None:
    """Print to standard error what only --verbose asks for."""
    if is_verbose():
        sys.stderr.write(f"{text}\n")


def say_next(commands: Sequence[tuple[str, str]]) -> None:
    """Print what can be done next and the commands that do it; not with --quiet."""
    for purpose, command in commands:
        say(f"to {purpose}:\n  {command}")


def show_result(text: str, indent: str = "") -> None:
    """Print a line of results; on a terminal it is broken between words."""
    if sys.stdout.isatty():
        width = max(20, console().width)
        text = "\n".join(wrap(text, width, initial_indent=indent, subsequent_indent=indent + "  "))
    else:
        text = indent + text
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def resume_line(stop: KeyboardInterrupt) -> str:
    """What to print when Ctrl-C or a signal has stopped a command that can go on later."""
    return f"{str(stop) or 'stopped'}: run the same command again to resume.\n"


def console() -> Console:
    """What tables are printed on. A pipe or a file has no width: lines are not cut to 80 columns there."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 200)


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """A progress bar on the terminal, shown only when there is something to wait for."""
    from rich import progress as rich_progress
    from rich.console import Console

    if is_quiet() or not has_live_display():  # older versions of rich print an empty line
        yield no_progress
        return
    with rich_progress.Progress(
        *rich_progress.Progress.get_default_columns()[:-1],
        rich_progress.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        tasks: dict[str, TaskID] = {}

        def report(done: int, total: int, what: str = title) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what)
            bar.update(tasks[what], completed=done, total=total)

        yield report


@contextmanager
def working(title: str) -> Iterator[None]:
    """A line on the terminal that says what goes on, for as long as this is open."""
    from rich.console import Console

    if is_quiet() or not has_live_display():
        yield
        return
    with Console(stderr=True).status(title):
        yield
