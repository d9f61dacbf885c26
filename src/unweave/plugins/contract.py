"""What every method, metric and data set must do: checks for tests of plug-ins, and for the built-in ones.

Each check raises `UnweaveError` with one sentence at the first violation.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from unweave.data.entry import Entry
from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.errors import UnweaveError
from unweave.evaluation.evaluate import evaluate
from unweave.methods import checked_method, settings_of
from unweave.methods.method import Method, numeric_settings
from unweave.metrics.metric import Metric
from unweave.metrics.own import as_metric
from unweave.places import data_root
from unweave.plugins.loading import origin_of
from unweave.runs.run import Run
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.streams import Stream
from unweave.training.trainer import Plan, Report, train_runs

STEPS, BATCH, LATENTS = 4, 8, 4
POINTS = (120, 60)  # of an evaluation, to train and to test on
BLOCKS, BLOCK_FACTORS = {"content": (0, 1), "style": (2, 3)}, {"content": ("size",)}
RUN_INPUTS = {"losses", "judge"}  # what only a trained run gives
TOLERANCE = 5e-5  # sums of a population and of a single run are added up in another order
FEW = 0.01  # share of the weights


def _render(factors: Factors, _stream: Stream) -> Images:
    rows = np.arange(32)
    half = 2 + factors[:, 0, None]
    across = np.abs(rows - (6 + 6 * factors[:, 1, None])) <= half
    along = np.abs(rows - (5 + 5 * factors[:, 2, None])) <= half
    return np.asarray((along[:, :, None] & across[:, None, :])[:, None] * np.uint8(255))


SQUARES = GroundTruth(
    "contract_squares",
    (Factor("size", 3), Factor("x", 4), Factor("y", 5)),
    (1, 32, 32),
    _render,
    Card("white squares", "CC0-1.0", ""),
    "rendered by unweave.plugins.contract",
    binary=True,
)


def check_method(
    kind: type[Method],
    data: GroundTruth = SQUARES,
    also: Callable[[Run], None] | None = None,
    **settings: Any,
) -> None:
    """Check a method on a small data set, which takes some seconds.

    It is built with its defaults, trains, resumes bit for bit, trains alone as in a population whose
    settings differ, encodes, decodes, is evaluated, and survives JSON. `also` gets the trained run, for
    further checks. `settings` are fields of `RunSpec`.
    """
    checked_method(kind, kind.__qualname__)
    with _violation(f"{kind.name} cannot be built with its defaults"):
        method = kind()
    shared = {"steps": STEPS, "batch": BATCH, "latents": LATENTS} | settings
    spec = RunSpec(method, data.name, **shared)
    other = RunSpec(_varied(method), data.name, seed=1, **shared)
    _check_json(spec)
    _check_json(other)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with _violation(f"{kind.name} does not train"):
            [alone] = _train([spec], data, folder / "alone")
        _check_finished(alone)
        with _violation(f"{kind.name} does not train together with a run of {settings_of(other.method)}"):
            together = _train([spec, other], data, folder / "together")
        _check_alike(alone, together[0], kind.name)
        with _violation(f"{kind.name} does not resume"):
            resumed = _resumed(spec, data, folder / "resumed")
        _check_same(alone, resumed, kind.name)
        with _violation(f"{kind.name} cannot be opened again"):
            run = Run(alone, data=data)
        _check_run(run, data)
        if also is not None:
            also(run)


def check_metric(part: Metric | Callable[..., float]) -> None:
    """Check a metric, or a function of (codes, factors): it runs, repeats itself and stays in its range."""
    name = part.name if isinstance(part, Metric) else getattr(part, "__name__", repr(part))
    function = part.function if isinstance(part, Metric) else part
    metric = part if isinstance(part, Metric) else as_metric(part, origin_of(function, "metric").place)
    if RUN_INPUTS & set(metric.inputs.arguments):
        raise UnweaveError(f"{name} needs a trained run: check it with unweave.evaluate(run, metrics=[...]).")
    with _violation(f"{name} cannot be computed"):
        one, two = (
            evaluate(
                _project,
                data=SQUARES,
                metrics=[metric],
                points=POINTS,
                blocks=BLOCKS,
                block_factors=BLOCK_FACTORS,
            )
            for _ in range(2)
        )
    if dict(one) != dict(two):
        raise UnweaveError(f"{name} gives other scores for the same codes and seed. Draw from `seed` only.")
    low, high = metric.range
    for score, value in one.items():
        if not np.isfinite(value):
            raise UnweaveError(f"{name} gives {score} = {value}. A score must be a finite number.")
        if score == name and not low <= value <= high:
            raise UnweaveError(f"{name} gives {value}, outside of its range {metric.range}. Set `range`.")


def _project(images: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means and log variances (n, LATENTS) of a fixed random linear encoder."""
    flat = images.reshape(len(images), -1)
    codes = flat @ Stream.of(0).normal(flat.shape[1], LATENTS)
    return codes, np.zeros_like(codes)


def check_data(part: Entry | GroundTruth) -> None:
    """Check a data set: names, shape and type of its images, and that each image depends on its row only."""
    truth = part if isinstance(part, GroundTruth) else part.load_grid(data_root(None))
    if truth.name != part.name:
        raise UnweaveError(f'"{part.name}" opens as "{truth.name}". Give both the same name.')
    if len({factor.name for factor in truth.factors}) < len(truth.factors):
        raise UnweaveError(f"two factors of {truth.name} have the same name.")
    index = np.unique(np.linspace(0, len(truth) - 1, 16).astype(np.int64))
    factors, stream = truth.factors_at(index), Stream.of(0)
    with _violation(f"{truth.name} cannot make images"):
        images = truth.observe(factors, stream)
        later = truth.observe(factors[5:], stream.skip(5))
    if images.shape != (len(index), *truth.shape) or images.dtype != np.uint8:
        raise UnweaveError(
            f"{truth.name} must make uint8 images (n, {', '.join(map(str, truth.shape))}); got "
            f"{images.dtype} {images.shape}."
        )
    if not np.array_equal(images[5:], later):
        raise UnweaveError(f"images of {truth.name} depend on the batch that they are made in.")


@contextmanager
def _violation(sentence: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise UnweaveError(f"{sentence}: {type(error).__name__}: {error}") from error


def _varied(method: Method) -> Method:
    """The method with other numbers, as far as it takes them."""
    for name in numeric_settings(method):
        value = getattr(method, name)
        try:
            method = replace(method, **{name: 1.25 * value if value else 0.5})
        except UnweaveError:
            continue
    return method


def _check_json(spec: RunSpec) -> None:
    name = spec.method.name
    with _violation(f"the settings of {name} do not survive JSON"):
        again = RunSpec.from_dict(json.loads(json.dumps(spec.to_dict())))
    if again != spec or again.id != spec.id:
        changed = [f.name for f in fields(spec) if getattr(spec, f.name) != getattr(again, f.name)]
        raise UnweaveError(f"{name} is not the same after a way through JSON: {', '.join(changed)}.")


def _train(
    specs: Sequence[RunSpec], data: GroundTruth, folder: Path, tell: Callable[[Report], None] | None = None
) -> list[RunFolder]:
    plan = Plan("cpu", log_every=1, checkpoint_every=STEPS // 2)
    return train_runs(specs, data, [folder / spec.id for spec in specs], plan, tell)


class _InterruptedError(Exception):
    """Stops a training after its first checkpoint."""


def _resumed(spec: RunSpec, data: GroundTruth, folder: Path) -> RunFolder:
    def stop(report: Report) -> None:
        if report.step > STEPS // 2:
            raise _InterruptedError

    with suppress(_InterruptedError):
        _train([spec], data, folder, stop)
    return _train([spec], data, folder)[0]


def _check_finished(folder: RunFolder) -> None:
    outcome = (folder.result or {"outcome": "unfinished"})["outcome"]
    if outcome != "finished":
        raise UnweaveError(
            f"{folder.spec.method.name} is {outcome} after {STEPS} steps on {folder.spec.data}."
        )


def _check_alike(alone: RunFolder, together: RunFolder, name: str) -> None:
    """Adam turns a gradient that is mere rounding into a full step, so a few weights may differ."""
    others = together.weights()
    distances = torch.cat(
        [(weight.float() - others[key].float()).abs().flatten() for key, weight in alone.weights().items()]
    )
    share = (distances > TOLERANCE).float().mean().item()
    if not share <= FEW:
        raise UnweaveError(
            f"{name} trains to other weights in a population than alone: {share:.0%} of them differ, by up "
            f"to {distances.max().item():.2g}. Reduce over the last axes only, and never mix runs."
        )


def _check_same(whole: RunFolder, resumed: RunFolder, name: str) -> None:
    others = resumed.weights()
    for key, weight in whole.weights().items():
        if not torch.equal(weight, others[key]):
            raise UnweaveError(
                f"{name} trains to other weights after a stop: {key} differs. Draw random numbers from "
                "`step.draws` only, and keep no state in the method."
            )


def _check_run(run: Run, data: GroundTruth) -> None:
    name = run.spec.method.name
    images = data.observe(data.factors_at(np.arange(6)), 0)
    with _violation(f"{name} cannot encode and decode"):
        codes = run.encode(images)
        decoded = run.decode(codes)
    for what, array, shape in (("encode", codes, (6, run.spec.latents)), ("decode", decoded, images.shape)):
        if array.shape != shape or not np.isfinite(array).all():
            raise UnweaveError(f"{name}.{what} must give finite numbers of shape {shape}; got {array.shape}.")
    with _violation(f"{name} cannot be evaluated"):
        evaluate(run, metrics="mig", points=(100, 50))
