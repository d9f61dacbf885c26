"""Commands on pseudo-terminals, and the screens that a person would see."""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyte

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
UNSET = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
PATIENCE = 120.0  # seconds; a machine that runs tests may be busy
SETTLED = 0.002  # seconds after which a screen is complete: terminals pass on what is written line by line


class Session:
    """A command that runs on a terminal."""

    def __init__(self, server: CommandServer, pid: int, terminal: int, columns: int, rows: int) -> None:
        self.server, self.pid, self.terminal = server, pid, terminal
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.lines: dict[int, str] = {}
        self.output = b""
        self.frames: list[str] = []
        self.status: int | None = None

    @property
    def text(self) -> str:
        """What is on the screen; only lines that have changed are put together again."""
        for row in self.screen.dirty:
            cells = self.screen.buffer[row]
            self.lines[row] = "".join(cells[i].data for i in range(max(cells, default=-1) + 1)).rstrip()
        self.screen.dirty.clear()
        return "\n".join(self.lines.get(row, "") for row in range(self.screen.lines)).strip("\n")

    @property
    def words(self) -> str:
        """All that was printed, without control sequences and line breaks of the terminal."""
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.output.decode(errors="replace"))
        return " ".join(plain.split())

    def read(self, seconds: float = 0.2) -> bool:
        """Take what has been printed; False when the command has ended."""
        if not select.select([self.terminal], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.terminal, 65536)
        except OSError:  # Linux says so when the last process has closed the terminal
            data = b""
        self.output += data
        self.stream.feed(data)
        if data and select.select([self.terminal], [], [], SETTLED)[0]:
            return True  # the rest of a screen follows
        if self.text and (not self.frames or self.frames[-1] != self.text):
            self.frames.append(self.text)
        return bool(data)

    def wait_for(self, pattern: str) -> None:
        """Read until the screen shows a pattern."""
        until = time.monotonic() + PATIENCE
        while not re.search(pattern, self.text):
            if not self.read() or time.monotonic() > until:
                raise AssertionError(f"{pattern!r} did not appear:\n{self.text}")

    def finish(self) -> int:
        """Read until the command ends; return its exit status."""
        until = time.monotonic() + PATIENCE
        while self.read():
            if time.monotonic() > until:
                os.kill(self.pid, signal.SIGKILL)
                raise AssertionError(f"the command does not end:\n{self.text}")
        self.status = self.server.status_of(self.pid)
        os.close(self.terminal)
        return self.status

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.terminal, keys)

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size; the command gets SIGWINCH."""
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class CommandServer:
    """The warm process that commands are forked from; see `terminal.server`."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.channel, other = socket.socketpair()
        program = Path(__file__).with_name("server.py")
        with other:
            self.process = subprocess.Popen(
                [sys.executable, str(program), str(other.fileno())],
                pass_fds=[other.fileno()],
                env=os.environ | ONE_THREAD,
                stdin=subprocess.DEVNULL,
            )

    def start(
        self,
        arguments: Sequence[str],
        folder: Path,
        columns: int = 80,
        rows: int = 50,
        **environment: str,
    ) -> Session:
        """Start a command on a terminal of a size; its environment is ours and what else is given."""
        own = {name: value for name, value in os.environ.items() if name not in UNSET}
        own |= ONE_THREAD | {"TERM": "xterm-256color", "UNWEAVE_CACHE": str(self.cache)}
        request = {
            "arguments": list(arguments),
            "folder": str(folder),
            "columns": columns,
            "rows": rows,
            "environment": own | environment,
        }
        self.channel.sendall(json.dumps(request).encode() + b"\n")
        answer, descriptors, *_ = socket.recv_fds(self.channel, 4096, 1)
        return Session(self, json.loads(answer)["pid"], descriptors[0], columns, rows)

    def run(self, arguments: Sequence[str], folder: Path, **options: Any) -> Session:
        """Start a command and wait for its end."""
        session = self.start(arguments, folder, **options)
        session.finish()
        return session

    def status_of(self, pid: int) -> int:
        """The exit status of a command that has ended."""
        self.channel.sendall(json.dumps({"wait": pid}).encode() + b"\n")
        answer: Mapping[str, int] = json.loads(self.channel.recv(4096))
        return answer["status"]

    def close(self) -> None:
        """End the process."""
        self.channel.close()
        self.process.wait()
