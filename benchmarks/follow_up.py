"""The follow-up studies on dSprites, shorter than their presets: three seeds, some of the settings.

    python benchmarks/follow_up.py OUT [--studies schott,roth] [--seeds 3] [--share 1] [--seconds 540]

All studies run at the same time, each in a process with workers of its own. OUT gets a CSV for each study,
with a row for each run and part of the data. After `--seconds` the studies are stopped, and the scores of
finished runs are written. Small populations leave most of a GPU idle: start NVIDIA's multi-process service
first (`nvidia-cuda-mps-control -d`). docs/follow_up_studies.md shows the results.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

import unweave
from unweave.data import load
from unweave.errors import UnweaveError
from unweave.results import wide
from unweave.runs.spec import RunSpec
from unweave.study import StudyFolder, StudySpec
from unweave.study.presets import preset_named
from unweave.study.presets.published import SHARED
from unweave.study.session import run_study
from unweave.study.spec import grid
from unweave.study.table import collect

DATA = "dsprites"
LABELS = (100, 1_000)
WITHOUT = ("beta_vae_score",)  # of the metrics of the presets: it takes long and says what FactorVAE's says


@dataclass(frozen=True)
class Short:
    """A study in short: its spec, how many processes measure, and what is added to the table at the end."""

    spec: Callable[[], StudySpec]
    workers: int
    extra: Callable[[Path], pd.DataFrame] | None = None


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


def strengths() -> StudySpec:
    """Weaker correlations of x and y than sigma 0.2, with the settings and steps of the runs with 0.2."""
    methods: list[dict[str, Any]] = [
        {"name": "beta_vae", "beta": 8},
        {"name": "beta_tcvae", "beta": 6},
        {"name": "ada_gvae"},
    ]
    data = [f"{DATA}:x~y={sigma}" for sigma in (0.4, 0.7)]
    runs = grid(methods, data=data, seed="0-4", **SHARED | {"steps": 30_000})
    metrics = ("mig", "dci", "sap", "modularity", "elbo", "factor_vae_score")
    return StudySpec("strengths", runs, metrics, representations=("mean",), on=("training", "all"))


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
    runs = grid(methods, data=DATA, seed="0-4", **SHARED | {"steps": 20_000})
    return StudySpec("few_labels", runs, ("mig", "dci", "sap", "modularity"), ("mean",))


def label_scores(folder: Path) -> pd.DataFrame:
    """The scores of runs on a few labels, a row for each run."""
    frames = [unweave.select(folder, by="few_labels", labels=labels, device="cpu").table for labels in LABELS]
    # The loss on labels that a run held out is the same in both.
    return wide(pd.concat(frames, ignore_index=True).drop_duplicates(["run", "score"]), "")


STUDIES: dict[str, Short] = {
    "schott": Short(
        lambda: part_of("schott2022", {"beta_vae": [4], "ada_gvae": [], "supervised": []}, 15_000), 3
    ),
    "roth": Short(
        lambda: part_of("roth2023", {"beta_vae": [4], "beta_tcvae": [4], "factor_vae": [10]}, 20_000), 3
    ),
    "strengths": Short(strengths, 2),
    "element": Short(
        lambda: part_of("montero2021", {"beta_vae": [1, 8], "factor_vae": [50]}, 20_000, ["montero_element"]),
        1,
    ),
    "few_labels": Short(few_labels, 2, label_scores),
}


def run_one(name: str, folder: Path, seeds: int, share: float) -> None:
    """Run a study, in a process of its own."""
    short = STUDIES[name]
    spec = short.spec()
    runs = tuple(
        replace(run, steps=max(1, round(share * run.steps))) for run in spec.runs if run.seed < seeds
    )
    run_study(replace(spec, name=name, runs=runs), out=folder, workers=short.workers, progress=False)


def keep_scores(name: str, folder: Path, out: Path) -> str:
    """Write the scores of the finished runs of a study, and say how many there are."""
    study = StudyFolder(folder)
    table, notes = collect(study)
    parts = [wide(table, on=part).assign(on=part) for part in study.spec.on if (table["on"] == part).any()]
    runs = pd.concat(parts, ignore_index=True)
    extra = STUDIES[name].extra
    if extra is not None:
        with contextlib.suppress(UnweaveError):  # no run is finished
            scores = extra(folder)
            known = ["run", *(column for column in scores if column not in runs)]
            runs = runs.merge(scores[known], on="run", how="left")
    runs.round(5).to_csv(out / f"follow-up-{name}.csv", index=False)
    return f"{name}: {runs['run'].nunique()} runs. {' '.join(notes)}"


def main() -> None:
    """Start all studies, wait, stop them, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--studies", default=",".join(STUDIES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="of the steps of each run")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--folder", type=Path, default=Path("studies"), help="where the runs are")
    parser.add_argument("--one", action="store_true", help="run the study in this process")
    options = parser.parse_args()
    names = options.studies.split(",")
    if options.one:
        run_one(names[0], options.folder / names[0], options.seeds, options.share)
        return
    started = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    processes = {name: subprocess.Popen([*_command(options, name), "--one"]) for name in names}
    while processes:
        late = time.monotonic() - started > options.seconds
        for name, process in list(processes.items()):
            if late and process.poll() is None:
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)
            if process.poll() is not None:
                del processes[name]
                print(f"{time.monotonic() - started:.0f} s, status {process.returncode}", end=", ")
                print(keep_scores(name, options.folder / name, options.out), flush=True)
        time.sleep(1)


def _command(options: argparse.Namespace, name: str) -> list[str]:
    """How a study is started in a process of its own."""
    numbers = [f"--seeds={options.seeds}", f"--share={options.share}", f"--folder={options.folder}"]
    return [sys.executable, __file__, str(options.out), f"--studies={name}", *numbers]


if __name__ == "__main__":
    main()
