"""All metrics on one source, several at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from unweave.compilation import announced
from unweave.errors import UnweaveError
from unweave.evaluation.choice import Choice, left_out_notes, one_factor_notes
from unweave.evaluation.effort import REPRESENTATIONS, Effort
from unweave.evaluation.encoders import EncoderError
from unweave.evaluation.scores import Score, Scores
from unweave.evaluation.sources import Sample, Source, Tell
from unweave.metrics.checks import FactorError
from unweave.metrics.information import mutual_information
from unweave.metrics.metric import Measured, Metric, Needs, measure
from unweave.streams import Stream

UNSEEN = 0.01  # share of the test points with a value that is never trained on, above which there is a note


class _Given(NamedTuple):
    """What the metrics get, as far as any of them needs it."""

    arguments: dict[Needs, dict[str, Any]]  # by what a metric needs
    errors: dict[Needs, UnweaveError]  # why something that is needed cannot be had
    samples: list[Sample]  # one, or none if no metric needs it

    @property
    def sample(self) -> Sample | None:
        """The sample, where there is one."""
        return self.samples[0] if self.samples else None


class _Outcome(NamedTuple):
    """What came of a metric: its numbers and the seconds they took, or the reason why there are none."""

    metric: Metric
    measured: Measured
    seconds: float
    error: UnweaveError | None = None


def measure_source(
    source: Source,
    metrics: Sequence[Metric],
    representation: str,
    effort: Effort,
    subject: str,
    tell: Tell | None = None,
) -> Scores:
    """The scores of one source, as far as they can be measured."""
    return measure_choice(source, Choice(tuple(metrics)), representation, effort, subject, tell)[0]


def measure_choice(
    source: Source,
    choice: Choice,
    representation: str,
    effort: Effort,
    subject: str,
    tell: Tell | None = None,
) -> tuple[Scores, tuple[str, ...]]:
    """The scores, with notes on the points that they are from; and notes on the metrics that were left out.

    Each metric has a stream of its own, so that none moves another's score.
    """
    if representation not in REPRESENTATIONS:
        raise UnweaveError(f'representation must be "mean" or "sampled"; got {representation!r}.')
    first = _gather(source, choice.metrics, representation, effort.points, effort.stream, again=False)
    outcomes = _measure(first, choice, source.names, effort.stream, effort.jobs, tell)
    failed = {each.metric.name: str(each.error) for each in outcomes if each.error}
    found = [each for each in outcomes if not each.error]
    rest = Choice(tuple(each.metric for each in found), choice.by_name)
    further: list[dict[str, float]] = []
    for repeat in range(1, effort.repeats + 1):
        stream = effort.stream.child("repeat", repeat)
        again = _gather(source, rest.metrics, representation, effort.points, stream, again=True)
        repeated = _measure(again, rest, source.names, stream, effort.jobs, tell)
        further.append({name: v for each in repeated for name, v in each.measured.numbers.items()})
    scores = tuple(_scores(source, found, further, representation))
    sample = first.sample
    images, encoding = source.images, source.seconds
    source.images, source.seconds = 0, 0.0  # what was encoded is counted once, whoever asks next
    record = Scores(
        subject,
        representation,
        scores,
        _matrices(sample, found),
        source.names,
        source.code_names,
        asked=effort.points,
        points=(len(sample.codes), len(sample.test_codes)) if sample else effort.points,
        repeats=effort.repeats,
        seed=effort.seed if isinstance(effort.seed, int) else None,
        images=images,
        seconds={"encoding": encoding, **{each.metric.name: each.seconds for each in found}},
        notes=(
            *source.notes,
            *_point_notes(sample, rest.metrics, source.names),
            *_one_factor(source, rest, scores),
        ),
    )
    return record, left_out_notes({**choice.left_out, **failed})


def _scores(
    source: Source, found: Iterable[_Outcome], further: Sequence[dict[str, float]], representation: str
) -> Iterable[Score]:
    for metric, measured, _, _ in found:
        kind = representation if metric.of_representation else ""
        protocol = metric.protocol(representation, source.rows, source.disjoint)
        for name, value in measured.numbers.items():
            others = [numbers[name] for numbers in further if name in numbers]
            yield Score(name, protocol, kind, value, *_interval([value, *others]))


def _matrices(sample: Sample | None, found: Iterable[_Outcome]) -> dict[str, Any]:
    matrices = {}
    if sample and sample.counted_factors.shape[1]:
        matrices["mutual_information"] = mutual_information(sample.counted_codes, sample.counted_factors)
    for each in found:
        matrices |= each.measured.matrices
    return matrices


def _interval(values: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    """The middle 95%; of few values, all of them."""
    if len(values) < 2:
        return None, None
    low, high = np.quantile(values, 0.025, method="lower"), np.quantile(values, 0.975, method="higher")
    return float(low), float(high)


def _point_notes(sample: Sample | None, metrics: Sequence[Metric], names: Sequence[str]) -> list[str]:
    """How points to test on were held out, and which of their values nothing can predict."""
    if sample is None or all(metric.needs != "codes+test" for metric in metrics):
        return []
    notes = list(sample.notes)
    for j, name in enumerate(names):
        tested, trained = sample.test_factors[:, j], sample.factors[:, j]
        unseen = ~np.isin(tested, trained)
        if unseen.mean() >= UNSEEN:
            values = len(np.unique(tested[unseen]))
            notes.append(
                f'factor "{name}": {unseen.mean():.0%} of the test points have one of {values} values that '
                "no training point has, so they cannot be predicted."
            )
    return notes


def _one_factor(source: Source, choice: Choice, scores: Sequence[Score]) -> tuple[str, ...]:
    if len(source.names) != 1:
        return ()
    return one_factor_notes(choice.metrics, [score.name for score in scores])


def _gather(
    source: Source,
    metrics: Sequence[Metric],
    kind: str,
    points: tuple[int, int],
    stream: Stream,
    again: bool,
) -> _Given:
    needed = {metric.needs for metric in metrics}
    given = _Given({}, {}, [])

    def intervene() -> None:
        whole = source.interventions(kind)
        given.arguments["representation"] = {"codes": None, "factors": None, "representation": whole}

    def take_posteriors() -> None:
        posterior, factors = source.posterior()
        found = {"codes": posterior.mean, "log_var": posterior.log_var, "factors": factors}
        given.arguments["posterior"] = found

    def take_likelihood() -> None:
        losses, drawn = source.likelihood(points[0], stream.child("likelihood"))
        found = {"codes": drawn.mean, "factors": None, "log_var": drawn.log_var, "losses": losses}
        given.arguments["likelihood"] = found

    def take_sample() -> None:
        sample = source.sample(points, kind, stream, again)
        counted = {"codes": sample.counted_codes, "factors": sample.counted_factors}
        given.arguments.update({"codes": counted, "unsupervised": counted})
        test = (sample.test_codes, sample.test_factors)
        given.arguments["codes+test"] = {"codes": sample.codes, "factors": sample.factors, "test": test}
        given.samples.append(sample)

    # The whole grid first, so that the sample is looked up in it.
    parts: list[tuple[set[Needs], Callable[[], None]]] = [
        ({"representation"}, intervene),
        ({"posterior"}, take_posteriors),
        ({"likelihood"}, take_likelihood),
        ({"codes", "codes+test", "unsupervised"}, take_sample),
    ]
    for needs, take in parts:
        if needed & needs:
            try:
                take()
            except EncoderError:
                raise
            except UnweaveError as error:
                given.errors.update(dict.fromkeys(needs, error))
    return given


def _measure(
    given: _Given,
    choice: Choice,
    names: Sequence[str],
    stream: Stream,
    jobs: int | None,
    tell: Tell | None,
) -> list[_Outcome]:
    """What comes of each metric, several at a time; errors of metrics asked for by name are raised."""
    done, one_at_a_time = 0, Lock()

    def one(metric: Metric) -> _Outcome:
        nonlocal done
        start = time.perf_counter()
        found, error = Measured({}, {}), given.errors.get(metric.needs)
        if error is None:
            try:
                found = measure(metric, **given.arguments[metric.needs], seed=stream.child(metric.name))
            except UnweaveError as raised:
                error = raised
        error = error.named(names) if isinstance(error, FactorError) else error
        if error is not None and metric.name in choice.by_name:
            raise error
        with one_at_a_time:
            done += 1
            if tell:
                tell(done, len(choice.metrics), "measuring")
        return _Outcome(metric, found, time.perf_counter() - start, error)

    # Threads suffice: what takes long are compiled loops and solvers, which leave Python's lock alone. Linear
    # algebra of so small matrices is slower on several cores, and its last digits depend on their number.
    with (
        announced(),
        threadpool_limits(1, user_api="blas"),
        ThreadPoolExecutor(jobs or os.cpu_count()) as threads,
    ):
        return list(threads.map(one, choice.metrics))
