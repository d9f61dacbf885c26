"""All metrics on one source, several at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from unweave.compilation import announced
from unweave.cpu_settings import one_blas_thread
from unweave.errors import UnweaveError
from unweave.evaluation.choice import (
    Choice,
    approximation_notes,
    block_notes,
    left_out_notes,
    listed,
    meaningless_notes,
    one_factor_notes,
    small_code_notes,
)
from unweave.evaluation.effort import REPRESENTATIONS, Effort
from unweave.evaluation.intervals import interval, no_interval_notes
from unweave.evaluation.meaningless import without_meaningless
from unweave.evaluation.posteriors import EncoderError
from unweave.evaluation.requests import REQUESTS, Drawing
from unweave.evaluation.scores import Score, Scores
from unweave.evaluation.sources import Sample, Source
from unweave.evaluation.standardising import standardised
from unweave.evaluation.uneven import uneven_notes
from unweave.metrics.checks import FactorError
from unweave.metrics.information import mutual_information
from unweave.metrics.kinds import FactorKind, factor_labels
from unweave.metrics.metric import MEMORISED, Measured, Metric, measure
from unweave.metrics.requests import Conditions, Needs
from unweave.progress import Progress

UNSEEN = 0.01  # share of the test points with a value that is never trained on, above which there is a note


class _Gathered(NamedTuple):
    """The arguments of the metrics, by what a metric needs."""

    drawing: Drawing
    arguments: dict[Needs, dict[str, Any]]
    errors: dict[Needs, UnweaveError]  # why something that is needed cannot be gathered
    standardised: dict[Needs, dict[str, Any]]  # for metrics that depend on a scale that codes lack

    def for_metric(self, metric: Metric) -> dict[str, Any]:
        """The arguments of a metric."""
        chosen = self.standardised if metric.depends_on_scale else self.arguments
        return chosen.get(metric.needs, self.arguments[metric.needs])


class _Outcome(NamedTuple):
    """What came of a metric: its numbers and the seconds they took, or the reason why there are none."""

    metric: Metric
    measured: Measured
    seconds: float
    error: UnweaveError | None = None


class Repeated(NamedTuple):
    """What came of all metrics on one sample, and the numbers of each repeat by name."""

    drawing: Drawing
    outcomes: list[_Outcome]  # of the metrics that could be measured
    repeats: list[dict[str, float]]
    failed: dict[str, str]  # why the other metrics could not be measured

    @property
    def numbers(self) -> dict[str, float]:
        """All scores of the sample by name."""
        return _numbers(self.outcomes)

    @property
    def codes(self) -> int | None:
        """The number of codes, if a metric asked for a sample."""
        sample = self.drawing.drawn_sample
        return None if sample is None else int(sample.codes.shape[1])

    def of_repeats(self, name: str) -> list[float]:
        """A score in each repeat in which it could be measured."""
        return [numbers[name] for numbers in self.repeats if name in numbers]


def measure_source(
    source: Source,
    metrics: Sequence[Metric],
    representation: str,
    effort: Effort,
    subject: str,
    tell: Progress | None = None,
) -> Scores:
    """The scores of one source, as far as they can be measured."""
    return measure_choice(source, Choice(tuple(metrics)), representation, effort, subject, tell)[0]


def measure_choice(
    source: Source,
    choice: Choice,
    representation: str,
    effort: Effort,
    subject: str,
    tell: Progress | None = None,
) -> tuple[Scores, tuple[str, ...]]:
    """The scores, with notes on the points that they are from; and notes on the metrics that were left out.

    Each metric has a stream of its own, so that none moves another's score.
    """
    choice = choice.for_representation(representation, source)
    repeated = measure_repeats(source, choice, representation, effort, tell)
    found, sample = repeated.outcomes, repeated.drawing.drawn_sample
    rest = Choice(tuple(outcome.metric for outcome in found), choice.by_name)
    scores = tuple(_scores(source.conditions(effort.points), repeated, representation))
    images, encoding = source.images, source.seconds
    source.images, source.seconds = 0, 0.0  # what was encoded is counted once, whoever asks next
    record = Scores(
        subject,
        representation,
        scores,
        _matrices(sample, found, source.kinds),
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
            *approximation_notes(choice.metrics, rest.metrics),
            *_point_notes(sample, rest.metrics, source),
            *_one_factor(source, rest, scores),
            *_scale_notes(source, repeated),
            *meaningless_notes(rest.metrics, source),
            *block_notes(rest.metrics, source),
            *uneven_notes(rest.metrics, source),
            *(no_interval_notes([s.name for s in scores if s.low is None]) if effort.repeats else ()),
        ),
    )
    return record, left_out_notes({**choice.left_out, **repeated.failed})


def measure_repeats(
    source: Source, choice: Choice, representation: str, effort: Effort, tell: Progress | None = None
) -> Repeated:
    """All metrics on one sample, and on as many further ones as there are repeats.

    A metric that fails on a repeat, such as one whose factor has a single value there, is left out of it.
    """
    if representation not in REPRESENTATIONS:
        raise UnweaveError(f'representation must be "mean" or "sampled"; got {representation!r}.')
    drawing = Drawing(source, effort.points, representation, effort.stream)
    gathered, sample = _gather(drawing, choice.metrics), drawing.drawn_sample
    if sample is not None:
        choice = choice.for_codes(sample.codes.shape[1])
    rounds = effort.repeats + 1
    outcomes = _measure(gathered, choice, source.names, effort.jobs, _round_of(tell, 0, rounds))
    measured = [outcome for outcome in outcomes if not outcome.error]
    rest = Choice(tuple(outcome.metric for outcome in measured))
    repeats = []
    for number in range(1, effort.repeats + 1):
        again = replace(drawing, repeat=effort.stream.child("repeat", number), samples=[])
        gathered = _gather(again, rest.metrics)
        part = _round_of(tell, number, rounds)
        numbers = _numbers(_measure(gathered, rest, source.names, effort.jobs, part))
        repeats.append(_without_memorised(numbers) if source.repeats_are_halves else numbers)
    failed = {outcome.metric.name: str(outcome.error) for outcome in outcomes if outcome.error}
    return Repeated(drawing, measured, repeats, failed)


def _round_of(tell: Progress | None, number: int, rounds: int) -> Progress | None:
    """The progress of one of several equal rounds, as progress of all of them."""
    if tell is None:
        return None

    def report(done: int, total: int, what: str = "", /) -> None:
        tell(number * total + done, rounds * total, what)

    return report


def _numbers(outcomes: Iterable[_Outcome]) -> dict[str, float]:
    return {name: value for outcome in outcomes for name, value in outcome.measured.numbers.items()}


def _without_memorised(numbers: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in numbers.items() if name.rpartition(".")[2] not in MEMORISED}


def _scores(conditions: Conditions, repeated: Repeated, representation: str) -> Iterable[Score]:
    for metric, measured, _, _ in repeated.outcomes:
        kind = representation if metric.of_representation else ""
        protocol = metric.protocol(representation, conditions)
        for name, value in measured.numbers.items():
            ends = interval(value, repeated.of_repeats(name), metric.bounds_of(name))
            yield Score(name, protocol, kind, value, *ends)


def _matrices(
    sample: Sample | None, found: Iterable[_Outcome], kinds: Sequence[FactorKind]
) -> dict[str, Any]:
    matrices = {}
    if sample and sample.counted_factors.shape[1]:
        labels = factor_labels(sample.counted_factors, kinds) if kinds else sample.counted_factors
        matrices["mutual_information"] = mutual_information(sample.counted_codes, labels)
    for each in found:
        matrices |= each.measured.matrices
    return matrices


def _point_notes(sample: Sample | None, metrics: Sequence[Metric], source: Source) -> list[str]:
    """How points to test on were held out, and which of their values nothing can predict."""
    if sample is None or all("test" not in metric.inputs.uses for metric in metrics):
        return []
    notes = list(sample.notes)
    for j, name in enumerate(source.names):
        if source.kinds and source.kinds[j].name in ("continuous", "circular"):
            continue  # numbers between those of the training points can be predicted
        tested, trained = sample.test_factors[:, j], sample.factors[:, j]
        tested = tested[np.isfinite(tested)]
        if not len(tested):
            continue
        unseen = ~np.isin(tested, trained)
        if unseen.mean() >= UNSEEN:
            values = len(np.unique(tested[unseen]))
            notes.append(
                f'factor "{name}": {unseen.mean():.0%} of the test points have one of {values} values that '
                "no training point has, so they cannot be predicted."
            )
    return notes


def _scale_notes(source: Source, repeated: Repeated) -> tuple[str, ...]:
    """Notes on standardised codes, or on codes of a user that are too small to count."""
    names = [outcome.metric.name for outcome in repeated.outcomes if outcome.metric.depends_on_scale]
    if source.unscaled is not None:
        reason = "because their scores depend on the scale of the codes."
        return (f"Codes were standardised for {listed(names)}, {reason}",) if names else ()
    return () if source.losses is not None else small_code_notes(repeated.numbers, repeated.codes)


def _one_factor(source: Source, choice: Choice, scores: Sequence[Score]) -> tuple[str, ...]:
    if len(source.names) != 1:
        return ()
    return one_factor_notes(choice.metrics, [score.name for score in scores])


def _gather(drawing: Drawing, metrics: Sequence[Metric]) -> _Gathered:
    needed = {metric.needs for metric in metrics}
    scaled = {metric.needs for metric in metrics if metric.depends_on_scale}
    gathered = _Gathered(drawing, {}, {}, {})
    for needs, request in REQUESTS.items():
        if needs in needed:
            try:
                gathered.arguments[needs] = request.gather(drawing)
            except EncoderError:
                raise
            except UnweaveError as error:
                gathered.errors[needs] = error
                continue
            if needs in scaled and drawing.source.unscaled is not None:
                arguments = gathered.arguments[needs]
                fitted = drawing.sample().codes if drawing.source.held_out else None
                gathered.standardised[needs] = standardised(arguments, drawing.source.unscaled, fitted)
    return gathered


def _measure(
    gathered: _Gathered, choice: Choice, names: Sequence[str], jobs: int | None, tell: Progress | None
) -> list[_Outcome]:
    """What comes of each metric, several at a time; errors of metrics asked for by name are raised."""
    done, one_at_a_time, stream = 0, Lock(), gathered.drawing.metric_stream

    def one(metric: Metric) -> _Outcome:
        nonlocal done
        start = time.perf_counter()
        found, error = Measured({}, {}), gathered.errors.get(metric.needs)
        if error is None:
            try:
                found = measure(metric, **gathered.for_metric(metric), seed=stream.child(metric.name))
                found = without_meaningless(found, gathered.drawing.source.meaningless)
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

    # Threads suffice: what takes long are compiled loops and solvers, which leave Python's lock alone.
    with announced(), one_blas_thread(), ThreadPoolExecutor(jobs or os.cpu_count()) as threads:
        return list(threads.map(one, choice.metrics))
