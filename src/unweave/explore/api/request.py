"""What a page asks of the server: the words after the question mark of its address, and what it sends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from unweave.explore.api.answer import Answer
from unweave.explore.subject import Subject


@dataclass(frozen=True)
class Request:
    """The query of an address, the last value of each name, and the JSON object that was sent, if any."""

    query: Mapping[str, str]
    body: Mapping[str, Any]


# (method, path) -> what answers it. None means that there is nothing at this address for this subject.
Routes: TypeAlias = Mapping[tuple[str, str], Callable[[Subject, Request], Answer | None]]
