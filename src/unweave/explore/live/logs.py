"""The log of a run that still grows: its new lines since a cursor, and its last line.

A cursor is the number of the file and an offset in it, so the reader keeps nothing, and a file that was
replaced is noticed. A last line without its end is left for later: it is being written, or was cut by a kill.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

CURSOR = re.compile(r"([0-9]{1,20})-([0-9]{1,20})")
MOST_BYTES = 1 << 21  # read at once; the rest follows with the next request
MOST_POINTS = 400  # of one part of a log; of more, neighbours are averaged
TAIL = 1 << 14  # bytes in which the last line must be

Line = dict[str, Any]


class LogPart(NamedTuple):
    """New points of a log: steps, and for each term as many values; None where a value is not finite."""

    cursor: str  # to read on from
    restarted: bool  # what was read before is void: the log was replaced when the run was resumed
    complete: bool  # nothing more can be read now
    steps: list[int]
    terms: dict[str, list[float | None]]


def read_log(path: Path | None, cursor: str = "") -> LogPart:
    """The lines of a log after a cursor; an empty cursor is the beginning."""
    nothing = LogPart("", bool(cursor), True, [], {})
    if path is None:
        return nothing
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            start = _offset(cursor, state)
            file.seek(start)
            content = file.read(MOST_BYTES)
    except OSError:  # it is being replaced
        return nothing
    end = content.rfind(b"\n") + 1
    records = [_record(text) for text in content[:end].splitlines()]
    steps, terms = _thinned([record for record in records if record is not None])
    complete = start + len(content) >= state.st_size
    return LogPart(f"{state.st_ino}-{start + end}", bool(cursor) and not start, complete, steps, terms)


def last_line(path: Path) -> Line | None:
    """The last whole line of a log; None if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            content = file.read(TAIL)
    except OSError:
        return None
    whole = content[: content.rfind(b"\n") + 1].splitlines()
    records = (_record(text) for text in reversed(whole))
    return next((record for record in records if record is not None), None)


def _offset(cursor: str, state: os.stat_result) -> int:
    """The offset of a cursor, if it belongs to this file and lies in it; else 0."""
    match = CURSOR.fullmatch(cursor)
    if match is None or int(match[1]) != state.st_ino or int(match[2]) > state.st_size:
        return 0
    return int(match[2])


def _record(text: bytes) -> Line | None:
    """A line as the record of a step; None if it is none, such as a torn one."""
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) and isinstance(line.get("step"), int) else None


def _thinned(lines: Sequence[Line]) -> tuple[list[int], dict[str, list[float | None]]]:
    """Steps and terms of lines; of too many, the means of neighbours, at the last step of each group."""
    together = math.ceil(len(lines) / MOST_POINTS) or 1
    groups = [lines[i : i + together] for i in range(0, len(lines), together)]
    names = dict.fromkeys(name for line in lines for name in line if name != "step")
    terms = {name: [_mean([line.get(name) for line in group]) for group in groups] for name in names}
    return [group[-1]["step"] for group in groups], terms


def _mean(values: Sequence[Any]) -> float | None:
    """The mean of the finite numbers with six digits; None if there are none."""
    numbers = [value for value in values if isinstance(value, int | float) and math.isfinite(value)]
    return float(f"{sum(numbers) / len(numbers):.6g}") if numbers else None
