"""`unweave study`: plan, run, watch and collect thousands of runs."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Collection
from contextlib import ExitStack, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

from cyclopts import App, Parameter

from unweave.commands.command_app import TABLE, check_output, command_app
from unweave.commands.console import detail, is_quiet, is_verbose, resume_line, say, say_next
from unweave.commands.watch import watching
from unweave.errors import UnweaveError
from unweave.layout import ERROR_FILE, LEDGER_FILE
from unweave.study.display import forecast_lines, study_display, training_table
from unweave.study.engines.engine import Engine, engine_named
from unweave.study.engines.slurm import submitted_jobs
from unweave.study.folder import StudyFolder, missing_data
from unweave.study.forecast import forecast_of
from unweave.study.ledger import Ledger
from unweave.study.measure import SECONDS
from unweave.study.planner import Unit, cost_of, plan_of, population_size, read_plan
from unweave.study.presets import PRESETS
from unweave.study.progress import status_of, status_of_folders
from unweave.study.session import (
    StudySession,
    at_least_one,
    failures_of,
    ledger_of,
    prepare_study,
    study_named,
)
from unweave.study.spec import StudySpec
from unweave.study.table import collect, run_table, write_table
from unweave.training.trainer import pick_device


def study_app() -> App:
    """The commands about studies."""
    app = command_app("unweave study", "Train and measure many runs, with one table of results.")
    for command in (plan, run, status, retry, export):
        app.command(command)
    app.command(collect_table, name="collect")
    app.command(list_presets, name="presets")
    return app


def list_presets() -> None:
    """List the built-in studies."""
    for name, make in PRESETS.items():
        print(f"{name}: {(make.__doc__ or '').splitlines()[0]}")


def plan(
    study: str,
    *,
    preset: Literal["smoke"] | None = None,
    device: str = "auto",
    population: int | None = None,
    data_root: Path | None = None,
    measure: bool = True,
) -> None:
    """Print the runs of a study, and estimate how long it takes on this machine.

    Parameters
    ----------
    study
        A preset, a TOML file, or the folder of a study.
    preset
        smoke: the study in small, at most 16 runs of 100 steps.
    device
        auto, cpu, cuda or cuda:1.
    population
        Number of runs that train together. Default: what suits the device.
    data_root
        Folder of the official files of data sets.
    measure
        Train for some seconds to measure the speed of this machine.
    """
    at_least_one(population=population)
    spec, folder = study_named(study, preset)
    missing = missing_data(spec, data_root)
    size = population or population_size(pick_device(device))
    with TemporaryDirectory() as empty:
        where = folder or StudyFolder.create(empty, spec)
        units = plan_of(where, size)
        cost = cost_of(where, units)
        _describe(spec, units)
        steps, room = f"{cost.model_steps:,} model-steps", f"{cost.bytes / 1e9:.2f} GB of disk"
        print(f"to train: {cost.runs:,} runs, {steps}, {room}")
        if missing:
            print(f"files of {', '.join(missing)} are not here: unweave data fetch NAME")
        if measure and cost.runs:
            _print_time(where, units, missing, device, data_root)


def run(
    study: str,
    *,
    preset: Literal["smoke"] | None = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    workers: int | None = None,
    device: str = "auto",
    population: int | None = None,
    side_by_side: int | None = None,
    engine: str = "local",
    address: str | None = None,
    partition: str | None = None,
    time: str | None = None,
    gres: str | None = None,
    cpus: int | None = None,
    array: int | None = None,
    sbatch: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    shard: str | None = None,
    steps: int | None = None,
    metrics: str | None = None,
    on: str | None = None,
    keep_codes: bool = False,
    checkpoint_every: int = 10_000,
    data_root: Path | None = None,
    watch: bool = False,
    log_to: Annotated[list[str] | None, Parameter(negative=())] = None,
) -> None:
    """Train and measure all runs of a study, or resume it; a second command in another terminal joins.

    Parameters
    ----------
    study
        A preset, a TOML file, or the folder of a study.
    preset
        smoke: the study in small, at most 16 runs of 100 steps, in a folder of its own.
    out
        The study's folder. Default: studies/NAME.
    workers
        Worker processes. Default: what suits this machine.
    device
        auto, cpu, cuda or cuda:1.
    population
        Number of runs that train together. Default: what suits the device.
    side_by_side
        Number of small populations that a GPU trains at the same time. Default: 1.
    engine
        local: processes of this machine; ray: a Ray cluster (needs unweave[ray]); slurm: Slurm jobs.
    address
        Address of the Ray cluster, such as auto or ray://host:10001. Default: a new one on this machine.
    partition
        Slurm partition of the jobs.
    time
        Time limit of each Slurm job, as in 12:00:00; the next job resumes from the checkpoints.
    gres
        Generic resources of each Slurm job, as in gpu:1.
    cpus
        CPU cores of each Slurm job.
    array
        Number of Slurm jobs. Default: 8, or one for each population if these are fewer.
    sbatch
        Further arguments of sbatch, as in "--account=lab --qos=high".
    shard
        i/n: only the i-th of n parts (from 0), for other schedulers.
    steps
        Train all runs for this number of steps: another, shorter study.
    metrics
        Further metrics: names, or quick, headline, study or all.
    on
        Measure on these parts of data with conditions too: all, held_out, or all,held_out.
    keep_codes
        Store the codes of all combinations of factors in the runs' folders.
    checkpoint_every
        Steps between two checkpoints.
    data_root
        Folder of the official files of data sets.
    watch
        Open a page in the browser that shows the losses while the runs train.
    log_to
        Also send losses, scores and pictures to a tracker: tensorboard, wandb, mlflow or file.py:Name.
        The first three are extras of unweave. May be given more than once.
    """
    at_least_one(workers=workers, side_by_side=side_by_side, cpus=cpus, array=array)
    slurm = {"partition": partition, "time": time, "gres": gres, "cpus": cpus, "array": array}
    local = {"workers": workers, "side_by_side": side_by_side}
    chosen = engine_named(engine, {**local, "address": address, "sbatch": sbatch, **slurm})
    session = prepare_study(
        study,
        out=out,
        device=device,
        population=population,
        shard=shard,
        steps=steps,
        metrics=metrics,
        on=on,
        preset=preset,
        keep_codes=keep_codes,
        checkpoint_every=checkpoint_every,
        data_root=data_root,
        log_to=log_to or (),
    )
    with watching(session.folder.path) if watch else nullcontext():
        _run_and_collect(session, chosen)


def _run_and_collect(session: StudySession, engine: Engine) -> None:
    """Run a study, print how it ended, and write its table unless only a shard of it was done."""
    made = session.folder
    _describe(made.spec, session.units)
    say(f"-> {made.path}")
    try:
        with ExitStack() as stack:
            tell = None if is_quiet() else stack.enter_context(study_display())
            ended = session.run(engine, tell, say)
    except KeyboardInterrupt as stop:
        sys.stderr.write(resume_line(stop))
        sys.exit(130)
    print(ended)
    failed = _print_failures(made, {run for unit in session.units for run in unit.runs})
    if not session.is_shard and _collect(made, [], made.table):
        where = shlex.quote(str(made.path))
        say_next(
            [
                ("make a report of all scores", f"unweave report {where}"),
                ("compare the runs in a browser", f"unweave explore {where}"),
                ("choose runs without labels", f"unweave select {where}"),
            ]
        )
    if failed:
        sys.exit(1)


def status(study: Path) -> None:
    """Print the progress of a study.

    Parameters
    ----------
    study
        The folder of the study.
    """
    folder = StudyFolder(study)
    ledger = ledger_of(folder)
    if ledger is not None:
        print(f"{folder.spec.name}: {status_of(folder, read_plan(folder), ledger)}")
        for unit, share in ledger.running().items():
            print(f"  working on {unit}: {share:.0%}")
    else:
        print(f"{folder.spec.name}: {status_of_folders(folder)} (from the folders of the runs)")
    if jobs := submitted_jobs(folder):
        print(f"  submitted to Slurm: squeue --jobs {','.join(jobs)}; to cancel: scancel {' '.join(jobs)}")
    _print_failures(folder)


def retry(study: Path) -> None:
    """Mark failed tasks to be tried again by the next `run`.

    Parameters
    ----------
    study
        The folder of the study.
    """
    folder = StudyFolder(study)
    runs, ledger_path = folder.runs, folder.path / LEDGER_FILE
    failed = failures_of(folder)
    if not ledger_path.exists() and not failed:
        raise UnweaveError(
            f"there is nothing to retry: no run of {study} was started here. Start it with: unweave study "
            f"run {study}"
        )
    opened = max(len(failed), Ledger(ledger_path).retry() if ledger_path.exists() else 0)
    for run_id in runs:
        (folder.run_path(run_id) / ERROR_FILE).unlink(missing_ok=True)
    print(f"{opened} tasks are open again: unweave study run {study}")


def collect_table(
    study: Path,
    *others: Path,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
) -> None:
    """Write the table of all scores, also of runs in other folders of the same study.

    Parameters
    ----------
    study
        The folder of the study.
    others
        Folders of other parts of it, such as shards that ran on other machines.
    output
        The table. Default: results.parquet in the study's folder.
    """
    check_output(output, TABLE)
    folder = StudyFolder(study)
    _collect(folder, [StudyFolder(other) for other in others], output or folder.table)


def export(
    study: Path,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("results.csv"),
    what: Literal["scores", "runs"] = "scores",
) -> None:
    """Write all scores, or one line for each run, as CSV or Parquet.

    Parameters
    ----------
    study
        The folder of the study.
    output
        A file .csv or .parquet.
    what
        scores: one row a score; runs: one row a run, with how it ended.
    """
    check_output(output, TABLE)
    folder = StudyFolder(study)
    if what == "scores":
        _collect(folder, [], output)
    else:
        write_table(run_table(folder), output)
        print(f"-> {output}")


def _print_time(
    study: StudyFolder, units: list[Unit], missing: list[str], device: str, data_root: Path | None
) -> None:
    """Train each kind of run for some seconds, measure made-up codes, and say how long all of it takes."""
    chosen = pick_device(device)
    forecast = forecast_of(study, units, missing, device, data_root)
    parts = forecast.parts
    populations = [entry.part.together for entry in parts if entry.measured]
    sizes = " or ".join(dict.fromkeys(str(len(runs)) for runs in populations))
    data = " and ".join(dict.fromkeys(runs[0].data for runs in populations))
    print(f"training, measured for {SECONDS:.0f} seconds on {chosen}, {sizes} runs together, with {data}:")
    print("\n".join(training_table(parts)))
    if missing:
        print("data sets without local files are estimated from one with the same number of channels")
    print("\n".join(forecast_lines(forecast, bool(missing))))


def _describe(spec: StudySpec, units: list[Unit]) -> None:
    runs = sum(len(unit.runs) for unit in units)
    data = sorted({run.data for run in spec.runs})
    methods = list(dict.fromkeys(run.method.name for run in spec.runs))
    settings = len({(run.data, run.method) for run in spec.runs})
    say(
        f"{spec.name}: {runs:,} runs in {len(units):,} populations; data {', '.join(data)}; "
        f"{len(methods)} methods in {settings} settings"
    )
    parts = f"; on {', '.join(spec.on)}" if len(spec.on) > 1 else ""
    say(f"measured: {', '.join(spec.metrics)}; {' and '.join(spec.representations)} codes{parts}")


def _print_failures(folder: StudyFolder, runs: Collection[str] | None = None) -> int:
    """Print the first failed tasks and what to do about them; return how many failed."""
    failures = failures_of(folder, runs)
    for failure in failures[:10]:
        print(f"failed: {failure.task.kind} {failure.task.id}: {failure.error}", file=sys.stderr)
    for run_id in folder.runs if failures and is_verbose() else ():
        if (note := folder.run_path(run_id) / ERROR_FILE).exists():
            detail(f"{run_id}: {json.loads(note.read_text())['trace']}")
    if failures:
        more = f" (the first 10 of {len(failures)})" if len(failures) > 10 else ""
        print(f"{len(failures)} tasks failed{more}; unweave study retry {folder.path}", file=sys.stderr)
    return len(failures)


def _collect(folder: StudyFolder, others: list[StudyFolder], output: Path) -> int:
    """Write the table of all scores; return how many there are."""
    frame, notes = collect(folder, others)
    write_table(frame, output)
    for note in notes[:10]:
        print(note, file=sys.stderr)
    print(f"{len(frame):,} scores of {frame['run'].nunique():,} runs\n-> {output}")
    return len(frame)
