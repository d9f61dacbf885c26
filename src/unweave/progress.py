"""How a long job reports its progress to the code that started it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A function that a long job calls with the amount done, the total amount, and what is being done.

    `what` is left out where a job has one part only. A job with several parts counts each of them from 0.
    """

    def __call__(self, done: int, total: int, what: str = ..., /) -> None:
        """Report that `done` of `total` is finished."""


def no_progress(_done: int, _total: int, _what: str = "", /) -> None:
    """A `Progress` that shows nothing."""
