"""`--watch` of the commands that train: the page of runs in training, served by a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unweave.commands.console import print_problem, say


@contextmanager
def watching(folder: Path) -> Iterator[None]:
    """Serve and open the page of a folder while runs train in it.

    On a terminal, the page stays after a training that succeeded, until Ctrl-C. Elsewhere, as in a batch job,
    no Ctrl-C can end it, so it ends with the training.
    """
    command = [sys.executable, "-m", "unweave", "explore", str(folder), "--wait"]
    # A Ctrl-C on the terminal reaches this process too, and ends it quietly.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603  our own command
        try:
            line = server.stdout.readline().strip() if server.stdout else ""
            if line:
                say(f"watch {line.partition(' (')[0]}")
            else:
                print_problem("The page cannot be served; training continues without it.")
            yield
            if line and sys.stdin.isatty() and sys.stderr.isatty():
                say("The page stays open. Ctrl-C ends it.")
                with suppress(KeyboardInterrupt):
                    server.wait()
        finally:
            server.terminate()
