"""`generalisation`: what is lost on combinations of factors that were held out of the training data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unweave.cpu_settings import one_blas_thread
from unweave.data.grid import GroundTruth
from unweave.errors import UnweaveError
from unweave.evaluation.effort import POINTS, Effort
from unweave.evaluation.evaluate import open_subject, source_of
from unweave.evaluation.sources import GroundTruthSource
from unweave.metrics.estimators.boosting import fit_boosted_trees, sort_codes
from unweave.metrics.r2 import RegressionModel, check_model, predict_targets
from unweave.metrics.real_factors import standardised
from unweave.progress import Progress
from unweave.streams import Stream

if TYPE_CHECKING:
    import pandas as pd

CHUNK = 512  # images that are decoded at once


class Compared(NamedTuple):
    """A number on combinations that were trained on, and on those that were held out."""

    measure: str  # accuracy, r2, reconstruction or squared_error
    factor: str  # empty for measures of images
    training: float
    held_out: float

    @property
    def difference(self) -> float:
        """Held out minus training."""
        return self.held_out - self.training


@dataclass(frozen=True)
class Generalisation:
    """Numbers on the training combinations and on those that were held out."""

    subject: str
    data: str
    rows: tuple[Compared, ...]
    points: tuple[int, int]  # fitted on, and tested on in either part

    def __getitem__(self, name: tuple[str, str] | str) -> Compared:
        """A measure of images, or a measure and a factor: result["accuracy", "shape"]."""
        measure, factor = (name, "") if isinstance(name, str) else name
        for row in self.rows:
            if (row.measure, row.factor) == (measure, factor):
                return row
        raise KeyError(f'there is no "{measure}" {f"of {factor} " if factor else ""}in this result.')

    def __str__(self) -> str:
        names = [f"{row.measure} {row.factor}".strip() for row in self.rows]
        width = max(map(len, names), default=0)
        lines = [f"{'':{width}}  training  held out  difference"]
        for name, row in zip(names, self.rows, strict=True):
            lines.append(f"{name:{width}}  {row.training:8.4g}  {row.held_out:8.4g}  {row.difference:+10.4g}")
        return "\n".join(lines)

    def frame(self) -> pd.DataFrame:
        """The numbers as a table."""
        import pandas as pd

        return pd.DataFrame([{**row._asdict(), "difference": row.difference} for row in self.rows])


def generalisation(
    subject: Any,
    *,
    data: str | Path | GroundTruth | None = None,
    points: tuple[int, int] = POINTS,
    model: RegressionModel = "mlp",
    seed: int | Stream = 0,
    tell: Progress | None = None,
) -> Generalisation:
    """Compare a run, or an encoder on `data`, on held-out combinations with those that it was trained on.

    Predictors of the factors are fitted on the mean codes of points[0] training images. Each is tested on
    points[1] other training images and on points[1] images of held-out combinations.

    - accuracy of each factor: gradient boosted trees, as in `unweave.metrics.downstream`.
    - r2 of each ordinal factor: 1 - squared error / variance of the factor over the full grid [1], with the
      regression `model` of `unweave.metrics.r2`. The same variance is used for both parts.
    - reconstruction: mean -log p(x|z) at the mean code, and squared_error: mean squared error of a pixel in
      [0, 1]. Only of runs.

    Nothing is fitted to, standardised by or selected on held-out combinations.

    [1] Schott et al., Visual representation learning does not generalize strongly within the same domain,
    ICLR 2022. Differs from [1]: there the predictors and the encoder are often trained together, and all
    factors have an r2, also categories and angles, whose positions are predicted.
    """
    check_model(model)
    effort, opened = Effort(points, seed=seed), open_subject(subject, None)
    seen, unseen = (
        _grid_source(source_of(opened, effort, data=data, on=on, tell=tell))
        for on in ("training", "held_out")
    )
    stream = effort.stream
    trained, held = (source.sample(points, "mean", stream) for source in (seen, unseen))
    fitted = _Fitted(trained.codes, trained.factors, (trained.test_codes, held.test_codes))
    tested = (trained.test_factors, held.test_factors)
    with one_blas_thread():
        rows = [*_accuracies(fitted, tested, seen, stream), *_r2(fitted, tested, seen, model, stream)]
    if hasattr(opened, "spec"):
        rows += _reconstructions(opened, (seen.truth, unseen.truth), points[1], stream)
    name = str(opened.path) if hasattr(opened, "spec") else type(opened).__name__
    return Generalisation(name, seen.truth.name, tuple(rows), points)


class _Fitted(NamedTuple):
    """Codes and factors to fit on, and codes of both parts to test on."""

    codes: NDArray[Any]
    factors: NDArray[Any]
    tests: tuple[NDArray[Any], NDArray[Any]]


def _grid_source(source: object) -> GroundTruthSource:
    if not isinstance(source, GroundTruthSource):
        raise UnweaveError("generalisation needs data with a full grid of factors; these data have none.")
    return source


def _accuracies(
    fitted: _Fitted, tested: tuple[NDArray[Any], NDArray[Any]], source: GroundTruthSource, stream: Stream
) -> Iterator[Compared]:
    ordered = sort_codes(np.asarray(fitted.codes, np.float64))
    for j, name in enumerate(source.names):
        trees = fit_boosted_trees(ordered, fitted.factors[:, j], seed=stream.child("accuracy", j))
        parts = zip(fitted.tests, tested, strict=True)
        seen, unseen = (
            float((trees.predict(np.asarray(codes, np.float64)) == factors[:, j]).mean())
            for codes, factors in parts
        )
        yield Compared("accuracy", name, seen, unseen)


def _r2(
    fitted: _Fitted,
    tested: tuple[NDArray[Any], NDArray[Any]],
    source: GroundTruthSource,
    model: RegressionModel,
    stream: Stream,
) -> Iterator[Compared]:
    kinds = [source.truth.factors[j] for j in source.varied]
    columns = [j for j, factor in enumerate(kinds) if factor.kind == "ordinal"]
    if not columns:
        return
    deviations = np.array([math.sqrt((kinds[j].size ** 2 - 1) / 12) for j in columns])
    targets = fitted.factors[:, columns] / deviations
    centre = targets.mean(axis=0)
    train, codes = standardised(
        np.asarray(fitted.codes, np.float64), np.asarray(np.concatenate(fitted.tests), np.float64)
    )
    predicted = predict_targets(train, targets - centre, codes, model, stream.child("r2")) + centre
    errors = (predicted - np.concatenate(tested)[:, columns] / deviations) ** 2
    first = len(tested[0])
    for column, j in enumerate(columns):
        seen, unseen = errors[:first, column].mean(), errors[first:, column].mean()
        yield Compared("r2", kinds[j].name, 1 - float(seen), 1 - float(unseen))


def _reconstructions(
    run: Any, truths: tuple[GroundTruth, GroundTruth], images: int, stream: Stream
) -> list[Compared]:
    """The mean losses and squared errors of drawn images of both parts."""
    means = []
    for truth in truths:
        losses, errors = [], []
        for start in range(0, images, CHUNK):
            part = stream.child("reconstruction").skip(start)
            drawn = truth.sample_images(min(CHUNK, images - start), part)
            codes = run.encode(drawn)
            losses.append(run.losses(drawn, codes))
            errors.append(((run.decode(codes) - drawn / 255.0) ** 2).mean(axis=(1, 2, 3)))
        means.append((float(np.concatenate(losses).mean()), float(np.concatenate(errors).mean())))
    [(seen_loss, seen_error), (unseen_loss, unseen_error)] = means
    return [
        Compared("reconstruction", "", seen_loss, unseen_loss),
        Compared("squared_error", "", seen_error, unseen_error),
    ]
