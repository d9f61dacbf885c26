"""Loggers of a user, as they are named on the command line."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import final

from unweave.training.loggers.logger import LoggedRun


@final
class Recorder:
    """Appends each call to a file."""

    def __init__(self, run: LoggedRun) -> None:
        self.id = run.known_as or f"record of {run.name}"
        run.folder.mkdir(parents=True, exist_ok=True)
        self.path = run.folder / "calls.jsonl"
        self._add("open", run.known_as)

    def log(self, step: int, terms: Mapping[str, float]) -> None:
        self._add("log", step, dict(terms))

    def finish(self, scores: Mapping[str, float], pictures: Sequence[Path]) -> None:
        self._add("finish", dict(scores), [path.name for path in pictures])

    def close(self) -> None:
        self._add("close")

    def _add(self, *call: object) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(call) + "\n")


@final
class Broken:
    """Fails at the second line of the log."""

    id = "broken"

    def __init__(self, _run: LoggedRun) -> None:
        self.lines = 0

    def log(self, _step: int, _terms: Mapping[str, float]) -> None:
        self.lines += 1
        if self.lines == 2:
            raise ConnectionError("the server is gone\nsecond line")

    def finish(self, _scores: Mapping[str, float], _pictures: Sequence[Path]) -> None:
        raise AssertionError("a logger that failed is not used again")

    def close(self) -> None:
        raise ConnectionError("still gone")


@final
class NoLogger:
    """Has one of the methods of a logger."""

    def log(self, step: int, terms: Mapping[str, float]) -> None:
        pass
