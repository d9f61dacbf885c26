"""The follow-up studies on dSprites, shorter than their presets: three seeds, some of the settings.

    python benchmarks/follow_up.py OUT [--studies schott,element] [--seeds 3] [--share 1] [--seconds 540]
    python benchmarks/follow_up.py OUT --studies schott --seeds 2 --quick       on a CPU

All studies run at the same time, each in one process or two with workers of their own. OUT gets a CSV for
each study, with a row for each run and part of the data. It is written every minute with the runs that are
measured. After `--seconds` the studies are stopped, and scores on a few labels are added. Small populations
leave most of a GPU idle: start NVIDIA's multi-process service first (`nvidia-cuda-mps-control -d`).

With `--quick`, runs have the steps, batches and learning rates of `unweave train --preset quick` in float32,
and a study has one process and the workers that suit the machine. The FactorVAE score is left out, because it
needs all images of the data. The 36 runs of schott take an hour on two cores. `--methods beta_vae,beta_tcvae`
leaves the other methods of the studies out.
docs/follow_up_studies.md shows the results.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd

from unweave.commands.training_presets import PRESETS
from unweave.data import load
from unweave.errors import UnweaveError
from unweave.results import wide
from unweave.runs.spec import RunSpec
from unweave.selection.candidates import Candidate, Candidates, candidates_in
from unweave.selection.few_labels import FEW_LABEL_SCORES, LabelChoice, few_label_scores
from unweave.study import StudyFolder, StudySpec
from unweave.study.engines.local import cores
from unweave.study.presets import preset_named
from unweave.study.presets.generalisation import ROTH
from unweave.study.presets.published import SHARED
from unweave.study.session import run_study
from unweave.study.spec import grid
from unweave.study.table import collect
from unweave.training.trainer import Stopped

DATA = "dsprites"
LABELS = (100, 1_000)
TABLE_SECONDS = 60.0  # from one table to the next while the studies run
STOP_SECONDS = 12.0  # in which the studies have to stop
NEED_ALL_IMAGES = ("factor_vae_score",)  # left out on a CPU
WITHOUT = ("beta_vae_score",)  # of the metrics of the presets: it takes long and says what FactorVAE's says


@dataclass(frozen=True)
class Short:
    """A study in short: its spec, and the number of processes.

    Each of `trainers` trains the runs of some of the conditions and has `workers` that measure.
    """

    spec: Callable[[], StudySpec]
    workers: int
    trainers: int = 1
    has_labels: bool = False  # scores of its runs on a few labels are added to the table

    def part(self, number: int, options: argparse.Namespace) -> StudySpec:
        """What one of the trainers does."""
        spec = self.spec()
        conditions = list(dict.fromkeys(run.data for run in spec.runs))[number :: self.processes(options)]
        runs = tuple(
            quick(run) if options.quick else replace(run, steps=max(1, round(options.share * run.steps)))
            for run in spec.runs
            if run.seed < options.seeds and run.data in conditions and _is_chosen(run, options)
        )
        metrics = tuple(name for name in spec.metrics if not (options.quick and name in NEED_ALL_IMAGES))
        return replace(spec, runs=runs, metrics=metrics)

    def processes(self, options: argparse.Namespace) -> int:
        """How many processes train."""
        return 1 if options.quick else self.trainers


def _is_chosen(run: RunSpec, options: argparse.Namespace) -> bool:
    return not options.methods or run.method.name in options.methods.split(",")


def quick(run: RunSpec) -> RunSpec:
    """A run as `unweave train --preset quick` trains it, with the settings of the study."""
    return replace(run, precision="float32", **PRESETS["quick"].run_fields(run.method))


def part_of(
    preset: str, wanted: Mapping[str, Sequence[float]], steps: int, conditions: Sequence[str] = ()
) -> StudySpec:
    """The runs of a preset on dSprites with some strengths of some methods, perhaps under some conditions.

    `steps` are those of methods without a discriminator; FactorVAE makes half as many, as in the preset.
    """
    spec, names = preset_named(preset), {load(f"{DATA}:{condition}").name for condition in conditions}

    def is_wanted(run: RunSpec) -> bool:
        base = run.data.partition(":")[0]
        strengths = wanted.get(run.method.name)
        return base == DATA and (not names or run.data in names) and _has_strength(run, strengths)

    runs = tuple(
        replace(run, steps=steps * run.steps // SHARED["steps"]) for run in spec.runs if is_wanted(run)
    )
    metrics = tuple(name for name in spec.metrics if name not in WITHOUT)
    return replace(spec, runs=runs, metrics=metrics)


def _has_strength(run: RunSpec, strengths: Sequence[float] | None) -> bool:
    """Whether the strength of a run, its first setting, is one of these; any, if there are none."""
    if not strengths:
        return strengths is not None
    values = [getattr(run.method, name, None) for name in ("beta", "gamma")]
    if run.method.name == "factor_vae":
        values = values[1:]
    return next((value for value in values if value is not None), None) in strengths


def correlations() -> StudySpec:
    """Correlations of x and y, from none to strong, and one, two and four pairs of Roth et al."""
    methods: list[dict[str, Any]] = [
        {"name": "beta_vae", "beta": 16},
        {"name": "beta_tcvae", "beta": 10},
        {"name": "ada_gvae"},
        {"name": "s2_beta_vae", "beta": 16, "labels": 1_000},
    ]
    conditions = [f"x~y={sigma}" for sigma in (0.7, 0.4, 0.2)] + list(ROTH)
    data = [DATA, *(f"{DATA}:{condition}" for condition in conditions)]
    runs = grid(methods, data=data, seed="0-4", **SHARED | {"steps": 30_000})
    metrics = ("mig", "dci", "sap", "modularity", "elbo", "factor_vae_score")
    return StudySpec("correlations", runs, metrics, representations=("mean",), on=("training", "all"))


def few_labels() -> StudySpec:
    """Twelve unsupervised settings, and semi-supervised ones with 1,000 labels."""
    held_out = {"labels": 1_000, "train_percentage": 90}
    methods: list[dict[str, Any]] = [
        {"name": "beta_vae", "beta": [1, 2, 4, 6, 8, 16]},
        {"name": "beta_tcvae", "beta": [1, 2, 4, 6, 8, 10]},
        {"name": "s2_beta_vae", "beta": [1, 6, 16], **held_out},
        {"name": "s2_beta_tcvae", "beta": [1, 6, 10], **held_out},
        {"name": "s2_beta_vae", "beta": 16, "labels": 1_000, "labeller": ["perfect", "permuted"]},
    ]
    runs = grid(methods, data=DATA, seed="0-4", **SHARED | {"steps": 15_000})
    return StudySpec("few_labels", runs, ("mig", "dci", "sap", "modularity"), ("mean",))


STUDIES: dict[str, Short] = {
    "schott": Short(
        lambda: part_of("schott2022", {"beta_vae": [4], "ada_gvae": [], "supervised": []}, 12_000), 2, 2
    ),
    "correlations": Short(correlations, 1, 2),
    "element": Short(
        lambda: part_of("montero2021", {"beta_vae": [1, 8], "factor_vae": [50]}, 20_000, ["montero_element"]),
        1,
    ),
    "few_labels": Short(few_labels, 4, has_labels=True),
}


def run_part(name: str, number: int, options: argparse.Namespace) -> None:
    """Do what one trainer of a study does, in a process of its own."""
    short = STUDIES[name]
    spec, workers = replace(short.part(number, options), name=name), None if options.quick else short.workers
    with contextlib.suppress(Stopped):  # its time is over
        run_study(spec, out=_folder(options, name, number), workers=workers, progress=False)


def keep_scores(name: str, folders: Sequence[Path], out: Path, with_labels: bool = True) -> str:
    """Write the scores of the finished runs of a study, and say how many there are."""
    frames, notes, known = [], [], []
    for folder in folders:
        try:
            study = StudyFolder(folder)
            table, found = collect(study)
        except UnweaveError as error:  # its process has failed, or not begun
            notes.append(str(error))
            continue
        known.append(folder)
        steps = {run: spec.steps for run, spec in study.runs.items()}
        for part in study.spec.on:
            if (table["on"] == part).any():
                runs = wide(table, on=part)
                frames.append(runs.assign(on=part, steps=runs["run"].map(steps)))
        notes += found
    if not frames:
        return f"{name}: no run is measured. {' '.join(notes)}"
    runs = pd.concat(frames, ignore_index=True)
    path = out / f"follow-up-{name.replace('_', '-')}.csv"
    runs.round(5).to_csv(path, index=False)
    if STUDIES[name].has_labels and with_labels:
        runs = runs.merge(label_scores(known), on="run", how="left")
        runs.round(5).to_csv(path, index=False)
    return f"{name}: {runs['run'].nunique()} runs. {' '.join(notes)}"


def label_scores(folders: Sequence[Path]) -> pd.DataFrame:
    """The scores of runs on a few labels, a row for each run."""
    runs = [(folder, run) for folder in folders for run in candidates_in(folder).runs]
    with ProcessPoolExecutor(cores(), get_context("spawn")) as pool:
        scores = pool.map(scores_of_run, *zip(*runs, strict=True))
        return pd.DataFrame([{"run": run.id} | found for (_, run), found in zip(runs, scores, strict=True)])


def scores_of_run(folder: Path, run: Candidate) -> dict[str, float]:
    """The scores of one run on a few labels."""
    scores: dict[str, float] = {}
    for labels in LABELS:
        choice = LabelChoice(labels)
        [found] = few_label_scores(Candidates(folder, (run,)), choice, "cpu")[1].values()
        for name, value in found.items():  # a loss on held-out labels does not depend on the choice
            scores[choice.score_name(name) if name in FEW_LABEL_SCORES else name] = value
    return scores


def main() -> None:
    """Start all studies, wait, stop them, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--studies", default=",".join(STUDIES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="of the steps of each run")
    parser.add_argument("--methods", default="", help="only these, by name")
    parser.add_argument("--quick", action="store_true", help="short runs for a CPU, instead of --share")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--folder", type=Path, default=Path("studies"), help="where the runs are")
    parser.add_argument("--part", type=int, help="do in this process what this trainer of the study does")
    options = parser.parse_args()
    names = options.studies.split(",")
    if options.part is not None:
        run_part(names[0], options.part, options)
        return
    started = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    processes = {
        (name, number): subprocess.Popen(_command(options, name, number))
        for name in names
        for number in range(STUDIES[name].processes(options))
    }
    folders = {
        name: [_folder(options, name, number) for number in range(STUDIES[name].processes(options))]
        for name in names
    }
    written = started
    while any(process.poll() is None for process in processes.values()):
        if time.monotonic() - started > options.seconds:
            stop(processes.values())
        elif time.monotonic() - written > TABLE_SECONDS:
            for name in names:
                with contextlib.suppress(UnweaveError, OSError):  # nothing is finished, or not there yet
                    keep_scores(name, folders[name], options.out, with_labels=False)
            written = time.monotonic()
        time.sleep(1)
    print(f"{time.monotonic() - started:.0f} s: training and evaluation have ended", flush=True)
    for name in names:
        print([processes[name, number].returncode for number in range(len(folders[name]))], end=" ")
        try:
            print(keep_scores(name, folders[name], options.out), flush=True)
        except UnweaveError as error:  # nothing is finished
            print(f"{name}: {error}")


def stop(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """Stop the processes that still run; what they have finished is kept."""
    running = [process for process in processes if process.poll() is None]
    for process in running:
        process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + STOP_SECONDS
    for process in running:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()


def _folder(options: argparse.Namespace, name: str, number: int) -> Path:
    """Where a trainer has its runs."""
    folder: Path = options.folder / f"{name}-{number}"
    return folder


def _command(options: argparse.Namespace, name: str, number: int) -> list[str]:
    """How a trainer of a study is started in a process of its own."""
    numbers = [f"--seeds={options.seeds}", f"--share={options.share}", f"--folder={options.folder}"]
    how = [f"--methods={options.methods}", *(["--quick"] if options.quick else [])]
    return [
        sys.executable,
        __file__,
        str(options.out),
        f"--studies={name}",
        f"--part={number}",
        *numbers,
        *how,
    ]


if __name__ == "__main__":
    main()
