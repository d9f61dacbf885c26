"""Run a study from Python or from the command line: a preset, a file, a spec or a folder to its table."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from unweave.errors import UnweaveError
from unweave.evaluation.parts import checked_parts, part_names
from unweave.layout import ERROR_FILE, LEDGER_FILE
from unweave.places import as_path
from unweave.study.display import study_display
from unweave.study.engines.engine import Engine, EngineJob, drive, engine_named
from unweave.study.engines.slurm import submitted_jobs
from unweave.study.folder import StudyFolder, check_data
from unweave.study.ledger import Failure, Ledger, Task
from unweave.study.logs import checked_loggers
from unweave.study.planner import Unit, plan_of, population_size
from unweave.study.presets import preset_named, reduced, with_fields
from unweave.study.progress import Status, StatusCallback
from unweave.study.result import StudyResult
from unweave.study.spec import StudySpec, read_study
from unweave.study.table import collect, write_table
from unweave.study.tasks import has_failed, shard_ledger
from unweave.study.work import TrainAndScore
from unweave.training.trainer import pick_device

Subject: TypeAlias = StudySpec | StudyFolder | str | os.PathLike[str]


@dataclass(frozen=True)
class StudySession:
    """A study that is ready to run: its folder, the populations to train, and how."""

    folder: StudyFolder
    units: list[Unit]
    work: TrainAndScore
    is_shard: bool = False

    def run(
        self,
        engine: Engine,
        tell: StatusCallback | None = None,
        say: Callable[[str], None] | None = None,
    ) -> Status:
        """Train and measure all runs that are not done; `say` takes lines for the user."""
        with shard_ledger() if self.is_shard else nullcontext() as ledger_path:
            job = EngineJob(self.folder, self.units, self.work, ledger_path)
            return drive(engine, dataclasses.replace(job, say=say) if say else job, tell)


def run_study(
    study: Subject,
    *,
    out: str | Path | None = None,
    device: str = "auto",
    workers: int | None = None,
    population: int | None = None,
    steps: int | None = None,
    metrics: str | Sequence[str] | None = None,
    on: str | Sequence[str] | None = None,
    preset: str | None = None,
    data_root: str | Path | None = None,
    engine: str | Engine = "local",
    log_to: str | Sequence[str] = (),
    progress: bool = True,
) -> StudyResult:
    """Train and measure all runs of a study, or resume it; returns its table of scores.

    Parameters
    ----------
    study
        A StudySpec, the name of a preset, a TOML file, or the folder of a study.
    out
        The folder of the study. Default: studies/NAME.
    device
        auto, cpu, cuda or cuda:1.
    workers
        Worker processes. Default: as many as suit this machine.
    population
        Runs that train together. Default: as many as suit the device.
    steps
        Train all runs for this many steps, which makes it another study.
    metrics
        Measure these too: names, or quick, headline, study or all.
    on
        Measure on these parts of data with conditions too: "all", "held_out" or "all,held_out".
    preset
        "smoke": the study in small, at most 16 runs of 100 steps, in a folder of its own.
    data_root
        Folder of the official files of data sets.
    engine
        local, ray or slurm, or an engine with options of its own, such as `SlurmEngine(partition="gpu")`.
    log_to
        Trackers that get losses, scores and pictures too: "tensorboard", "wandb", "mlflow", or your own,
        "file.py:Name".
    progress
        Show progress on standard error or in the notebook.
    """
    at_least_one(workers=workers)
    chosen = engine_named(engine, {"workers": workers}) if isinstance(engine, str) else engine
    session = prepare_study(
        study,
        out=out,
        device=device,
        population=population,
        steps=steps,
        metrics=metrics,
        on=on,
        preset=preset,
        data_root=data_root,
        log_to=log_to,
    )
    with study_display() if progress else nullcontext() as tell:
        session.run(chosen, tell, _say if progress else None)
    table, notes = collect(session.folder)
    write_table(table, session.folder.table)
    return StudyResult(session.folder.path, table, tuple(failures_of(session.folder)), tuple(notes))


def prepare_study(
    study: Subject,
    *,
    out: str | Path | None = None,
    device: str = "auto",
    population: int | None = None,
    shard: str | None = None,
    steps: int | None = None,
    metrics: str | Sequence[str] | None = None,
    on: str | Sequence[str] | None = None,
    preset: str | None = None,
    keep_codes: bool = False,
    checkpoint_every: int = 10_000,
    data_root: str | Path | None = None,
    log_to: str | Sequence[str] = (),
) -> StudySession:
    """Make the folder of a study and plan its populations; nothing is trained yet."""
    at_least_one(population=population, checkpoint_every=checkpoint_every)
    shard_of([], shard)  # a wrong shard or logger is refused before there is a folder
    loggers = checked_loggers(log_to)
    spec, folder = study_named(study, preset)
    if steps is not None:
        spec = with_fields(spec, steps=steps)
    if metrics is not None:
        names = metrics if isinstance(metrics, str) else tuple(metrics)
        spec = spec.merged(dataclasses.replace(spec, metrics=names))
    if on is not None:
        spec = dataclasses.replace(spec, on=checked_parts([*spec.on, *part_names(on)]))
    root = None if data_root is None else as_path(data_root, "the folder of data sets")
    check_data(spec, root)
    made = StudyFolder.create(out or (folder.path if folder else Path("studies") / spec.name), spec)
    units = plan_of(made, population or population_size(pick_device(device)))
    work = TrainAndScore(device, root, checkpoint_every, keep_codes=keep_codes, log_to=loggers)
    return StudySession(made, shard_of(units, shard), work, shard is not None)


def at_least_one(**counts: int | None) -> None:
    """Refuse a count of 0 or less."""
    for name, count in counts.items():
        if count is not None and count < 1:
            raise UnweaveError(f"{name} must be a whole number >= 1; got {count}.")


def study_named(study: Subject, preset: str | None = None) -> tuple[StudySpec, StudyFolder | None]:
    """The spec of a study, and its folder if it has one; with a preset, that of a smaller study."""
    spec, folder = _study_and_folder(study)
    return (spec, folder) if preset is None else (reduced(spec, preset), None)


def _study_and_folder(study: Subject) -> tuple[StudySpec, StudyFolder | None]:
    if isinstance(study, StudySpec):
        return study, None
    if isinstance(study, StudyFolder):
        return study.spec, study
    path = as_path(study, "a study that is no StudySpec")
    if path.suffix == ".toml":
        return read_study(path), None
    if path.is_dir():
        folder = StudyFolder(path)
        return folder.spec, folder
    if path.exists():
        raise UnweaveError(f"{path} is no study: give a preset, a .toml file or the folder of a study.")
    return preset_named(str(study)), None


def shard_of(units: list[Unit], shard: str | None) -> list[Unit]:
    """The i-th of n parts of the populations, for a shard "i/n"."""
    if shard is None:
        return units
    try:
        i, n = (int(part) for part in shard.split("/"))
    except ValueError:
        raise UnweaveError(f"a shard is i/n, as in 0/8 for the first of eight; got {shard!r}.") from None
    if not 0 <= i < n:
        raise UnweaveError(f"shards of {n} are 0/{n} to {n - 1}/{n}; got {shard}.")
    return units[i::n]


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def ledger_of(folder: StudyFolder) -> Ledger | None:
    """The ledger of a study; None if there is none, or if Slurm jobs work on the study and do not keep it."""
    path = folder.path / LEDGER_FILE
    return Ledger(path) if path.exists() and not submitted_jobs(folder) else None


def failures_of(folder: StudyFolder, runs: Collection[str] | None = None) -> list[Failure]:
    """The tasks of a study that failed and are not tried again.

    Shards and Slurm jobs leave no ledger: then the folders of the runs are read, of all runs or of these.
    """
    ledger = ledger_of(folder)
    if ledger is not None:
        return ledger.failures()
    return [_failure_of(folder, run) for run in runs or folder.runs if has_failed(folder, run)]


def _failure_of(folder: StudyFolder, run: str) -> Failure:
    """The failure that is noted in the folder of a run."""
    path = folder.run_path(run) / ERROR_FILE
    try:
        note = json.loads(path.read_text())
        return Failure(Task(run, note["doing"], run), str(note["error"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnweaveError(f"cannot read {path}: {error!r}. Delete it and run the study again.") from error
