"""What all commands share: their help, how strictly options are read, and how errors are printed."""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, get_args

from cyclopts import App, CycloptsError, UnusedCliTokensError

from unweave.commands.console import FLAGS_HELP, is_verbose, print_problem, split_verbosity, verbosity
from unweave.cpu_settings import wait_asleep
from unweave.errors import PluginChangedWarning, UnweaveError
from unweave.lazy import NEEDS_TORCH

if TYPE_CHECKING:
    from cyclopts import ArgumentCollection
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

PICTURE = (".png", ".pdf", ".svg", ".jpg", ".jpeg", ".webp", ".tif", ".tiff")
TABLE = (".parquet", ".csv")
LINE_BREAK = re.compile(r"(?<=\S)\n[ \t]*(?=\S)")  # inside of a paragraph


@dataclass(frozen=True)
class HelpPrinter:
    """Prints help texts: descriptions break where the terminal ends, not where the source does."""

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        """Print the usage line."""
        from cyclopts.help import DefaultFormatter

        DefaultFormatter().render_usage(console, options, usage)

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:
        """Print what the command does."""
        from cyclopts.help import DefaultFormatter

        DefaultFormatter().render_description(console, options, description)

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Print a panel of commands or of options."""
        from cyclopts.help import DefaultFormatter
        from rich.text import Text

        for entry in panel.entries:
            text = getattr(entry.description, "primary_renderable", None)
            if isinstance(text, Text):
                text.plain = LINE_BREAK.sub(" ", text.plain)
        DefaultFormatter()(console, options, panel)


def command_app(name: str, description: str, version: str | None = None) -> App:
    """A group of commands."""
    return App(
        name=name,
        help=description,
        version=version,
        help_format="plaintext",
        help_formatter=HelpPrinter(),
        help_epilogue=FLAGS_HELP,
        config=refuse_fractions,
        suppress_keyboard_interrupt=False,
    )


def run_command_line(app: App, words: Sequence[str]) -> None:
    """Run a command: user errors are one sentence and exit status 2, with --verbose after the traceback."""
    wait_asleep()
    try:
        tokens, level = split_verbosity(words)
    except UnweaveError as error:
        sys.exit(_refuse(error))
    with verbosity(level), warnings_as_lines():
        try:
            app(tokens, exit_on_error=False, print_error=False)
        except (UnweaveError, CycloptsError) as error:
            sys.exit(_refuse(error))
        except KeyboardInterrupt:
            sys.stderr.write("unweave: stopped.\n")
            sys.exit(130)
        except BrokenPipeError:  # the reader of our output, such as `head`, has gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except MemoryError as error:
            sys.exit(_refuse(error))
        except ImportError as error:
            if error.name != "torch":
                raise
            sys.exit(_refuse(error))
        except OSError as error:
            if error.filename is None:
                raise
            sys.exit(_refuse(error))


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Print warnings about plug-ins as one line, without the place in the source."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, PluginChangedWarning):
                print_problem(str(message))
            else:
                usual(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


def _refuse(error: Exception) -> int:
    """Print an error as one line."""
    message = str(error)
    if isinstance(error, UnusedCliTokensError):
        words = ", ".join(f'"{word}"' for word in error.unused_tokens or ())
        message = f"the command does not take {words}. Leave that out, or see its options with --help."
    if isinstance(error, MemoryError):
        message = f"there is not enough memory ({message or 'out of memory'}). Ask for less at a time."
    if isinstance(error, ImportError):
        message = NEEDS_TORCH
    if isinstance(error, OSError):
        reason = (error.strerror or "unknown reason").lower()
        message = f"cannot use {error.filename}: {reason}. Check the path and its permissions."
    if is_verbose():
        traceback.print_exception(error)
    sys.stderr.write(f"unweave: {' '.join(message.split())}\n")
    return 2


def check_output(path: Path | None, endings: Collection[str] = ()) -> None:
    """Refuse a file that cannot be written, before anything takes time; make the folder that it goes to."""
    if path is None:
        return
    if path.is_dir():
        raise UnweaveError(f"{path} is a folder. Name a file to write.")
    if endings and path.suffix.lower() not in endings:
        raise UnweaveError(f"{path} must end in {' or '.join(endings)}.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "it is a file" if path.parent.is_file() else (error.strerror or "unknown reason").lower()
        raise UnweaveError(f"cannot write into {path.parent}: {reason}. Name another file.") from error
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UnweaveError(f"cannot write {path}: permission denied. Name another file.")


def check_device(name: str) -> None:
    """Refuse the name of no device, without torch, which takes seconds to import."""
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", name):
        raise UnweaveError(f'there is no device "{name}". Use auto, cpu, cuda or cuda:1.')


def refuse_fractions(_app: App, _commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse 1.5 for an option that takes a whole number; cyclopts would round it."""
    for argument in arguments:
        kinds = set(_leaves(argument.hint))
        if int not in kinds or kinds & {float, str}:
            continue
        for token in argument.tokens:
            if _is_fraction(token.value):
                raise UnweaveError(f"{argument.name} takes a whole number; got {token.value}.")


def _leaves(hint: Any) -> Iterator[Any]:
    """The types that a hint such as `tuple[int, int] | None` is made of."""
    parts = get_args(hint)
    if not parts:
        yield hint
    for part in parts:
        yield from _leaves(part)


def _is_fraction(text: str) -> bool:
    try:
        return not float(text).is_integer()
    except ValueError:
        return False  # no number at all: cyclopts says so
