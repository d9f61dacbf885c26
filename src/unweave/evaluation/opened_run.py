"""The trained run that a function is given, or whose folder it is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unweave.errors import UnweaveError
from unweave.runs.run import Run, load


def opened_run(subject: Any, user: str) -> Run:
    """The run itself, or that in a folder; `user` is the function that needs it."""
    run = load(subject) if isinstance(subject, str | Path) else subject
    if not isinstance(run, Run):
        raise UnweaveError(f"{user} needs a trained run, or its folder; got {type(run).__name__}.")
    return run
