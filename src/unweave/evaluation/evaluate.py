"""`evaluate`: scores of codes, of any encoder, or of a run."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from unweave.data import Collection, GroundTruth
from unweave.data import load as load_data
from unweave.errors import UnweaveError
from unweave.evaluation.encoders import encoder_of
from unweave.evaluation.scores import Score, Scores
from unweave.evaluation.sources import (
    ArraySource,
    GroundTruthSource,
    Sample,
    Source,
    Tell,
    collection_source,
)
from unweave.metrics.information import mutual_information
from unweave.metrics.metric import Measured, Metric, measure
from unweave.metrics.table import SUITES, metrics_named
from unweave.streams import Stream

POINTS = (10_000, 5_000)  # to train and to test on, as in the published study
REPRESENTATIONS = ("mean", "sampled")


def evaluate(
    subject: Any,
    factors: ArrayLike | None = None,
    *,
    data: str | GroundTruth | Collection | None = None,
    metrics: str | Sequence[str] = "headline",
    representation: str = "mean",
    log_var: ArrayLike | None = None,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    points: tuple[int, int] = POINTS,
    repeats: int = 0,
    seed: int | Stream = 0,
    jobs: int | None = None,
    tell: Tell | None = None,
) -> Scores:
    """Scores of codes and factors, of an encoder on a data set, or of a run.

    - `evaluate(codes, factors)`: arrays (n, d) and (n, k). At most `points` rows, chosen at random, are used
      to train and to test on; a third is held out from what is fitted, unless `test=(codes, factors)` is
      given. Metrics that intervene look for rows that share a factor, or look points up if all combinations
      are there.
    - `evaluate(encode, data="dsprites")`: a function, a torch module or a transformer of scikit-learn; see
      `unweave.evaluation.encoders.encoder_of` for how each is called.
    - `evaluate(run)`: a run, on the data that it was trained on, or on `data`.

    `metrics` are names, or quick, headline, study or all. Of a suite, what cannot be measured is left out and
    noted; a metric that is asked for by name is refused. `representation` is mean, or sampled: codes are then
    drawn from q(z|x). With `repeats`, each score is measured so many times more on points drawn anew (given
    arrays: on bootstrap samples of their rows), and gets an interval; its value stays the same.

    >>> factors = np.stack(np.meshgrid(*map(np.arange, (4, 5, 6)), indexing="ij"), axis=-1).reshape(-1, 3)
    >>> scores = evaluate(factors * 0.5, factors, metrics="mig, factor_vae_score")
    >>> scores["mig"], scores["factor_vae_score.eval_accuracy"]
    (1.0, 1.0)
    """
    effort = Effort(points, repeats, seed, jobs)
    source = source_of(subject, effort, factors=factors, data=data, log_var=log_var, test=test, tell=tell)
    chosen, notes = possible_metrics(metrics, source)
    return measure_source(source, chosen, representation, effort, _name_of(subject), notes, tell)


@dataclass(frozen=True)
class Effort:
    """How much is measured, and from which seed."""

    points: tuple[int, int] = POINTS
    repeats: int = 0
    seed: int | Stream = 0
    jobs: int | None = None

    def __post_init__(self) -> None:
        if len(self.points) != 2 or min(self.points) < 1:
            raise UnweaveError(
                f"points are how many to train and to test on, such as {POINTS}; got {self.points}."
            )
        if self.repeats < 0:
            raise UnweaveError(f"repeats must be 0 or more; got {self.repeats}.")

    @property
    def stream(self) -> Stream:
        """What everything random comes from."""
        return Stream.of(self.seed).child("evaluation")


def source_of(
    subject: Any,
    effort: Effort,
    *,
    factors: ArrayLike | None = None,
    data: str | GroundTruth | Collection | None = None,
    log_var: ArrayLike | None = None,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    tell: Tell | None = None,
) -> Source:
    """What can be asked about a subject."""
    if factors is not None:
        return ArraySource.of(subject, factors, log_var, test)
    encode = encoder_of(subject)
    is_run = hasattr(subject, "spec")
    if data is None:
        if not is_run:
            raise UnweaveError(
                "an encoder needs data to encode: evaluate(encode, data='dsprites'). Codes need their "
                "factors: evaluate(codes, factors)."
            )
        data = subject.data
    found = load_data(data) if isinstance(data, str) else data
    if isinstance(found, Collection):
        return collection_source(encode, found, sum(effort.points), effort.stream)
    return GroundTruthSource(encode, found, subject.losses if is_run else None, tell=tell)


def measure_source(
    source: Source,
    metrics: Sequence[Metric],
    representation: str,
    effort: Effort,
    subject: str,
    notes: tuple[str, ...] = (),
    tell: Tell | None = None,
) -> Scores:
    """All metrics on one source; each has a stream of its own, so that none moves another's score."""
    if representation not in REPRESENTATIONS:
        raise UnweaveError(f'representation must be "mean" or "sampled"; got {representation!r}.')
    first = _gather(source, metrics, representation, effort.points, effort.stream, again=False)
    found = _measure(first, metrics, effort.stream, effort.jobs, tell)
    further = []
    for repeat in range(1, effort.repeats + 1):
        stream = effort.stream.child("repeat", repeat)
        given = _gather(source, metrics, representation, effort.points, stream, again=True)
        further.append([one.numbers for one, _ in _measure(given, metrics, stream, effort.jobs, tell)])
    scores = []
    for i, (metric, (measured, _)) in enumerate(zip(metrics, found, strict=True)):
        kind = representation if metric.of_representation else ""
        protocol = metric.protocol(representation, source.rows)
        for name, value in measured.numbers.items():
            others = [numbers[i][name] for numbers in further]
            scores.append(Score(name, protocol, kind, value, *_interval([value, *others])))
    sample = first.sample
    matrices = {}
    if sample:
        matrices["mutual_information"] = mutual_information(sample.counted_codes, sample.counted_factors)
    for measured, _ in found:
        matrices |= measured.matrices
    images, encoding = source.images, source.seconds
    source.images, source.seconds = 0, 0.0  # what was encoded is counted once, whoever asks next
    seconds = {metric.name: each for metric, (_, each) in zip(metrics, found, strict=True)}
    return Scores(
        subject,
        representation,
        tuple(scores),
        matrices,
        source.names,
        asked=effort.points,
        points=(len(sample.codes), len(sample.test_codes)) if sample else effort.points,
        repeats=effort.repeats,
        seed=effort.seed if isinstance(effort.seed, int) else None,
        images=images,
        seconds={"encoding": encoding, **seconds},
        notes=notes,
    )


def _interval(values: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    """The middle 95%; of few values, all of them."""
    if len(values) < 2:
        return None, None
    low, high = np.quantile(values, 0.025, method="lower"), np.quantile(values, 0.975, method="higher")
    return float(low), float(high)


class _Given(NamedTuple):
    """What the metrics get, as far as any of them needs it."""

    arguments: dict[str, dict[str, Any]]  # by what a metric needs
    sample: Sample | None


def _gather(
    source: Source,
    metrics: Sequence[Metric],
    kind: str,
    points: tuple[int, int],
    stream: Stream,
    again: bool,
) -> _Given:
    needed = {metric.needs for metric in metrics}
    arguments: dict[str, dict[str, Any]] = {}
    # The whole grid first, so that the sample is looked up in it.
    if "representation" in needed:
        whole = source.interventions(kind)
        arguments["representation"] = {"codes": None, "factors": None, "representation": whole}
    if "posterior" in needed:
        posterior, factors = source.posterior()
        arguments["posterior"] = {"codes": posterior.mean, "log_var": posterior.log_var, "factors": factors}
    if "likelihood" in needed:
        losses, drawn = source.likelihood(points[0], stream.child("likelihood"))
        arguments["likelihood"] = {
            "codes": drawn.mean,
            "factors": None,
            "log_var": drawn.log_var,
            "losses": losses,
        }
    sample = None
    if needed & {"codes", "codes+test", "unsupervised"}:
        sample = source.sample(points, kind, stream, again)
        counted = {"codes": sample.counted_codes, "factors": sample.counted_factors}
        arguments |= {"codes": counted, "unsupervised": counted}
        test = (sample.test_codes, sample.test_factors)
        arguments["codes+test"] = {"codes": sample.codes, "factors": sample.factors, "test": test}
    return _Given(arguments, sample)


def _measure(
    given: _Given, metrics: Sequence[Metric], stream: Stream, jobs: int | None, tell: Tell | None
) -> list[tuple[Measured, float]]:
    """The numbers of each metric and the seconds they took, several metrics at a time."""
    done = 0

    def one(metric: Metric) -> tuple[Measured, float]:
        nonlocal done
        start = time.perf_counter()
        found = measure(metric, **given.arguments[metric.needs], seed=stream.child(metric.name))
        done += 1
        if tell:
            tell(done, len(metrics), "measuring")
        return found, time.perf_counter() - start

    # Threads suffice: what takes long are compiled loops and solvers, which leave Python's lock alone. Linear
    # algebra of so small matrices is slower on several cores, and its last digits depend on their number.
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(jobs or os.cpu_count()) as threads:
        return list(threads.map(one, metrics))


def possible_metrics(metrics: str | Sequence[str], source: Source) -> tuple[list[Metric], tuple[str, ...]]:
    """The metrics that were asked for; of a suite, those that the source can give, and what is left out."""
    words = metrics.split(",") if isinstance(metrics, str) else list(metrics)
    by_name = {word.strip().replace("-", "_") for word in words} - SUITES.keys()
    chosen, notes = [], []
    for metric in metrics_named(metrics):
        reason = source.lacks(metric.needs)
        if reason is None:
            chosen.append(metric)
        elif metric.name in by_name:
            raise UnweaveError(f"{metric.name} cannot be measured here: {reason}.")
        else:
            notes.append(f"{metric.name} was left out: {reason}.")
    return chosen, tuple(notes)


def _name_of(subject: Any) -> str:
    if hasattr(subject, "spec"):
        return str(subject.path)
    return "codes" if isinstance(subject, np.ndarray | list) else type(subject).__name__
