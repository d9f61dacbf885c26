"""What the explorer is opening now, for the page that waits for it."""

from __future__ import annotations

from typing import TypedDict


class OpeningState(TypedDict):
    """What is being done, and how much of it; `total` is 0 where that is not known."""

    what: str
    done: int
    total: int


class Opening:
    """A `Progress` that keeps the last report. It may be called and read from any thread."""

    def __init__(self) -> None:
        self._state: OpeningState | None = None

    def __call__(self, done: int, total: int, what: str = "", /) -> None:
        """Note that `done` of `total` is finished."""
        self._state = {"what": what, "done": done, "total": total}

    @property
    def state(self) -> OpeningState | None:
        """The last report; None before the first."""
        return self._state
