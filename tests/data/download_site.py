"""A web server for downloads that misbehaves on request, and what the tests of downloads share."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from unweave.data.files import OfficialFile

CONTENT = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(20_000))  # 640,000 bytes
SIZE = len(CONTENT)
SHA256 = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


@dataclass
class Site:
    """What the server does: contents by path, and how it answers."""

    contents: dict[str, bytes] = field(default_factory=lambda: {"/a.npz": CONTENT})
    etag: str = '"one"'
    ranges: bool = True
    length: bool = True
    cut_after: int | None = None
    status: dict[str, int] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    content_range: str = ""
    address: str = ""
    # (path, Range, If-Range, status of the answer)
    requests: list[tuple[str, str | None, str | None, int]] = field(default_factory=list)

    @property
    def seen(self) -> list[tuple[str | None, int]]:
        return [(asked, status) for _, asked, _, status in self.requests]

    def answer(self, path: str, asked: str | None, if_range: str | None) -> tuple[int, dict[str, str], bytes]:
        if path in self.moved:
            return 302, {"Location": self.moved[path]}, b""
        if path in self.status or path not in self.contents:
            return self.status.get(path, 404), {}, b"no"
        content, headers = self.contents[path], {"ETag": self.etag} if self.etag else {}
        if asked is None or not self.ranges or if_range not in (None, self.etag):
            return 200, headers, content
        start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= len(content):
            return 416, headers | {"Content-Range": f"bytes */{len(content)}"}, b""
        sent = self.content_range or f"bytes {start}-{len(content) - 1}/{len(content)}"
        return 206, headers | {"Content-Range": sent}, content[start:]


@contextmanager
def serving() -> Iterator[Site]:
    """A site that is served while this is open."""
    state = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked, if_range = self.headers["Range"], self.headers["If-Range"]
            status, headers, body = state.answer(self.path, asked, if_range)
            state.requests.append((self.path, asked, if_range, status))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if state.length:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if state.cut_after is None else body[: state.cut_after])

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


def official(site: Site, checksum: str = SHA256, size: int | None = SIZE) -> OfficialFile:
    """The file a.npz of the site."""
    return OfficialFile("a.npz", checksum, size, (f"{site.address}/a.npz",))


def names(folder: Path) -> set[str]:
    """The names of the files in a folder, without locks."""
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"}


def in_another_process(script: str, *arguments: str) -> subprocess.Popen[str]:
    """A process of its own that runs the script."""
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
