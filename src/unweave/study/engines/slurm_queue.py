"""Slurm's own commands: submit an array of jobs, list the queue, look up how a job ended."""

from __future__ import annotations

import getpass
import os
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TypeAlias

from unweave.errors import UnweaveError

# (array job, index in the array) -> state, as in ("1234", 3) -> "RUNNING"
Queue: TypeAlias = dict[tuple[str, int], str]
TIMEOUT = 60.0  # seconds to wait for an answer of Slurm


def submit(script: Path, indices: Collection[int]) -> str:
    """Submit a script as an array of jobs with these indices; return the id of the array."""
    answer = _call(["sbatch", "--parsable", f"--array={array_text(indices)}", str(script)])
    if answer.returncode:
        raise UnweaveError(
            f"sbatch refused {script}: {_last_line(answer.stderr)}. Fix this and run the same command again."
        )
    return answer.stdout.strip().partition(";")[0]


def queue() -> Queue | None:
    """All array jobs of this user that are pending or running; None if Slurm does not answer now."""
    user = getpass.getuser() if sys.platform == "win32" else os.getuid()
    answer = _call(["squeue", "--noheader", "--array", f"--user={user}", "--format=%F %K %T"], patient=True)
    if answer.returncode:
        return None
    rows = [line.split() for line in answer.stdout.splitlines()]
    return {(row[0], int(row[1])): row[2] for row in rows if len(row) == 3 and row[1].isdecimal()}


def was_cancelled(job: str, index: int) -> bool:
    """Whether a job that has ended was cancelled; False on clusters without accounting."""
    try:
        answer = _call(["sacct", "--noheader", "-X", "-P", f"--jobs={job}_{index}", "--format=State"], True)
    except UnweaveError:
        return False
    return answer.returncode == 0 and answer.stdout.strip().startswith("CANCELLED")


def array_text(indices: Collection[int]) -> str:
    """Indices in the form of `sbatch --array`.

    >>> array_text([0, 1, 2, 3]), array_text([1, 4])
    ('0-3', '1,4')
    """
    ordered = sorted(indices)
    if len(ordered) > 1 and ordered == list(range(ordered[0], ordered[-1] + 1)):
        return f"{ordered[0]}-{ordered[-1]}"
    return ",".join(map(str, ordered))


def _call(command: Sequence[str], patient: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a command of Slurm. If `patient`, no answer in time is a failed command, not an error."""
    try:
        # In a session of its own: Ctrl-C in the terminal must not end it halfway.
        return subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=TIMEOUT, check=False, start_new_session=True
        )
    except FileNotFoundError:
        raise UnweaveError(
            f"the Slurm engine needs the command {command[0]}, which is not on PATH. Run this on a machine "
            "from which you can submit Slurm jobs."
        ) from None
    except subprocess.TimeoutExpired:
        if patient:
            return subprocess.CompletedProcess(list(command), 1, "", "")
        raise UnweaveError(
            f"{command[0]} did not answer within {TIMEOUT:.0f} seconds. Run the same command again later."
        ) from None


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2].rstrip(".") or "it gave no reason"
