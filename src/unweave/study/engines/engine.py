"""What a study engine is, the built-in engines, and the loop that drives any of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Protocol

from unweave.errors import UnweaveError, did_you_mean
from unweave.plugins.loading import is_reference, load_reference
from unweave.study.folder import StudyFolder
from unweave.study.planner import Unit
from unweave.study.progress import Status, StatusCallback
from unweave.study.work import Work
from unweave.training.trainer import Stopped, noted_signals

POLL = 0.2  # seconds between two calls of an engine

# An engine is a frozen dataclass whose fields are its options. It is imported when it is chosen.
ENGINES = {
    "local": "unweave.study.engines.local:LocalEngine",
    "ray": "unweave.study.engines.ray:RayEngine",
    "slurm": "unweave.study.engines.slurm:SlurmEngine",
}


def _ignore(_text: str) -> None:
    pass


@dataclass(frozen=True)
class EngineJob:
    """What an engine has to do: the work on some units of a study."""

    study: StudyFolder
    units: Sequence[Unit]
    work: Work
    ledger_path: Path | None = None  # default: the ledger in the study's folder
    say: Callable[[str], None] = _ignore  # takes lines for the user


class Crew(Protocol):
    """What an engine has started for a job: processes, tasks of a cluster, jobs of a scheduler."""

    def advance(self) -> bool:
        """Start what can be started, record what has ended; return False when nothing is open."""

    def wait(self, seconds: float) -> None:
        """Wait until something may have changed, at most this long."""

    def status(self) -> Status:
        """How far the job is."""

    def stop(self) -> str:
        """Stop the work or detach from it; return what to tell a user who pressed Ctrl-C, "" if nothing."""


class Engine(Protocol):
    """A way to do the tasks of a study."""

    def start(self, job: EngineJob) -> AbstractContextManager[Crew]:
        """Prepare a job. The context closes what the job needed, after `Crew.stop`."""


def drive(engine: Engine, job: EngineJob, tell: StatusCallback | None = None) -> Status:
    """Run a job until all of its tasks are done or failed; a signal stops it with `Stopped`."""
    with engine.start(job) as crew:
        signal, note = None, ""
        try:
            signal = _advance_to_end(crew, tell)
        finally:
            note = crew.stop()
        if signal is not None:
            raise Stopped(f"stopped by signal {signal}{note}")
        status = crew.status()
        if tell:
            tell(status)
        return status


def _advance_to_end(crew: Crew, tell: StatusCallback | None) -> int | None:
    """Call a crew until nothing is open, or until a signal comes; return the signal."""
    # Signals are recorded, not raised: an exception from a signal handler would leave Ray in a broken state.
    with noted_signals() as signals:
        while crew.advance():
            if tell:
                tell(crew.status())
            crew.wait(POLL)
            if signals:
                return signals[0]
    return None


def engine_named(name: str, options: Mapping[str, Any]) -> Engine:
    """The engine of a name or of a reference `file.py:Name`, with those of the options that are not None."""
    if name not in ENGINES and not is_reference(name):
        raise UnweaveError(f'there is no study engine "{name}". {did_you_mean(name, ENGINES)}')
    chosen = {option: value for option, value in options.items() if value is not None}
    for option in chosen:
        if option not in _options_of(name):
            owners = " or ".join(other for other in ENGINES if option in _options_of(other))
            flag = f"--{option.replace('_', '-')}"
            raise UnweaveError(
                f"{flag} is not an option of the engine {name}. Give --engine {owners} too, or leave "
                f"{flag} out."
            )
    engine: Engine = _engine_class(name)(**chosen)
    if not callable(getattr(engine, "start", None)):
        raise UnweaveError(f"{name} is not a study engine: it has no method `start(job)`.")
    return engine


def _options_of(name: str) -> set[str]:
    engine = _engine_class(name)
    return {field.name for field in fields(engine)} if is_dataclass(engine) else set()


def _engine_class(name: str) -> Any:
    return load_reference(ENGINES.get(name, name), "engine")
