"""A log that grows is read by increments: torn lines, replaced files, long files."""

import json
import math
from pathlib import Path

import pytest

from unweave.explore.live import logs
from unweave.explore.live.logs import last_line, read_log


def line(step: int, **terms: float | None) -> bytes:
    return json.dumps({"step": step, **terms}).encode() + b"\n"


def test_each_line_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    assert read_log(path) == ("", False, True, [], {}), "there is no log yet"
    path.write_bytes(line(1, loss=4.0) + line(2, loss=3.0))
    first = read_log(path)
    assert (first.steps, first.terms) == ([1, 2], {"loss": [4.0, 3.0]})
    assert read_log(path, first.cursor)[1:] == (False, True, [], {})
    with path.open("ab") as file:
        file.write(line(3, loss=2.0, kl=None))
    second = read_log(path, first.cursor)
    assert second[1:] == (False, True, [3], {"loss": [2.0], "kl": [None]})


def test_a_torn_line_waits_for_its_end(tmp_path: Path) -> None:
    path, whole = tmp_path / "log.jsonl", line(1, loss=4.0) + line(2, loss=3.0)
    path.write_bytes(whole[:-4])
    first = read_log(path)
    assert first.steps == [1]
    assert last_line(path) == {"step": 1, "loss": 4.0}
    path.write_bytes(whole)
    assert read_log(path, first.cursor).steps == [2]
    path.write_bytes(b'{"step": 5, "lo\n' + b"[1]\n" + b"\xff\xfe\n" + line(6, loss=1.0))
    assert read_log(path).steps == [6], "lines that are no records are passed over"


def test_a_log_that_was_replaced_starts_again(tmp_path: Path) -> None:
    """When a run is resumed, its log is cut by a rename: what was read before is void."""
    path, part = tmp_path / "log.jsonl", tmp_path / "part"
    path.write_bytes(line(1, loss=4.0) + line(2, loss=3.0))
    cursor = read_log(path).cursor
    part.write_bytes(line(1, loss=4.0) + line(2, loss=9.0) + line(3, loss=8.0))
    part.replace(path)
    again = read_log(path, cursor)
    assert (again.restarted, again.terms) == (True, {"loss": [4.0, 9.0, 8.0]})
    path.write_bytes(line(1, loss=4.0))
    assert read_log(path, again.cursor).restarted, "the file is shorter than what was read"
    for cursor in ("", "nonsense", "1-", "9" * 50 + "-1"):
        assert read_log(path, cursor).steps == [1]


def test_a_long_log_comes_in_parts_and_thinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_BYTES", 2000)
    monkeypatch.setattr(logs, "MOST_POINTS", 10)
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(line(step, loss=float(step)) for step in range(1, 201)))
    cursor, complete, steps, values = "", False, [], []
    while not complete:
        part = read_log(path, cursor)
        cursor, complete = part.cursor, part.complete
        assert len(part.steps) <= 10
        steps += part.steps
        values += part.terms["loss"]
    assert steps[-1] == 200
    assert steps == sorted(steps)
    assert all(value is not None and value <= step for step, value in zip(steps, values, strict=True))
    assert math.isclose(values[0] or 0, sum(range(1, steps[0] + 1)) / steps[0]), "the mean of its neighbours"
