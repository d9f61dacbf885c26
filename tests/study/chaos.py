"""Chaos: a study whose workers and drivers are killed at random must end as one that is left alone."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

from unweave.study import StudyFolder
from unweave.study.table import collect

# 6 runs a seed.
STUDY = """
name = "chaos"
metrics = ["mig", "modularity"]
points = [60, 30]
[shared]
seed = "0-{last}"
steps = 4
batch = 4
latents = 2
[[methods]]
name = "beta_vae"
beta = [1, 2, 4, 8, 16, 32]
"""


def words(folder: Path, workers: int) -> list[str]:
    """The command that runs the study next to a folder into it."""
    study = ["study", "run", str(folder.parent / "study.toml"), "-o", str(folder), "--device", "cpu"]
    return [*study, "--population", "10", "--workers", str(workers)]


def start(folder: Path, workers: int) -> subprocess.Popen[bytes]:
    """Start a driver in a process of its own."""
    command = [sys.executable, "-m", "unweave", *words(folder, workers)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def worker_pids(folder: Path) -> list[int]:
    try:
        base = sqlite3.connect(folder / "ledger.sqlite", timeout=10)
        rows = base.execute("SELECT DISTINCT pid FROM tasks WHERE state = 'running'").fetchall()
        base.close()
    except sqlite3.Error:
        return []
    return [pid for (pid,) in rows if pid]


def wait_for_worker(folder: Path, seconds: float = 60.0) -> list[int]:
    """Wait until a worker of the study has a task; return the process ids of all that have one."""
    deadline = time.monotonic() + seconds
    while not (pids := worker_pids(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return pids


def table_of(study: StudyFolder) -> pd.DataFrame:
    """All scores, in one order."""
    return in_order(collect(study)[0])


def in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Scores as text, by run, representation and name."""
    return frame.astype(str).sort_values(["run", "representation", "score"], ignore_index=True)


def chaos(folder: Path, kills: int, workers: int, seed: int = 0) -> int:
    """Run folder/chaos with so many kills, every fourth of them of the driver; return how many were made."""
    target, dice = folder / "chaos", random.Random(seed)  # noqa: S311
    driver, done = start(target, workers), 0
    while done < kills:
        time.sleep(dice.uniform(0.1, 0.5))
        pids = worker_pids(target)
        if driver.poll() is not None:
            break  # the study is over
        if not pids:
            continue
        if done % 4 == 2:
            driver.kill()
            driver.wait()
            driver = start(target, workers)
        else:
            try:
                os.kill(dice.choice(pids), signal.SIGKILL)
            except ProcessLookupError:
                continue
        done += 1
    if driver.wait() != 0:
        raise RuntimeError("the driver failed")
    return done
