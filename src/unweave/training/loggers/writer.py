"""Sends what runs log to loggers, without disturbing their training.

The run's own log is the source: what a logger has not recorded of it, because the run was trained without
the logger before, is added first. A file `logged.json` in the logger's folder has the last recorded step, so
that steps which are repeated after a kill are not recorded twice.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from unweave.files import replacing
from unweave.layout import PICTURES_FOLDER
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.training.loggers.logger import LoggedRun, Logger, LoggerClass, logger_named
from unweave.training.trainer import Report, Tell

RECORD_FILE = "logged.json"


@dataclass
class _Record:
    """What a logger has recorded of a run."""

    path: Path
    id: str = ""
    step: int = 0
    finished: list[str] | None = None  # the names of the recorded scores

    @classmethod
    def read(cls, path: Path) -> _Record:
        """The record in a file; an empty one if there is none that can be read."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            plain = json.loads(path.read_text())
            return cls(path, str(plain["id"]), int(plain["step"]), plain["finished"])
        return cls(path)

    def write(self) -> None:
        """Write it without waiting for the disk: it is written at each line of the log."""
        plain = {name: value for name, value in asdict(self).items() if name != "path"}
        with replacing(self.path) as part:
            part.write_text(json.dumps(plain))


@dataclass
class _OpenLog:
    """The logger of one run, and what it has recorded."""

    logger: Logger
    record: _Record

    def log(self, step: int, terms: Mapping[str, Any]) -> None:
        """Record a line of the log, unless it is recorded already."""
        if step <= self.record.step:
            return
        finite = {k: float(v) for k, v in terms.items() if v is not None and math.isfinite(v)}
        self.logger.log(step, finite)
        self.record.step = step
        self.record.write()

    def finish(self, scores: Mapping[str, float], pictures: Sequence[Path]) -> None:
        """Record scores and pictures."""
        self.logger.finish({k: v for k, v in scores.items() if math.isfinite(v)}, pictures)
        self.record.finished = sorted(scores)
        self.record.write()


@dataclass
class LogWriter:
    """Sends reports of the trainer to all loggers of the runs in them.

    A logger that fails is left out from then on, and `problem` gets one sentence about it: training goes on.
    """

    names: Sequence[str]
    runs: Mapping[str, tuple[RunSpec, Path]]  # the runs to record by id: spec and folder
    problem: Callable[[str], None]
    _kinds: dict[str, LoggerClass] = field(init=False)
    _open: dict[tuple[str, str], _OpenLog] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._kinds = {name: logger_named(name) for name in self.names}

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, *_error: object) -> None:
        for name, run in list(self._open):
            self._close(name, run)

    def after(self, tell: Tell | None) -> Tell:
        """A function that passes reports to `tell`, then to the loggers."""

        def pass_on(report: Report) -> None:
            if tell is not None:
                tell(report)
            self(report)

        return pass_on

    def __call__(self, report: Report) -> None:
        """Record a report. The loggers of runs that have ended are closed."""
        for run, terms in zip(report.runs, report.terms, strict=True):
            if run in self.runs:  # a population may have runs of earlier commands
                self._record_terms(run, report.step, terms)

    def _record_terms(self, run: str, step: int, terms: Mapping[str, float]) -> None:
        has_ended = step >= self.runs[run][0].steps or not all(map(math.isfinite, terms.values()))
        for name in list(self._kinds):
            with self._guarded(name):
                self._log_of(name, run).log(step, terms)
            if has_ended:
                self._close(name, run)

    def finish(self, run: str, scores: Mapping[str, float]) -> None:
        """Record the end of a run: what its log has more than the logger, scores, and its pictures."""
        folder = self.runs[run][1]
        pictures = sorted((folder / PICTURES_FOLDER).glob("*.png"))
        for name in list(self._kinds):
            if self._record(name, run).finished != sorted(scores):
                with self._guarded(name):
                    self._log_of(name, run).finish(scores, pictures)
            self._close(name, run)

    def _record(self, name: str, run: str) -> _Record:
        return _Record.read(self._folder(name, run) / RECORD_FILE)

    def _folder(self, name: str, run: str) -> Path:
        return self.runs[run][1] / name.rpartition(":")[2]

    def _log_of(self, name: str, run: str) -> _OpenLog:
        if (name, run) not in self._open:
            spec, path = self.runs[run]
            record = self._record(name, run)
            logger = self._kinds[name](LoggedRun(spec, path.name, self._folder(name, run), record.id))
            log = self._open[name, run] = _OpenLog(logger, record)
            record.id = logger.id
            for line in RunFolder(path).log():
                log.log(line["step"], {term: value for term, value in line.items() if term != "step"})
        return self._open[name, run]

    def _close(self, name: str, run: str) -> None:
        log = self._open.pop((name, run), None)
        if log is not None:
            with self._guarded(name):
                log.logger.close()

    @contextmanager
    def _guarded(self, name: str) -> Iterator[None]:
        """Turn an error of a logger into one sentence, and leave the logger out from then on."""
        try:
            yield
        except Exception as error:  # whatever a tracker, a network or a disk can raise
            if self._kinds.pop(name, None) is not None:
                reason = (str(error).strip().splitlines() or [""])[0]
                self.problem(
                    f"the logger {name} has failed ({type(error).__name__}: {reason}) and gets nothing more. "
                    "Training continues; the losses are in the run's own log."
                )
