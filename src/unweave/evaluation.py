"""From a trained run to scores: draw points, encode them once, measure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unweave.data import GroundTruth
from unweave.errors import UnweaveError
from unweave.metrics.table import compute, metric_named
from unweave.run import Run
from unweave.streams import Stream

TRAIN, TEST = 10_000, 5_000  # points, as in the published study
CHUNK = 1000
SECONDS = ("mig", "sap", "modularity", "explicitness")  # metrics that take no longer than a few seconds


def score(run: Run, metrics: Sequence[str] = SECONDS, seed: int | Stream = 0) -> dict[str, float]:
    """Scores of the mean codes of a run, under names that state their estimators: "mig[bins20,mean]".

    Training points and test points are drawn from the run's data set; each metric has a stream of its own,
    so that a score does not depend on which others are asked for.
    """
    chosen = [metric_named(name) for name in metrics]
    for metric in chosen:
        if metric.needs not in ("codes", "codes+test", "unsupervised"):
            raise UnweaveError(f"{metric.name} needs {metric.needs}, which a run's codes do not give.")
    stream = Stream.of(seed).child("evaluation")
    codes, factors = _encoded(run, TRAIN + TEST, stream)
    test = (codes[TRAIN:], factors[TRAIN:])
    found: dict[str, float] = {}
    for metric in chosen:
        numbers = compute(metric, codes[:TRAIN], factors[:TRAIN], test=test, seed=stream.child(metric.name))
        for name, value in numbers.items():
            part = name.removeprefix(metric.name)  # "" or ".train"
            found[f"{metric.protocol}{part}"] = value
    return found


def _encoded(run: Run, n: int, stream: Stream) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    truth = run.data
    if not isinstance(truth, GroundTruth):
        raise UnweaveError(f"{truth.name} is not a full grid of factors, so its runs cannot be scored yet.")
    factors = truth.sample_factors(n, stream)
    codes = [
        run.encode(truth.observe(factors[start : start + CHUNK], stream.skip(start)))
        for start in range(0, n, CHUNK)
    ]
    return np.concatenate(codes), factors
