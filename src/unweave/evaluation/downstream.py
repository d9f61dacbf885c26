"""`downstream`: how well factors are predicted from codes, with few labels and on unseen combinations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unweave.cpu_settings import one_blas_thread
from unweave.data.conditions.naming import conditioned
from unweave.data.grid import Factor, GroundTruth
from unweave.data.opening import open_data
from unweave.data.supervision.choices import is_whole
from unweave.errors import UnweaveError
from unweave.evaluation.effort import Effort
from unweave.evaluation.evaluate import open_subject, source_of
from unweave.evaluation.intervals import mean_and_interval
from unweave.evaluation.parts import Part
from unweave.evaluation.scores import save_figure
from unweave.evaluation.sources import GroundTruthSource, Sample
from unweave.metrics.downstream import Predictor, check_predictor, predict_labels
from unweave.metrics.kinds import FactorKind, columns_of
from unweave.metrics.r2 import RegressionModel, check_model, predict_targets
from unweave.metrics.real_factors import Floats, standardised
from unweave.progress import Progress
from unweave.streams import Stream

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SIZES = (10, 100, 1_000)
REPEATS = 5
TEST = 5_000
ACCURACY, R2, ANGULAR_ERROR = "accuracy", "r2", "angular_error"
BOUNDS = {ACCURACY: (0.0, 1.0), R2: (-math.inf, 1.0), ANGULAR_ERROR: (0.0, 180.0)}
MEAN = "mean"  # stands for the mean over factors
TRAINING, HELD_OUT = "training", "held_out"


class CurvePoint(NamedTuple):
    """One number of a curve: the mean over repeats, and its 95% t-interval."""

    measure: str  # accuracy, r2 or angular_error
    factor: str  # "mean" is the mean over factors
    part: str  # the combinations of the test images: training or held_out
    size: int  # labelled images that the predictor is fitted to
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class DownstreamCurves:
    """How well factors are predicted, against the number of labelled images."""

    subject: str
    data: str
    repeats: int
    points: tuple[CurvePoint, ...]

    def __getitem__(self, name: tuple[str, str, int] | tuple[str, str, int, str]) -> CurvePoint:
        """A measure, a factor (or "mean"), a size and a part: result["accuracy", "shape", 100]."""
        measure, factor, size, part = name if len(name) == 4 else (*name, TRAINING)
        for point in self.points:
            if (point.measure, point.factor, point.size, point.part) == (measure, factor, size, part):
                return point
        raise KeyError(f'there is no "{measure}" of {factor} for {size} labels on {part} in this result.')

    def __str__(self) -> str:
        rows = {
            name: [point for point in self.points if point[:3] == name]
            for name in dict.fromkeys(point[:3] for point in self.points)
        }
        width = max(len(" ".join(name)) for name in rows)
        sizes = [f"{point.size:,}" for point in next(iter(rows.values()))]
        lines = ["  ".join([f"{'labels':{width}}", *(f"{size:24}" for size in sizes)])]
        lines += [
            "  ".join([f"{' '.join(name):{width}}", *(f"{_cell(point):24}" for point in points)])
            for name, points in rows.items()
        ]
        return "\n".join(line.rstrip() for line in lines)

    def frame(self) -> pd.DataFrame:
        """The numbers as a table."""
        import pandas as pd

        return pd.DataFrame([point._asdict() for point in self.points])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the curves with their intervals; with a path, write the picture there too."""
        from unweave.evaluation.downstream_figure import draw

        figure = draw(self)
        if path is not None:
            save_figure(figure, path)
        return figure


def downstream(
    subject: Any,
    *,
    data: str | Path | GroundTruth | None = None,
    split: str | None = None,
    sizes: Sequence[int] = SIZES,
    repeats: int = REPEATS,
    test: int = TEST,
    predictor: Predictor = "trees",
    model: RegressionModel = "kernel",
    seed: int | Stream = 0,
    tell: Progress | None = None,
) -> DownstreamCurves:
    """Predict factors from the mean codes of a run, or of an encoder on `data`, with few and many labels.

    For each size, predictors are fitted to that many labelled images and tested on `test` others. This is
    repeated with other labelled images. Numbers are means over repeats with 95% t-intervals, which say how
    far the mean over labelled sets may be off; the test images are the same in all repeats and for all sizes.
    Other `sizes`, `repeats` or `test` draw other images.

    - accuracy of each factor, by the `predictor` of `unweave.metrics.downstream`.
    - r2 of each ordinal and circular factor, by the regression `model` of `unweave.metrics.r2`:
      1 - squared error / variance of the factor over the full grid. The targets of a circular factor are the
      cosine and the sine of its angle, with the sum of both errors and a variance of 1. "kernel" is
      penalised, so few labels suffice; it uses at most the first 2,000 of them. "linear" extrapolates beyond
      the range of the labels, "kernel" does not.
    - angular_error of each circular factor: mean angle between truth and prediction, in degrees; 90 is
      chance, and 0 is the best.

    `split` is a condition such as "hold(x>=16)". Predictors are then fitted to images of the other
    combinations and tested on both parts. The encoder has seen what it was trained on. Data with held-out
    combinations are split by these.
    """
    check_predictor(predictor)
    check_model(model)
    sizes = _checked_sizes(sizes, repeats, test)
    opened = open_subject(subject, None)
    truth = _data_of(opened, data, split)
    effort = Effort((max(sizes) * repeats, test), seed=seed)
    parts: tuple[Part, ...] = ("training", "held_out") if truth.allowed is not None else ("training",)
    sources = [_grid_source(source_of(opened, effort, data=truth, on=part, tell=tell)) for part in parts]
    samples = [source.sample(effort.points, "mean", effort.stream) for source in sources]
    if len(samples[0].codes) < effort.points[0]:
        raise UnweaveError(
            f"{truth.name} has too few images for {effort.points[0]:,} labelled ones. Use smaller sizes."
        )
    factors = tuple(truth.factors[j] for j in sources[0].varied)
    if MEAN in (factor.name for factor in factors):
        raise UnweaveError(
            f'{truth.name} has a factor "{MEAN}", a name that stands for the mean over factors here. Give it '
            "another name."
        )
    task = _Task(factors, samples, predictor, model, sources[0].unscaled is not None, effort.stream)
    name = str(opened.path) if hasattr(opened, "spec") else type(opened).__name__
    with one_blas_thread():
        curves = tuple(_curves(task, sizes, repeats, tell))
    return DownstreamCurves(name, truth.name, repeats, curves)


@dataclass(frozen=True)
class _Task:
    """What is predicted, from which codes; the first sample has the images to fit on."""

    factors: tuple[Factor, ...]
    samples: Sequence[Sample]
    predictor: Predictor
    model: RegressionModel
    unscaled: bool  # whether codes have no scale, which logistic regression needs
    stream: Stream

    def measures(self, rows: slice, repeat: int) -> dict[tuple[str, str, str], float]:
        """All numbers of predictors that are fitted to some rows: by measure, factor and part."""
        train = np.asarray(self.samples[0].codes[rows], np.float64)
        labels = self.samples[0].factors[rows]
        tests = np.concatenate([np.asarray(sample.test_codes, np.float64) for sample in self.samples])
        stream = self.stream.child("downstream", repeat, len(train))
        parts = [
            self._accuracies(train, labels, tests, stream),
            self._regressions(train, labels, tests, stream),
        ]
        values = {key: value for part in parts for key, value in part}
        groups: dict[tuple[str, str], list[float]] = {}
        for (measure, _, part_name), value in values.items():
            groups.setdefault((measure, part_name), []).append(value)
        means = {(measure, MEAN, name): float(np.mean(group)) for (measure, name), group in groups.items()}
        return values | means

    def _accuracies(
        self, train: Floats, labels: NDArray[Any], tests: Floats, stream: Stream
    ) -> Iterator[tuple[tuple[str, str, str], float]]:
        if self.unscaled:
            train, tests = standardised(train, tests)
        for j, factor in enumerate(self.factors):
            _, predicted = predict_labels(self.predictor, train, labels[:, j], tests, stream.child(j))
            for part, found, sample in self._by_part(predicted):
                yield (ACCURACY, factor.name, part), float((found == sample.test_factors[:, j]).mean())

    def _regressions(
        self, train: Floats, labels: NDArray[Any], tests: Floats, stream: Stream
    ) -> Iterator[tuple[tuple[str, str, str], float]]:
        columns = {j: factor for j, factor in enumerate(self.factors) if factor.kind != "categorical"}
        if not columns:
            return
        targets = _targets(labels, columns)
        centre = targets.mean(axis=0)
        scaled, scaled_tests = standardised(train, tests)
        predicted = (
            predict_targets(scaled, targets - centre, scaled_tests, self.model, stream.child(R2)) + centre
        )
        for part, found, sample in self._by_part(predicted):
            truth, column = _targets(sample.test_factors, columns), 0
            for factor in columns.values():
                own = slice(column, column + (2 if factor.kind == "circular" else 1))
                column = own.stop
                error = float(((found[:, own] - truth[:, own]) ** 2).sum(axis=1).mean())
                yield (R2, factor.name, part), 1 - error
                if factor.kind == "circular":
                    yield (ANGULAR_ERROR, factor.name, part), _angular_error(found[:, own], truth[:, own])

    def _by_part(self, predicted: NDArray[Any]) -> Iterator[tuple[str, NDArray[Any], Sample]]:
        """The predictions for the test images of each part."""
        start = 0
        for name, sample in zip((TRAINING, HELD_OUT), self.samples, strict=False):
            yield name, predicted[start : start + len(sample.test_codes)], sample
            start += len(sample.test_codes)


def _curves(task: _Task, sizes: Sequence[int], repeats: int, tell: Progress | None) -> Iterator[CurvePoint]:
    """The points of all curves, one curve after another."""
    numbers: dict[tuple[str, str, str], dict[int, list[float]]] = {}
    for place, size in enumerate(sizes):
        for repeat in range(repeats):
            first = repeat * sizes[-1]
            for key, value in task.measures(slice(first, first + size), repeat).items():
                numbers.setdefault(key, {}).setdefault(size, []).append(value)
            if tell:
                tell(place * repeats + repeat + 1, len(sizes) * repeats, "predicting")
    order = [MEAN, *(factor.name for factor in task.factors)]
    for key in sorted(numbers, key=lambda key: (list(BOUNDS).index(key[0]), order.index(key[1]))):
        for size, values in numbers[key].items():
            yield CurvePoint(*key, size, *mean_and_interval(values, BOUNDS[key[0]]))


def _targets(factors: NDArray[Any], columns: Mapping[int, Factor]) -> Floats:
    """(n, targets) of variance 1 over the full grid: ordinal factors, cosine and sine of circular ones."""
    targets: list[Floats] = []
    for j, factor in columns.items():
        values = np.asarray(factors[:, j], np.float64)
        if factor.kind == "circular":
            targets += columns_of(values, FactorKind("circular", float(factor.period or factor.size)))
        else:
            targets.append(values / math.sqrt((factor.size**2 - 1) / 12))
    return np.stack(targets, axis=1)


def _angular_error(predicted: Floats, truth: Floats) -> float:
    """The mean angle between two rows of cosines and sines, in degrees."""
    angles = [np.arctan2(side[:, 1], side[:, 0]) for side in (predicted, truth)]
    turn = np.abs(angles[0] - angles[1])
    return float(np.degrees(np.minimum(turn, 2 * np.pi - turn)).mean())


def _cell(point: CurvePoint) -> str:
    bounds = "" if math.isnan(point.low) else f" [{point.low:.3g}, {point.high:.3g}]"
    return f"{point.estimate:.3g}{bounds}"


def _checked_sizes(sizes: Sequence[int], repeats: int, test: int) -> list[int]:
    """The sizes in their order, each once; an error if one of the counts is no whole number from 1."""
    counts = [*sizes] if isinstance(sizes, Sequence | np.ndarray) else []
    whole = [is_whole(count) and count > 0 for count in (*counts, repeats, test)]
    if not counts or not all(whole):
        raise UnweaveError(
            "sizes, repeats and test must be whole numbers from 1, such as sizes=(10, 100), repeats=5 and "
            f"test=5000; got sizes={sizes!r}, repeats={repeats!r} and test={test!r}."
        )
    return sorted({int(size) for size in counts})


def _data_of(subject: Any, data: str | Path | GroundTruth | None, split: str | None) -> GroundTruth:
    """The ground truth that is predicted, with the combinations of the split held out."""
    chosen = subject.data if data is None and hasattr(subject, "spec") else data
    truth = open_data(chosen) if isinstance(chosen, str | Path) else chosen
    if not isinstance(truth, GroundTruth):
        raise UnweaveError(
            "downstream needs a run, or an encoder and data with a full grid of factors: "
            f"downstream(encode, data='dsprites'); got {type(truth).__name__} as data."
        )
    if split is None:
        return truth
    if truth.allowed is not None:
        raise UnweaveError(
            f"{truth.name} holds combinations out already, and downstream tests on these. Leave `split` out."
        )
    held = conditioned(truth, split)
    if held.allowed is None:
        raise UnweaveError(f'`split` must hold combinations out, such as "hold(x>=16)"; got "{split}".')
    return held


def _grid_source(source: object) -> GroundTruthSource:
    if not isinstance(source, GroundTruthSource):
        raise UnweaveError("downstream needs data with a full grid of factors; these data have none.")
    return source
