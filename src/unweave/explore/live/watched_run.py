"""One run as its folder shows it now: waiting, training, stopped or ended, how far it is and how fast."""

from __future__ import annotations

import math
import os
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from unweave.display.progress import Rate
from unweave.explore.live.folders import Record, id_in_name, read_record
from unweave.explore.live.logs import last_line
from unweave.layout import (
    ERROR_FILE,
    LOG_FILE,
    RESULT_FILE,
    SCORES_FILE,
    SPEC_FILE,
    TRAIN_LOCK_FILE,
    WEIGHTS_FILE,
)
from unweave.locks import holder_of

State: TypeAlias = Literal["waiting", "training", "stopped", "trained", "measured", "diverged", "failed"]

SETTLED = 2.0  # seconds after which a change of a folder has another time stamp than the change before
HOLDER_EVERY = 3.0  # seconds between two looks at whether the process that trains a run is alive
SILENT_ELSEWHERE = 600.0  # seconds without a line after which a run on another machine counts as stopped


class WatchedRun:
    """The state of a run; `look` brings it up to date and reads only what has changed.

    A folder's time changes when a file in it is created, replaced or removed, not when its log grows. So a
    look mostly asks for the states of the folder and of the log, and reads nothing.
    """

    def __init__(self, key: str, spec: Record, path: Path | None) -> None:
        self.key, self.spec, self.path = key, spec, path
        self.state: State = "waiting"
        self.step = 0
        self.terms: dict[str, Any] = {}  # the last losses
        self.version = self.added = 0
        self._rate = Rate()
        self._names: frozenset[str] = frozenset()
        self._listed = 0  # the folder's time when its files were listed
        self._log_state = (0, 0, 0.0)  # number, size and time of the log
        self._result: Record | None = None
        self._error: Record | None = None
        self._is_held, self._held_at = False, -math.inf

    @property
    def facts(self) -> dict[str, Any]:
        """What never changes: the run's id, and its settings."""
        apart = ("version", "method", "data", "seed", "steps", "plugins")
        method = {name: value for name, value in self.spec["method"].items() if name != "name"}
        others = {name: value for name, value in self.spec.items() if name not in apart}
        named = {name: self.spec.get(name) for name in ("data", "seed", "steps")}
        return {
            "id": (id_in_name(self.path) if self.path else None) or self.key,
            "method": self.spec["method"]["name"],
            **named,
            "settings": method | others,
        }

    @property
    def now(self) -> dict[str, Any]:
        """What changes, in few words."""
        return {
            "state": self.state,
            "step": self.step,
            "rate": _short(self.rate),
            "left": _short(self.seconds_left),
            "error": self.error,
        }

    @property
    def rate(self) -> float | None:
        """Steps per second while it trains; None until two lines of the log were seen."""
        return self._rate.value if self.state == "training" else None

    @property
    def steps_left(self) -> int:
        """Steps that are still to be done."""
        return max(0, int(self.spec["steps"]) - self.step)

    @property
    def seconds_left(self) -> float | None:
        """An estimate of the time that training still takes."""
        return self.steps_left / self.rate if self.rate else None

    @property
    def error(self) -> str:
        """Why the run failed; empty if it did not."""
        if self.state == "failed" and self._error is not None:
            return str(self._error.get("error", ""))
        if self.state == "diverged":
            return f"the loss was not finite at step {self.step:,}."
        return ""

    @property
    def log_path(self) -> Path | None:
        """The file of its log, if it has one."""
        return self.path / LOG_FILE if self.path is not None and LOG_FILE in self._names else None

    @property
    def weights(self) -> str:
        """The file of the trained weights or of the last checkpoint; empty if there is neither."""
        if self._result is not None and WEIGHTS_FILE in self._names:
            return WEIGHTS_FILE
        checkpoints = [name for name in self._names if name.startswith("checkpoint-")]
        return max(checkpoints, key=lambda name: (len(name), name), default="")

    def scores(self) -> list[dict[str, Any]]:
        """What was measured: name, representation, value and interval of each score."""
        if self.path is None or SCORES_FILE not in self._names:
            return []
        try:
            changed = (self.path / SCORES_FILE).stat().st_mtime_ns
        except OSError:
            return []
        return _scores(self.path / SCORES_FILE, changed)

    def look(self, now: float) -> bool:
        """Bring the state up to date at a time (seconds since the epoch); return whether it changed."""
        before = (self.state, self.step, self._error)
        if self.path is not None:
            self._list(self.path, now)
            if self._result is None:
                self._read_log()
            else:
                self.step = int(self._result.get("steps", self.step))
                self.terms = dict(self._result.get("terms") or {})
        self.state = self._state(now)
        return (self.state, self.step, self._error) != before

    def _list(self, path: Path, now: float) -> None:
        try:
            changed = path.stat().st_mtime_ns
            if changed == self._listed:
                return
            with os.scandir(path) as entries:
                names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        except OSError:  # it was removed
            changed, names = 0, []
        self._names = frozenset(names)
        self._listed = changed if now - changed / 1e9 > SETTLED else 0
        self._result = read_record(path / RESULT_FILE) if RESULT_FILE in self._names else None
        self._error = read_record(path / ERROR_FILE) if ERROR_FILE in self._names else None

    def _read_log(self) -> None:
        if self.log_path is None:
            return
        try:
            status = self.log_path.stat()
        except OSError:  # it is being replaced
            return
        state = (status.st_ino, status.st_size, status.st_mtime)
        if state[:2] == self._log_state[:2]:
            return
        self._log_state = state
        self.terms = last_line(self.log_path) or {}
        step = int(self.terms.get("step", 0))
        if step < self.step:  # it was resumed from an earlier step
            self._rate.restart()
        self.step = step
        if step:
            self._rate.add(step, status.st_mtime)

    def _state(self, now: float) -> State:
        if self._result is not None:
            if self._result.get("outcome") == "diverged":
                return "diverged"
            if self._error is not None:
                return "failed"
            return "measured" if SCORES_FILE in self._names else "trained"
        if self._is_trained_now(now):
            return "training"
        if self._error is not None:
            return "failed"
        return "stopped" if SPEC_FILE in self._names else "waiting"

    def _is_trained_now(self, now: float) -> bool:
        if self.path is None or TRAIN_LOCK_FILE not in self._names:
            return False
        if now - self._held_at >= HOLDER_EVERY:
            holder = holder_of(self.path / TRAIN_LOCK_FILE)
            recent = now - max(self._log_state[2], self._listed / 1e9) < SILENT_ELSEWHERE
            # Of a process elsewhere, or of a lock file that cannot be read now, only the log tells.
            self._is_held = holder == "alive" or (holder != "dead" and recent)
            self._held_at = now
        return self._is_held


def _short(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.3g}")


@lru_cache(maxsize=64)
def _scores(path: Path, _changed: int) -> list[dict[str, Any]]:
    """The scores in a file as it was at a time."""
    evaluations = (read_record(path) or {}).get("evaluations", [])
    scores = [score for evaluation in evaluations for score in evaluation.get("scores", [])]
    shown = ("name", "representation", "value", "low", "high")
    plain = [{name: score.get(name) for name in shown} for score in scores]
    return [score for score in plain if isinstance(score["value"], float) and math.isfinite(score["value"])]
