"""The explorer's web server: a fixed table of pages, a few routes of data, and nothing else.

It answers on the loopback address only, unless another host is chosen; then each visitor needs the token in
the address that was printed. No path of a request is ever joined to a folder: pages come from a table, runs
are looked up by their ids.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import re
import secrets
import socket
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from unweave.display.theme import theme_script
from unweave.errors import UnweaveError
from unweave.explore.api import compare, live, study
from unweave.explore.api.answer import Answer, error_answer, json_answer
from unweave.explore.api.request import Request, Routes
from unweave.explore.connections import Connections
from unweave.explore.scripts import pages, script_names
from unweave.explore.subject import Subject

PAGES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/live/live.css": ("live/live.css", "text/css; charset=utf-8"),
    "/compare/compare.css": ("compare/compare.css", "text/css; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
    **{f"/{name}": (name, "text/javascript; charset=utf-8") for name in script_names()},
}
# One line for each module that answers pages; what needs torch is imported when it is asked for.
ROUTES: Routes = {
    ("GET", "/theme.js"): lambda _subject, _request: Answer(
        theme_script().encode(), "text/javascript; charset=utf-8"
    ),
    ("GET", "/api/subject"): lambda subject, _request: json_answer(subject.describe()),
    ("GET", "/api/opening"): lambda subject, _request: json_answer(subject.opening.state),
    **study.ROUTES,
    **live.ROUTES,
    **compare.ROUTES,
}
RUN_ROUTE = re.compile(r"/api/run/([0-9a-f]{1,64})(?:/([a-z]+))?")
EVERYWHERE = ("", "0.0.0.0")  # noqa: S104  to bind to them is the user's choice
MOST_BYTES = 1 << 20  # of what a page sends
MOST_DROPPED_BYTES = 256 << 20  # of files that are dropped onto the page
DROP_ROUTE, BACK_ROUTE = "/api/drop", "/api/back"
LAST_PORT = 65_535
NOTHING = "there is nothing at this address."
SECURITY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class ExploreServer(ThreadingHTTPServer):
    """A server of one subject; `token` is None where only this machine can reach it."""

    daemon_threads = True
    request_queue_size = 128  # connections to be accepted; beyond them, a browser waits a second

    def __init__(self, subject: Subject, host: str = "127.0.0.1", port: int = 0) -> None:
        self.subject = self.first = subject
        self._dropped = ExitStack()  # removes the files that were dropped
        self.local = _is_loopback(host)
        self.token = None if self.local else secrets.token_urlsafe(24)
        self.host = host
        self.connections = Connections()
        if not 0 <= port <= LAST_PORT:
            raise UnweaveError(f"a port is a whole number from 0 to {LAST_PORT}; got {port}.")
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise UnweaveError(
                f"cannot serve on {host}, port {port}: {error}. Choose another --port or --host."
            ) from error

    @property
    def url(self) -> str:
        """The address to open, with the token where one is needed."""
        token = f"?token={self.token}" if self.token else ""
        host = socket.gethostname() if self.host in EVERYWHERE else self.host
        return f"http://{host}:{self.server_address[1]}/{token}"

    @property
    def cookie(self) -> str:
        """The cookie that keeps the token; browsers share cookies between the ports of a host."""
        return f"unweave_token_{self.server_address[1]}"

    def open_dropped(self, sent: bytes) -> None:
        """Show what was dropped onto the page in place of the subject, until `go_back`."""
        from unweave.explore.dropped import open_dropped, read_dropped  # here, because it is seldom used

        first, dropped = self.first, read_dropped(sent)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="unweave-")))
            opened = open_dropped(dropped, folder, first.device, first.data_root)
            self.go_back()
            self.subject, self._dropped = replace(opened, before=first.path.name), stack.pop_all()

    def go_back(self) -> None:
        """Show the first subject again, and remove what was dropped."""
        self.subject = self.first
        self._dropped.close()

    def server_close(self) -> None:
        """Close the sockets, and remove what was dropped."""
        super().server_close()
        self.go_back()

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002  as socketserver calls it
        """Whether there is room for this connection."""
        return self.connections.admit(request)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection and forget it."""
        self.connections.remove(request)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Close connections whose request takes too long; `serve_forever` calls this twice a second."""
        self.connections.close_late()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the traceback of a failure; that a visitor has gone is none."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:  # half an IPv6 address, say
        return ""


class _RefusedError(Exception):
    """A request that is not answered, and why."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: ExploreServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "unweave", ""
    timeout = 60  # seconds for an answer to be taken by the visitor
    address: SplitResult

    def do_GET(self) -> None:
        self._respond()

    def do_POST(self) -> None:
        self._respond()

    def _respond(self) -> None:
        try:
            sent = self._read()
            self.server.connections.mark_answering(self.connection)
            self.address = self._address()
            self._check_visitor()
            answer = self._page() or self._change_subject(sent)
            answer = answer or self._data(None if self.command == "GET" else self._parsed(sent))
        except _RefusedError as refused:
            self.close_connection = True
            answer = error_answer(refused.status, str(refused))
        except UnweaveError as error:
            answer = error_answer(HTTPStatus.CONFLICT, str(error))
        except (ConnectionError, TimeoutError):  # the visitor has gone
            raise
        except Exception as error:  # the page can say it; else it would only see a closed connection
            self.server.handle_error(self.request, self.client_address)
            answer = error_answer(HTTPStatus.INTERNAL_SERVER_ERROR, f"the server failed: {error!r}.")
        self._send(answer)
        self.server.connections.mark_waiting(self.connection)

    def _address(self) -> SplitResult:
        try:
            return urlsplit(self.path)
        except ValueError:
            raise _RefusedError(HTTPStatus.NOT_FOUND, NOTHING) from None

    def _check_visitor(self) -> None:
        """Refuse other sites that point a name at this machine, and network visitors without the token."""
        host = _hostname(self.headers.get("Host", ""))
        if self.server.local and not _is_loopback(host):
            raise _RefusedError(
                HTTPStatus.FORBIDDEN, "this page is served to this machine only, by its own name."
            )
        origin = self.headers.get("Origin")
        if origin is not None and origin != f"http://{self.headers.get('Host')}":
            raise _RefusedError(HTTPStatus.FORBIDDEN, "this request comes from another site.")
        if self.server.token is not None and not self._has_token(self.server.token):
            raise _RefusedError(HTTPStatus.UNAUTHORIZED, "open the address with the token that was printed.")

    def _has_token(self, token: str) -> bool:
        tokens = [*parse_qs(self.address.query).get("token", []), *self._cookies(self.server.cookie)]
        return any(hmac.compare_digest(one.encode(), token.encode()) for one in tokens)

    def _cookies(self, name: str) -> list[str]:
        """The values of a cookie; `http.cookies` reads none if one of another program is malformed."""
        pairs = [pair.partition("=") for pair in self.headers.get("Cookie", "").split(";")]
        return [value.strip() for key, _, value in pairs if key.strip() == name]

    def _page(self) -> Answer | None:
        path, token = self.address.path, self.server.token
        if self.command != "GET" or path not in PAGES:
            return None
        if token and path == "/" and self.address.query:  # keep the token, and take it out of the address
            cookie = f"{self.server.cookie}={token}; HttpOnly; SameSite=Strict; Path=/"
            return Answer(b"", "text/plain", {"Location": "/", "Set-Cookie": cookie}, HTTPStatus.SEE_OTHER)
        name, kind = PAGES[path]
        return Answer(pages().joinpath(name).read_bytes(), kind)

    def _change_subject(self, sent: bytes) -> Answer | None:
        """Open what was dropped onto the page, or go back; None if neither is asked for."""
        if self.command != "POST" or self.address.path not in (DROP_ROUTE, BACK_ROUTE):
            return None
        if not self._is_own_page():
            raise _RefusedError(
                HTTPStatus.FORBIDDEN, "files are opened only on the machine that serves the page."
            )
        if self.address.path == DROP_ROUTE:
            self.server.open_dropped(sent)
        else:
            self.server.go_back()
        return json_answer({})

    def _is_own_page(self) -> bool:
        """Whether the request is one of a page that this server serves to this machine."""
        host = self.headers.get("Host", "")
        own = self.headers.get("Origin") == f"http://{host}"
        return self.server.local and own and _is_loopback(_hostname(host))

    def _data(self, body: dict[str, Any] | None) -> Answer:
        route = RUN_ROUTE.fullmatch(self.address.path)
        if route:
            answer = self._of_run(route[1], route[2], body or {})
        else:
            respond = ROUTES.get((self.command, self.address.path))
            query = {name: values[-1] for name, values in parse_qs(self.address.query).items()}
            answer = respond(self.server.subject, Request(query, body or {})) if respond else None
        if answer is None:
            raise _RefusedError(HTTPStatus.NOT_FOUND, NOTHING)
        return answer

    def _of_run(self, run_id: str, action: str | None, body: dict[str, Any]) -> Answer | None:
        subject = self.server.subject
        if (self.command, action) == ("GET", "traversal"):
            picture = study.traversal_png(subject.run_path(run_id), subject.data_root, subject.data)
            return None if picture is None else Answer(picture, "image/png")
        from unweave.explore.api.run import ROUTES  # here, because it needs torch

        answer = ROUTES.get((self.command, action))
        return None if answer is None else answer(subject.view(run_id), body)

    def _read(self) -> bytes:
        """The body of the request; read before any refusal, or the visitor might not see the answer."""
        length = self.headers.get("Content-Length", "0")
        may_drop = self.path.partition("?")[0] == DROP_ROUTE and self._is_own_page()
        most = MOST_DROPPED_BYTES if may_drop else MOST_BYTES
        if not length.isascii() or not length.isdigit() or int(length) > most:
            raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"send at most {most} bytes.")
        sent = self.rfile.read(int(length))
        if len(sent) < int(length):
            raise ConnectionError("the connection ended before the whole request had arrived.")
        return sent

    def _parsed(self, sent: bytes) -> dict[str, Any]:
        if self.headers.get_content_type() != "application/json":
            raise _RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send JSON.")
        try:
            record = json.loads(sent)
        except (ValueError, RecursionError):
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "what was sent is not JSON.") from None
        if not isinstance(record, dict):
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "send a JSON object.")
        return record

    def _send(self, answer: Answer) -> None:
        headers = {"Content-Type": answer.kind, "Cache-Control": "no-store", **SECURITY, **answer.headers}
        try:
            self.send_response(answer.status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
        except ConnectionError:  # the visitor has gone
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name that http.server uses
        """Print no line for a request."""
