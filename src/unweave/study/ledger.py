"""The ledger of a study: which task is whose, what was tried, what failed.

SQLite in WAL mode, so that any number of workers of one machine can share it, be killed at any moment, and
find it whole. The truth is in the folders of the runs: a lost ledger is rebuilt from them.

A task is leased to a worker. A lease of a process on this machine ends with the process, whatever the clock
says; one of another machine ends when it has not been renewed for a while.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from unweave.errors import DiskFullError, UnweaveError
from unweave.locks import process_start

Kind: TypeAlias = Literal["train", "evaluate"]

VERSION = 1
LEASE = 120.0  # seconds without a sign of life after which a worker of another machine counts as dead
ATTEMPTS = 2  # errors after which a task has failed
DEATHS = 10  # deaths of a worker after which its task has failed: it may be what kills them

_SCHEMA = """
CREATE TABLE IF NOT EXISTS tasks (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  place INTEGER NOT NULL,
  unit TEXT NOT NULL,
  wanted TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  deaths INTEGER NOT NULL DEFAULT 0,
  error TEXT,
  host TEXT, pid INTEGER, born TEXT, until REAL,
  progress REAL NOT NULL DEFAULT 0,
  seconds REAL
);
CREATE INDEX IF NOT EXISTS by_state ON tasks (state, kind, place);
"""


class Task(NamedTuple):
    """A unit to train (id: the unit's), or a run to evaluate (id: the run's)."""

    id: str
    kind: Kind
    unit: str
    wanted: str = ""  # of an evaluation: what is measured


@dataclass(frozen=True)
class Failure:
    """A task that will not be tried again by itself."""

    task: Task
    error: str


class Ledger:
    """The tasks of a study, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.host, self.pid, self.born = socket.gethostname(), os.getpid(), process_start(os.getpid()) or ""
        with _explained(path):
            self.base = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
            self.base.execute("PRAGMA journal_mode=WAL")
            self.base.execute("PRAGMA synchronous=NORMAL")
            version = self.base.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, VERSION):
                raise UnweaveError(
                    f"{path} is of another version of unweave. Delete it: it is rebuilt from the runs."
                )
            self.base.executescript(_SCHEMA)
            self.base.execute(f"PRAGMA user_version={VERSION}")

    def close(self) -> None:
        """Let go of the file."""
        self.base.close()

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, one writer at a time."""
        with _explained(self.path):
            self.base.execute("BEGIN IMMEDIATE")
            try:
                yield self.base
            except BaseException:
                self.base.execute("ROLLBACK")
                raise
            self.base.execute("COMMIT")

    def add(self, tasks: Iterable[tuple[Task, str]]) -> None:
        """Add tasks in their order, each with its state, if they are not there.

        A task that is there but of which something else is wanted now, such as a further metric, is open
        again; so is one that was done and whose files are gone.
        """
        with self._change() as base:
            known = {row[0]: row[1:] for row in base.execute("SELECT id, wanted, state FROM tasks")}
            place = len(known)
            for task, state in tasks:
                if task.id not in known:
                    base.execute(
                        "INSERT INTO tasks (id, kind, place, unit, wanted, state) VALUES (?, ?, ?, ?, ?, ?)",
                        (task.id, task.kind, place, task.unit, task.wanted, state),
                    )
                    place += 1
                elif known[task.id][0] != task.wanted or (known[task.id][1] == "done" and state != "done"):
                    base.execute(
                        "UPDATE tasks SET wanted = ?, state = ?, attempts = 0, deaths = 0, error = NULL "
                        "WHERE id = ? AND state != 'running'",
                        (task.wanted, "ready" if state == "done" else state, task.id),
                    )

    def claim(self, kinds: Iterable[Kind]) -> Task | None:
        """Lease the next open task of one of these kinds; None if there is none now."""
        with self._change() as base:
            self._reclaim_dead(base)
            for kind in kinds:
                row = base.execute(
                    "SELECT id, kind, unit, wanted FROM tasks WHERE state = 'ready' AND kind = ? "
                    "ORDER BY place LIMIT 1",
                    (kind,),
                ).fetchone()
                if row:
                    base.execute(
                        "UPDATE tasks SET state = 'running', host = ?, pid = ?, born = ?, until = ?, "
                        "progress = 0 WHERE id = ?",
                        (self.host, self.pid, self.born, time.time() + LEASE, row[0]),
                    )
                    return Task(*row)
        return None

    def renew(self, task: Task, progress: float) -> bool:
        """Say that the work goes on, and how far it is; False if the task is no longer ours."""
        with self._change() as base:
            changed = base.execute(
                "UPDATE tasks SET until = ?, progress = ? WHERE id = ? AND state = 'running' AND pid = ? "
                "AND host = ? AND born = ?",
                (time.time() + LEASE, progress, task.id, self.pid, self.host, self.born),
            ).rowcount
        return changed == 1

    def done(self, task: Task, seconds: float) -> None:
        """A task is finished; a unit that is trained opens the evaluation of its runs."""
        with self._change() as base:
            base.execute(
                "UPDATE tasks SET state = 'done', seconds = ?, progress = 1, error = NULL WHERE id = ?",
                (seconds, task.id),
            )
            if task.kind == "train":
                base.execute(
                    "UPDATE tasks SET state = 'ready' WHERE unit = ? AND state = 'waiting'", (task.unit,)
                )

    def release(self, task: Task) -> None:
        """Give a task back, as if it had not been tried."""
        with self._change() as base:
            base.execute(
                "UPDATE tasks SET state = 'ready', pid = NULL WHERE id = ? AND state = 'running'", (task.id,)
            )

    def fail(self, task: Task, error: str) -> bool:
        """An attempt went wrong. True if it was the last one: the task will not be tried again."""
        with self._change() as base:
            row = base.execute("SELECT attempts FROM tasks WHERE id = ?", (task.id,)).fetchone()
            attempts = int(row[0])
            last = attempts + 1 >= ATTEMPTS
            base.execute(
                "UPDATE tasks SET attempts = ?, error = ?, state = ?, pid = NULL WHERE id = ?",
                (attempts + 1, error, "failed" if last else "ready", task.id),
            )
            if last:
                _fail_waiting(base, task.unit)
        return last

    def split(self, task: Task, parts: Iterable[tuple[Task, str]]) -> None:
        """Replace a unit that fails by its runs: what is wrong with one is not the others' fault."""
        with self._change() as base:
            (place,) = base.execute("SELECT place FROM tasks WHERE id = ?", (task.id,)).fetchone()
            base.execute("UPDATE tasks SET state = 'split' WHERE id = ?", (task.id,))
            for part, run in parts:
                base.execute(
                    "INSERT OR REPLACE INTO tasks (id, kind, place, unit, wanted, state) "
                    "VALUES (?, ?, ?, ?, '', 'ready')",
                    (part.id, part.kind, place, part.unit),
                )
                base.execute(
                    "UPDATE tasks SET unit = ?, state = 'waiting', error = NULL WHERE id = ?",
                    (part.unit, run),
                )

    def retry(self) -> int:
        """Open all failed tasks again; return how many."""
        with self._change() as base:
            failed = base.execute("SELECT id, kind, unit FROM tasks WHERE state = 'failed'").fetchall()
            trained = {row[2] for row in failed if row[1] == "train"}
            for task_id, kind, unit in failed:
                state = "waiting" if kind == "evaluate" and unit in trained else "ready"
                base.execute(
                    "UPDATE tasks SET state = ?, attempts = 0, deaths = 0, error = NULL WHERE id = ?",
                    (state, task_id),
                )
        return len(failed)

    def counts(self) -> dict[tuple[str, str], int]:
        """(kind, state) -> how many."""
        with _explained(self.path):
            rows = self.base.execute(
                "SELECT kind, state, COUNT(*) FROM tasks GROUP BY kind, state"
            ).fetchall()
        return {(kind, state): number for kind, state, number in rows}

    def running(self) -> dict[str, float]:
        """Units and runs that are being worked on, and how far they are."""
        with _explained(self.path):
            return dict(
                self.base.execute("SELECT id, progress FROM tasks WHERE state = 'running'").fetchall()
            )

    def failures(self) -> list[Failure]:
        """What failed, and why."""
        with _explained(self.path):
            rows = self.base.execute(
                "SELECT id, kind, unit, error FROM tasks WHERE state = 'failed' ORDER BY place"
            ).fetchall()
        return [Failure(Task(*row[:3]), row[3] or "") for row in rows]

    def states(self) -> dict[str, str]:
        """The state of each task, by its id."""
        with _explained(self.path):
            return dict(self.base.execute("SELECT id, state FROM tasks").fetchall())

    def open_tasks(self) -> int:
        """How many tasks are neither done nor failed."""
        with _explained(self.path):
            row = self.base.execute(
                "SELECT COUNT(*) FROM tasks WHERE state NOT IN ('done', 'failed', 'split')"
            ).fetchone()
        return int(row[0])

    def _reclaim_dead(self, base: sqlite3.Connection) -> None:
        """Take the tasks of dead workers back."""
        rows = base.execute(
            "SELECT id, unit, host, pid, born, until, deaths FROM tasks WHERE state = 'running'"
        )
        for task_id, unit, host, pid, born, until, before in rows.fetchall():
            alive = process_start(pid) == born if host == self.host else time.time() < until
            if alive:
                continue
            deaths = before + 1
            failed = deaths >= DEATHS
            error = f"its worker died {deaths} times" if failed else None
            base.execute(
                "UPDATE tasks SET state = ?, deaths = ?, error = ?, pid = NULL WHERE id = ?",
                ("failed" if failed else "ready", deaths, error, task_id),
            )
            if failed:
                _fail_waiting(base, unit)


def _fail_waiting(base: sqlite3.Connection, unit: str) -> None:
    """Runs that wait for a unit that has failed have failed."""
    base.execute(
        "UPDATE tasks SET state = 'failed', error = 'its training failed' "
        "WHERE unit = ? AND state = 'waiting'",
        (unit,),
    )


@contextmanager
def _explained(path: Path | str) -> Iterator[None]:
    """Turn an error of the database into one sentence."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "full" in str(error):
            raise DiskFullError(
                f"cannot write {path}: the disk is full. Make room and run the same command again."
            ) from error
        raise UnweaveError(
            f"cannot use {path}: {error}. On a disk that is shared by several machines, use --shard."
        ) from error
    except sqlite3.DatabaseError as error:
        raise UnweaveError(
            f"cannot use {path}: {error}. Delete it: it is rebuilt from the folders of the runs."
        ) from error
