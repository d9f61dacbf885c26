"""A folder in which runs train: all its runs, and what changed since a visitor looked last."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from unweave.errors import UnweaveError
from unweave.explore.labels import labels_of
from unweave.explore.live.folders import Plan, id_in_name, plan_in, run_folders, spec_hash, spec_in
from unweave.explore.live.logs import read_log
from unweave.explore.live.watched_run import WatchedRun
from unweave.layout import RESULTS_FILE, TRAIN_LOCK_FILE

PAUSE = 0.5  # seconds between two looks at the folder, however many visitors ask
MOST_SHOWN = 16  # runs whose logs are read for one request
TO_COME = ("waiting", "training", "stopped")


class LiveFolder:
    """The runs of a folder; all visitors share one look at the files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._runs: dict[str, WatchedRun] = {}
        self._keys: dict[Path, str] = {}  # of the runs that have a folder
        self._removed: dict[str, int] = {}  # versions at which runs vanished
        self._plan: Plan | None = None
        self._lock = threading.Lock()
        self._looked = 0.0
        # A page that is still open from an earlier server asks for what changed since an earlier version.
        self._version = self._first = time.time_ns() // 1_000_000

    def run(self, key: str) -> WatchedRun:
        """A run by its key."""
        self._update()
        run = self._runs.get(key)
        if run is None:
            raise UnweaveError(f'there is no run "{key[:40]}" in {self.path.name}.')
        return run

    def changes(self, since: int, shown: dict[str, str]) -> dict[str, Any]:
        """What changed since a version, and news of the runs that are shown, by their keys and cursors.

        whole: all that is not mentioned is void; runs: those that changed, with their settings if these are
        new; removed: keys; counts: runs by state; table: whether the study has a table of results; rate:
        steps of all runs per second; left: seconds; done: share of all steps; labels: display names of new
        methods, data sets and scores.
        """
        self._update()
        with self._lock:
            whole = not self._first <= since <= self._version
            since = 0 if whole else since
            runs = [run for run in self._runs.values() if run.version > since]
            record = {
                "version": self._version,
                "whole": whole,
                "study": self._plan.name if self._plan else None,
                "table": (self.path / RESULTS_FILE).exists(),
                "counts": Counter(run.state for run in self._runs.values()),
                **self._pace(),
                "runs": [
                    {"key": run.key, **run.now, **(run.facts if run.added > since else {})} for run in runs
                ],
                "removed": [key for key, version in self._removed.items() if version > since],
            }
            chosen = {key: self._runs[key] for key in shown if key in self._runs}
        news = {key: _news(run, shown[key]) for key, run in list(chosen.items())[:MOST_SHOWN]}
        return record | {"shown": news, "labels": _labels(record["runs"], news)}

    def _pace(self) -> dict[str, Any]:
        runs = self._runs.values()
        total = sum(run.spec["steps"] for run in runs)
        to_come = sum(run.steps_left for run in runs if run.state in TO_COME)
        rate = sum(run.rate or 0.0 for run in runs)
        return {
            "rate": rate or None,
            "left": to_come / rate if rate else None,
            "done": 1 - to_come / total if total else 0.0,
        }

    def _update(self) -> None:
        with self._lock:
            now = time.time()
            if 0 <= now - self._looked < PAUSE:
                return
            self._looked = now
            self._version += 1
            self._find()
            for run in self._runs.values():
                if run.look(now):
                    run.version = self._version

    def _find(self) -> None:
        """Add runs that are new, and forget those whose folders are gone and that no study plans."""
        self._plan = plan_in(self.path)
        planned = self._plan.specs if self._plan else {}
        for key, spec in planned.items():
            if key not in self._runs:
                self._add(WatchedRun(key, spec, None))
        folders = run_folders(self.path, self._plan)
        for path in self._keys.keys() - set(folders):
            key = self._keys.pop(path)
            del self._runs[key]
            self._removed[key] = self._version
            if key in planned:
                self._add(WatchedRun(key, planned[key], None))
        for path in folders:
            if path not in self._keys:
                self._find_run(path)

    def _find_run(self, path: Path) -> None:
        """Give a folder to the run that it belongs to; a run that has none yet is planned, or new."""
        key = id_in_name(path)
        if key is None or key not in self._runs:
            spec = spec_in(path)
            if spec is None:  # not of a run, or not yet
                return
            by_content = spec_hash(spec)
            key = by_content if key is None or by_content in self._runs else key
            if key not in self._runs:
                self._add(WatchedRun(key, spec, None))
        if self._runs[key].path is None:
            self._runs[key].path = path
            self._runs[key].added = self._version
            self._keys[path] = key

    def _add(self, run: WatchedRun) -> None:
        run.added = run.version = self._version
        self._runs[run.key] = run
        self._removed.pop(run.key, None)


def _labels(runs: list[dict[str, Any]], news: dict[str, dict[str, Any]]) -> dict[str, dict[str, str]]:
    """Display names of what is named here: of runs that are new, and of their scores."""
    new = [run for run in runs if "method" in run]
    scores = [score for shown in news.values() for score in shown["scores"]]
    names = {score["name"] for score in scores} | {
        f"{score['name']} ({score['representation']})" for score in scores
    }
    return labels_of({run["method"] for run in new}, {str(run["data"]) for run in new}, names)


def _news(run: WatchedRun, cursor: str) -> dict[str, Any]:
    """The new part of a run's log, its last losses and scores, and which weights it has."""
    return {
        **read_log(run.log_path, cursor)._asdict(),
        "last": {name: value for name, value in run.terms.items() if name != "step"},
        "scores": run.scores(),
        "weights": run.weights,
    }


def is_training(path: Path) -> bool:
    """Whether a run of a folder is being trained now."""
    locked = [folder for folder in run_folders(path, plan_in(path)) if (folder / TRAIN_LOCK_FILE).exists()]
    runs = [WatchedRun("", {"steps": 0}, folder) for folder in locked]
    for run in runs:
        run.look(time.time())
    return any(run.state == "training" for run in runs)
