"""How long a small study takes from end to end, and what `unweave study plan` had forecast.

    python benchmarks/mini_study.py                                  on a GPU: about three minutes
    python benchmarks/mini_study.py --device cpu --data dsprites --steps 20 --points 300,150 --models 2

Part one is a study of six methods on two data sets, all metrics of the published study, mean and sampled
codes. It prints the forecast, then what was measured: seconds of training, and for each model of a data set
the seconds of the cores, the seconds in which a worker waits for images that are made and encoded, and the
wall-clock time. `wall` is from the first task to the last; `all` also has the start of the processes. Each
task is printed when it is done, so the times of an interrupted study are not lost.

Part two measures evaluation while training continues. Some models are trained shortly. Then a population
trains in a process of its own, and all other cores evaluate the models. Reported are seconds per model (wall
time of all evaluations / models) and by how much training slows down. `--parts study` or `--parts evaluation`
runs one of the parts.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.plain_pytorch import rate
from benchmarks.timed_work import Taken, keep_training, timed_posts, times_of

from unweave.data import load
from unweave.evaluation.device_encoder import DeviceEncoder, make_images
from unweave.evaluation.likelihoods import CHUNK
from unweave.progress import no_progress
from unweave.runs.run import Run
from unweave.streams import Stream
from unweave.study import StudyFolder, StudySpec
from unweave.study.display import forecast_lines, training_table
from unweave.study.engines.local import cores, run_local
from unweave.study.evaluation_time import FEW, metrics_time
from unweave.study.forecast import Forecast, forecast_of
from unweave.study.planner import plan_of, population_size
from unweave.study.progress import Status, StatusCallback
from unweave.study.spec import grid
from unweave.study.work import TrainAndScore
from unweave.training.image_tables import image_table
from unweave.training.trainer import pick_device

METHODS: list[dict[str, Any]] = [
    {"name": "beta_vae", "beta": 4},
    {"name": "annealed_vae", "c_max": 25},
    {"name": "beta_tcvae", "beta": 4},
    {"name": "dip_vae_i", "lambda_od": 5},
    {"name": "dip_vae_ii", "lambda_od": 5},
    {"name": "factor_vae", "gamma": 10},
]
WITHOUT_DISCRIMINATOR = METHODS[:5]
ENCODED = 1 << 17  # images with which making and encoding are timed


def spec_of(
    options: argparse.Namespace, data: Sequence[str], seeds: int, methods: Sequence[dict[str, Any]]
) -> StudySpec:
    """Some methods on some data, measured as in the published study."""
    precision = "bf16" if pick_device(options.device).type == "cuda" else "float32"
    shared = {"steps": options.steps, "batch": options.batch, "precision": precision}
    runs = grid(methods, data=list(data), seed=f"0-{seeds - 1}", **shared)
    train, test = map(int, options.points.split(","))
    return StudySpec("mini", runs, metrics=options.metrics.split(","), points=(train, test))


def studied(folder: Path, options: argparse.Namespace) -> None:
    """Part one: a study, its forecast and its times."""
    study = StudyFolder.create(folder, spec_of(options, options.data.split(","), options.seeds, METHODS))
    units = plan_of(study, population_size(pick_device(options.device)))
    print(f"study: {len(study.runs)} runs of {options.steps} steps in {len(units)} populations")
    start = time.perf_counter()
    forecast = forecast_of(study, units, [], options.device, None)
    print(f"forecast, in {time.perf_counter() - start:.0f} s:")
    for line in (*training_table(forecast.parts), *forecast_lines(forecast, only_here=False)):
        print(f"  {line}")
    start = time.perf_counter()
    print(run_local(study, units, timed_posts(options.device), each_task_of(study)))
    compared(forecast, times_of(study), time.perf_counter() - start)


def each_task_of(study: StudyFolder) -> StatusCallback:
    """A function that prints the tasks that were done since its last call."""
    known = 0

    def tell(_status: Status) -> None:
        nonlocal known
        times = times_of(study)
        for task in times[known:]:
            runs = f"{task.runs} run{'s' if task.runs > 1 else ''} of {task.data}"
            print(f"  {task.kind} {runs}: {task.wall:.1f} s, {task.cores:.1f} s of cores")
        known = len(times)

    return tell


def compared(forecast: Forecast, times: Sequence[Taken], everything: float) -> None:
    """Print what the study took, next to the forecast."""
    trained = [task for task in times if task.kind == "train"]
    measured = [task for task in times if task.kind == "evaluate"]
    wall = max(task.end for task in times) - min(task.start for task in times)
    evaluation = forecast.evaluation
    rows = [
        ("training, s of workers", sum(part.seconds for part in forecast.parts), total(trained, "wall")),
        ("evaluation, s of workers", evaluation.seconds, total(measured, "wall")),
        ("all, s", forecast.total, everything),
    ]
    print(f"{'':28s} forecast  measured  ratio")
    for name, expected, found in rows:
        print(f"{name:28s} {expected:8.1f}  {found:8.1f}  {expected / max(found, 1e-9):5.2f}")
    print(f"wall {wall:.1f} s; GPU to encode, forecast: {evaluation.gpu:.1f} s")
    print(f"end to end: {wall / max(len(measured), 1):.2f} s a model (train, encode, measure)")
    for name in dict.fromkeys(task.data for task in measured):
        per_model(name, [task for task in measured if task.data == name])


def per_model(name: str, tasks: Sequence[Taken]) -> None:
    """Print what evaluating one model took, a mean over tasks."""
    cores, wall, encoding = (total(tasks, what) / len(tasks) for what in ("cores", "wall", "encoding"))
    images = sum(task.images for task in tasks) / len(tasks)
    print(
        f"{name}: a model took {cores:.1f} s of cores and {wall:.1f} s of a worker, "
        f"of which {encoding:.1f} s to make and encode {images:,.0f} images"
    )


def total(tasks: Sequence[Taken], what: str) -> float:
    """The sum of something over tasks."""
    return sum(float(getattr(task, what)) for task in tasks)


def evaluated(folder: Path, options: argparse.Namespace) -> None:
    """Part two: evaluation while a population trains."""
    data = options.data.split(",")[0]
    posts = timed_posts(options.device, ["evaluate"])
    models = options.models or 2 * len(posts)
    spec = spec_of(options, [data], -(-models // 5), WITHOUT_DISCRIMINATOR)
    study = StudyFolder.create(folder, replace(spec, runs=spec.runs[:models]))
    units = plan_of(study, population_size(pick_device(options.device)))
    for unit in units:
        TrainAndScore(options.device).train(study, unit, no_progress)
    # Compiles what the workers need, so that they load it.
    metrics_time(replace(spec, points=FEW), load(data), spec.runs[0].latents)
    print(f"\nevaluation of {models} models of {data} by {len(posts)} processes while a population trains")
    encoding_rate(study, data, options)
    specs = spec_of(options, [data], -(-options.population // 5), WITHOUT_DISCRIMINATOR).runs
    diary, specs = folder / "updates.txt", specs[: options.population]
    with a_process(keep_training, specs, options.device, diary):
        while not diary.exists():
            time.sleep(0.1)
        time.sleep(options.seconds)
        alone = time.time() - options.seconds, time.time()
        before = len(specs) * updates_a_second(diary, *alone)
        print(f"{len(specs)} runs train at {before:,.0f} model-steps/s")
        run_local(study, units, posts, each_task_of(study))
    times = [task for task in times_of(study) if task.kind == "evaluate"]
    meanwhile = min(task.start for task in times), max(task.end for task in times)
    during = len(specs) * updates_a_second(diary, *meanwhile)
    wall = meanwhile[1] - meanwhile[0]
    print(f"meanwhile they train at {during:,.0f} ({during / before - 1:+.0%})")
    per_model(data, times)
    print(f"{wall:.1f} s for {len(times)} models: {wall / len(times):.2f} s a model while training continues")


def encoding_rate(study: StudyFolder, data: str, options: argparse.Namespace) -> None:
    """Print how fast a GPU that does nothing else makes and encodes images of stochastic data."""
    device, truth = pick_device(options.device), load(data)
    if device.type != "cuda" or not truth.stochastic:
        return
    run, stream = Run(study.run_folder(next(iter(study.runs))), str(device), truth), Stream.of(0)
    factors = truth.sample_factors(ENCODED, stream)
    table, encode = image_table(truth, device), DeviceEncoder(run, truth)

    def make() -> None:
        for start in range(0, ENCODED, CHUNK):
            make_images(table, factors[start : start + CHUNK], stream.skip(start))

    def make_and_encode() -> None:
        for start in range(0, ENCODED, CHUNK):
            encode(factors[start : start + CHUNK], stream.skip(start))

    making, both = (ENCODED * rate(action, 3, device) for action in (make, make_and_encode))
    print(f"an idle GPU makes {making:,.0f} images/s, makes and encodes {both:,.0f} images/s")


@contextmanager
def a_process(action: Callable[..., None], *given: object) -> Iterator[None]:
    """Do something in a process of its own until the end of the block."""
    process = multiprocessing.get_context("spawn").Process(target=action, args=given, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def updates_a_second(diary: Path, start: float, end: float) -> float:
    """The rate of `keep_training` between two times."""
    times, counts = np.loadtxt(diary, ndmin=2).T
    first, last = np.interp([start, end], times, counts)
    return float(last - first) / (end - start)


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default="study,evaluation")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data", default="scream_dsprites,dsprites", help="part two uses the first")
    parser.add_argument("--seeds", type=int, default=2, help="of the study")
    parser.add_argument("--steps", type=int, default=2_000, help="of each run")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--metrics", default="study", help="names, or a suite")
    parser.add_argument("--points", default="10000,5000", help="to train and to test on")
    parser.add_argument("--models", type=int, help="of part two; default: two for each process")
    parser.add_argument("--population", type=int, default=64, help="runs that train in part two")
    parser.add_argument("--seconds", type=float, default=5, help="in which a rate of training is measured")
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # what is known survives a kill
    device = pick_device(options.device)
    chip = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"{chip}, {cores()} cores, {date.today()}, torch {torch.__version__}", flush=True)
    parts = {"study": studied, "evaluation": evaluated}
    for name in options.parts.split(","):
        with TemporaryDirectory() as folder:
            parts[name](Path(folder), options)


if __name__ == "__main__":
    main()
