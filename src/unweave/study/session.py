"""Run a study from Python or from the command line: a preset, a file, a spec or a folder to its table."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from unweave.errors import UnweaveError
from unweave.places import as_path
from unweave.study.display import study_display
from unweave.study.engines.local import posts_for, run_local, shard_ledger
from unweave.study.folder import StudyFolder, check_data
from unweave.study.ledger import Failure, Ledger
from unweave.study.planner import Unit, plan_of, population_size
from unweave.study.presets import preset_named, with_fields
from unweave.study.progress import Status
from unweave.study.result import StudyResult
from unweave.study.spec import StudySpec, read_study
from unweave.study.table import collect, write_table
from unweave.study.work import TrainAndScore
from unweave.training.trainer import pick_device

Subject: TypeAlias = StudySpec | StudyFolder | str | os.PathLike[str]
Engine: TypeAlias = Literal["local", "ray"]


@dataclass(frozen=True)
class StudySession:
    """A study that is ready to run: its folder, the populations to train, and how."""

    folder: StudyFolder
    units: list[Unit]
    work: TrainAndScore
    is_shard: bool = False

    def run(
        self,
        workers: int | None = None,
        tell: Callable[[Status], None] | None = None,
        engine: Engine = "local",
        address: str | None = None,
    ) -> Status:
        """Train and measure all runs that are not done."""
        if engine == "ray":
            from unweave.study.engines.ray import run_ray

            return run_ray(self.folder, self.units, self.work, address, tell)
        posts = posts_for(self.work, workers)
        if not self.is_shard:
            return run_local(self.folder, self.units, posts, tell)
        with shard_ledger() as ledger:
            return run_local(self.folder, self.units, posts, tell, ledger)


def run_study(
    study: Subject,
    *,
    out: str | Path | None = None,
    device: str = "auto",
    workers: int | None = None,
    population: int | None = None,
    steps: int | None = None,
    metrics: str | Sequence[str] | None = None,
    data_root: str | Path | None = None,
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
    data_root
        Folder of the official files of data sets.
    progress
        Show progress on standard error or in the notebook.
    """
    at_least_one(workers=workers)
    session = prepare_study(
        study,
        out=out,
        device=device,
        population=population,
        steps=steps,
        metrics=metrics,
        data_root=data_root,
    )
    with study_display() if progress else nullcontext() as tell:
        session.run(workers, tell)
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
    keep_codes: bool = False,
    checkpoint_every: int = 10_000,
    data_root: str | Path | None = None,
) -> StudySession:
    """Make the folder of a study and plan its populations; nothing is trained yet."""
    at_least_one(population=population, checkpoint_every=checkpoint_every)
    shard_of([], shard)  # a wrong shard is refused before there is a folder
    spec, folder = study_named(study)
    if steps is not None:
        spec = with_fields(spec, steps=steps)
    if metrics is not None:
        names = metrics if isinstance(metrics, str) else tuple(metrics)
        spec = spec.merged(dataclasses.replace(spec, metrics=names))
    root = None if data_root is None else as_path(data_root, "the folder of data sets")
    check_data(spec, root)
    made = StudyFolder.create(out or (folder.path if folder else Path("studies") / spec.name), spec)
    units = plan_of(made, population or population_size(pick_device(device)))
    work = TrainAndScore(device, root, checkpoint_every, keep_codes=keep_codes)
    return StudySession(made, shard_of(units, shard), work, shard is not None)


def at_least_one(**counts: int | None) -> None:
    """Refuse a count of 0 or less."""
    for name, count in counts.items():
        if count is not None and count < 1:
            raise UnweaveError(f"{name} must be a whole number >= 1; got {count}.")


def study_named(study: Subject) -> tuple[StudySpec, StudyFolder | None]:
    """The spec of a study, and its folder if it has one."""
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


def failures_of(folder: StudyFolder) -> list[Failure]:
    """The tasks of a study that failed and are not tried again."""
    path = folder.path / "ledger.sqlite"
    return Ledger(path).failures() if path.exists() else []
