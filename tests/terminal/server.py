"""A warm process that starts commands on pseudo-terminals: it forks after it has imported what they need.

A command then costs milliseconds instead of the seconds that importing torch takes. The process has no
threads when it forks, unlike the one of the tests.

Each request is a line of JSON: {"start": ...} is answered with the command's process id and the master side
of its terminal, {"wait": pid} with its exit status.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import json
import os
import pty
import signal
import socket
import struct
import sys
import termios
import traceback
from collections.abc import Callable
from typing import Any

WARM = (
    "matplotlib.backends.backend_agg",
    "rich.live",
    "rich.markdown",
    "rich.progress",
    "rich.table",
    "unweave.cli",
    "unweave.commands.evaluate",
    "unweave.evaluation.score_store",
    "unweave.explore.export",
    "unweave.commands.explore",
    "unweave.runs.gallery",
    "unweave.commands.impossibility",
    "unweave.commands.metrics",
    "unweave.commands.report",
    "unweave.commands.select",
    "unweave.commands.study",
    "unweave.commands.train",
    "unweave.report.style",
)


def serve(channel: socket.socket) -> None:
    """Answer requests until the other side hangs up; returns only in a started command."""
    with channel.makefile("rb") as requests:
        for line in requests:
            request = json.loads(line)
            if "wait" in request:
                _, status = os.waitpid(request["wait"], 0)
                answer = {"status": os.waitstatus_to_exitcode(status)}
                channel.sendall(json.dumps(answer).encode())
                continue
            master, slave = pty.openpty()
            size = struct.pack("HHHH", request["rows"], request["columns"], 0, 0)
            fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
            pid = os.fork()
            if pid == 0:
                os.close(master)
                channel.close()
                enter(slave, request)
                return
            os.close(slave)
            socket.send_fds(channel, [json.dumps({"pid": pid}).encode()], [master])
            os.close(master)
    sys.exit(0)


def enter(slave: int, request: dict[str, Any]) -> None:
    """Make a terminal the one of this process, with the folder, environment and words of a command."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore Ctrl-C
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for stream in range(3):
        os.dup2(slave, stream)
    os.close(slave)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w", buffering=1)
    sys.stderr = os.fdopen(2, "w", buffering=1)
    sys.argv = ["unweave", *request["arguments"]]


def run_and_exit(main: Callable[[], None]) -> None:
    """Run a command and exit with its status.

    The interpreter is not taken down: that would touch, and so copy, all memory of a forked process.
    """
    status: object = 0
    try:
        main()
    except SystemExit as ended:
        status = ended.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else 1)


if __name__ == "__main__":
    for module in WARM:
        importlib.import_module(module)
    sys.modules["torch"].set_num_threads(1)
    vars(os)["fsync"] = lambda _file: None  # see tests/conftest.py
    # Subsets of TrueType fonts, one for each figure, take half of the time of a report.
    sys.modules["unweave.report.style"].SETTINGS["pdf.fonttype"] = 3
    sprites = sys.modules["unweave.data"].load("dsprites")
    sprites.observe(sprites.sample_factors(1, seed=0))  # the first look renders all sprites
    gc.freeze()  # a forked process does not copy what only its garbage collector would look at
    serve(socket.socket(fileno=int(sys.argv[1])))
    run_and_exit(sys.modules["unweave.cli"].main)
