"""The open connections of the explorer's server: how many there may be, and how long a request may take."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

MOST_CONNECTIONS = 64  # each holds a thread; a browser opens six for a page
REQUEST_SECONDS = 30.0  # for a request to arrive completely, counted from the last answer


class Connections:
    """Connections and since when each of them waits for a request; None while a request is answered.

    A visitor who sends a byte now and then never runs into the timeout of a socket, so the time for the whole
    request is limited. All methods may be called from any thread.
    """

    def __init__(self) -> None:
        self._waiting: dict[socket.socket, float | None] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    def admit(self, connection: socket.socket) -> bool:
        """Add a connection. If there are too many, close the one that waits longest; False if none waits."""
        with self._lock:
            if len(self._waiting) >= MOST_CONNECTIONS and not self._close_oldest():
                return False
            self._waiting[connection] = time.monotonic()
            return True

    def mark_answering(self, connection: socket.socket) -> None:
        """Note that the request of a connection has arrived."""
        self._mark(connection, None)

    def mark_waiting(self, connection: socket.socket) -> None:
        """Note that the request of a connection is answered, and that it waits for the next one."""
        self._mark(connection, time.monotonic())

    def remove(self, connection: socket.socket) -> None:
        """Forget a connection that is closed."""
        with self._lock:
            self._waiting.pop(connection, None)

    def close_late(self) -> None:
        """Close the connections whose request has not arrived in time."""
        earliest = time.monotonic() - REQUEST_SECONDS
        with self._lock:
            late = [one for one, since in self._waiting.items() if since is not None and since < earliest]
            for connection in late:
                self._close(connection)

    def _mark(self, connection: socket.socket, since: float | None) -> None:
        with self._lock:
            if connection in self._waiting:
                self._waiting[connection] = since

    def _close_oldest(self) -> bool:
        waiting = [(since, one) for one, since in self._waiting.items() if since is not None]
        if not waiting:
            return False
        self._close(min(waiting, key=lambda pair: pair[0])[1])
        return True

    def _close(self, connection: socket.socket) -> None:
        """End a connection; its thread reads the end of the stream and stops."""
        del self._waiting[connection]
        with contextlib.suppress(OSError):  # the visitor has closed it already
            connection.shutdown(socket.SHUT_RDWR)
