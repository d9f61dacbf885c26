"""`compare`: the differences of scores of two encoders on the same points, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from unweave.data import Collection, GroundTruth
from unweave.display.notebook import heading, paragraph, table
from unweave.errors import UnweaveError, did_you_mean
from unweave.evaluation.choice import (
    Choice,
    Wanted,
    approximation_notes,
    left_out_notes,
    listed,
    meaningless_notes,
)
from unweave.evaluation.effort import POINTS, Effort
from unweave.evaluation.evaluate import nothing_measured, open_source, open_subject
from unweave.evaluation.frozen import EncoderOptions
from unweave.evaluation.intervals import LEAST_REPEATS, interval, no_interval_notes, probability_above_zero
from unweave.evaluation.measuring import Repeated, measure_repeats
from unweave.evaluation.sources import Source, columns_of_blocks
from unweave.metrics.kinds import KindLike
from unweave.metrics.lookup import Asked
from unweave.metrics.metric import COUNTS, Metric
from unweave.metrics.requests import block_word
from unweave.progress import Progress
from unweave.streams import Stream

if TYPE_CHECKING:
    import pandas as pd

REPEATS = 20
FEW_POINTS = (8, 4)  # to train and to test on; enough to see how many codes there are

Verdict: TypeAlias = Literal["a better", "b better", "cannot tell"]


@dataclass(frozen=True)
class Difference:
    """One score of two encoders. `low` and `high` are the 95% interval of `difference`, a minus b.

    `probability` is how sure it is that a is better, 0.5 if nothing speaks for either. The verdict is
    "cannot tell" if the interval contains 0. Without enough repeats there is no interval.
    """

    name: str
    protocol: str
    a: float
    b: float
    difference: float
    low: float | None
    high: float | None
    probability: float | None
    verdict: Verdict


@dataclass(frozen=True, eq=False)
class Comparison(Mapping[str, Difference]):
    """Differences by the name of the score: comparison["mig"].verdict. `table` has all of them."""

    a: str
    b: str
    representation: str
    differences: tuple[Difference, ...]
    repeats: int
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Difference:
        for difference in self.differences:
            if difference.name == name:
                return difference
        raise KeyError(f'no score "{name}". {did_you_mean(name, list(self))}')

    def __iter__(self) -> Iterator[str]:
        return iter(difference.name for difference in self.differences)

    def __len__(self) -> int:
        return len(self.differences)

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{row.name} {row.verdict}" for row in self.differences)
        return f"Comparison(a={self.a!r}, b={self.b!r}: {verdicts})"

    def __str__(self) -> str:
        width = max(len(name) for name in self)
        lines = [f"{row.name:{width}}  {'  '.join(_cells(row))}" for row in self.differences]
        return "\n".join([f"a: {self.a}", f"b: {self.b}", *lines, *self.notes])

    def _repr_html_(self) -> str:
        """The differences as a table for notebooks, with the notes below it."""
        title = f"a: {self.a}; b: {self.b}; {self.representation} codes"
        shown = table(self.columns, self.rows())
        return "".join([heading(title), shown, *(paragraph(note) for note in self.notes)])

    @property
    def columns(self) -> list[str]:
        """The titles of the columns of `rows`."""
        return ["score", "a", "b", "a - b", "95% interval", "P(a better)", "verdict"]

    def rows(self) -> list[list[str]]:
        """One row of texts for each score."""
        return [[row.name, *_cells(row)] for row in self.differences]

    def table(self) -> pd.DataFrame:
        """One row a score: name, a, b, difference, low, high, probability, verdict, protocol."""
        import pandas as pd

        columns = ["name", "a", "b", "difference", "low", "high", "probability", "verdict", "protocol"]
        return pd.DataFrame([asdict(row) for row in self.differences], columns=columns)


def compare(
    a: Any,
    b: Any,
    factors: Any = None,
    *,
    data: str | Path | GroundTruth | Collection | None = None,
    metrics: Asked = "headline",
    representation: str = "mean",
    log_var: tuple[Any, Any] | None = None,
    test: tuple[Any, Any, Any] | None = None,
    kinds: Mapping[str, KindLike] | None = None,
    standardise: bool | None = None,
    points: tuple[int, int] = POINTS,
    repeats: int = REPEATS,
    seed: int | Stream = 0,
    jobs: int | None = None,
    transform: Any = None,
    tell: Progress | None = None,
) -> Comparison:
    """Differences of the scores of a and b on the same points, each with a 95% interval and a verdict.

    - `compare(codes_a, codes_b, factors)`: arrays (n, d) of the same n rows; they may differ in d. Log
      variances are `log_var=(of_a, of_b)`, test data `test=(codes_a, codes_b, factors)`.
    - `compare(encode_a, encode_b, data="dsprites")`: encoders, as for `evaluate`. `transform` prepares the
      images of both, or `(of_a, of_b)` those of each; None does what a model says about its images.
    - `compare(run_a, run_b)`: two runs of the same data, or on `data`.

    Both are measured on the same points, the same test points and, for the interval, the same repeats: fresh
    points, or random halves of the rows. What both have in common cancels out, so the interval of the
    difference is often much narrower than those of the scores; see `unweave.evaluation.intervals`. It covers
    the choice of points, not that of the training seed: to compare two methods, train several seeds.

    Each interval holds for its score alone: of 20 scores of equal encoders, about one is not "cannot tell".

    >>> from unweave.streams import Stream
    >>> factors = Stream.of(0).integers(300, [3, 4])
    >>> noise = Stream.of(1).normal(300, 2)
    >>> found = compare(factors + 0.1 * noise, factors + noise, factors, metrics="mig")
    >>> found["mig"].verdict
    'a better'
    """
    effort, wanted = Effort(points, repeats, seed, jobs), Wanted.of(metrics)
    if repeats < LEAST_REPEATS:
        raise UnweaveError(f"a comparison needs at least {LEAST_REPEATS} repeats; got {repeats}.")
    subjects = [open_subject(subject, None) for subject in (a, b)]
    if data is None:
        _check_same_data(*subjects)
    given = {
        "factors": factors,
        "data": data,
        "kinds": kinds,
        "standardise": standardise,
        "lenient": wanted.lenient,
        "tell": tell,
    }
    log_vars, tests, transforms = _of_each(log_var, test, transform)
    first, second = (
        open_source(
            subjects[i], effort, EncoderOptions(transforms[i]), log_var=log_vars[i], test=tests[i], **given
        )
        for i in range(2)
    )
    exact = _common_choice(wanted, first.source, second.source)
    exact = exact.for_representation(representation, first.source, second.source)
    choice = exact.for_codes(max(_width(opened.source, effort) for opened in (first, second)))
    of_a, of_b = (
        measure_repeats(opened.source, choice, representation, effort, tell) for opened in (first, second)
    )
    conditions = first.source.conditions(effort.points)
    standardised = any(opened.source.unscaled is not None for opened in (first, second))
    conditions = conditions._replace(
        standardised=standardised, readout=_readouts(first.source, second.source)
    )
    differences = tuple(
        _difference(name, metric, metric.protocol(representation, conditions), of_a, of_b)
        for name, metric in _common_scores(of_a, of_b).items()
    )
    left_out = left_out_notes({**choice.left_out, **of_a.failed, **of_b.failed})
    of_sources = (*first.notes, *second.notes, *first.source.notes, *second.source.notes)
    approximated = approximation_notes(exact.metrics, choice.metrics)
    without = meaningless_notes(choice.metrics, first.source, second.source)
    notes = tuple(dict.fromkeys((*left_out, *without, *of_sources, *approximated)))
    if not differences:
        raise nothing_measured(notes)
    return Comparison(
        first.name,
        second.name,
        representation,
        differences,
        repeats,
        (*notes, *no_interval_notes([row.name for row in differences if row.low is None])),
    )


def _readouts(a: Source, b: Source) -> str:
    """The protocol's word for the directions that codes were read along; both words if they differ."""
    return a.readout if a.readout == b.readout else f"{a.readout or 'codes'}|{b.readout or 'codes'}"


def _of_each(log_var: Any, test: Any, transform: Any) -> tuple[Sequence[Any], ...]:
    """Log variances, test data and transforms, of a and of b."""
    log_vars: Sequence[Any] = (None, None)
    tests: Sequence[Any] = (None, None)
    if log_var is not None:
        log_vars = _parts(log_var, "log_var", "(of_a, of_b)", 2)
    if test is not None:
        codes_a, codes_b, factors = _parts(test, "test", "(codes_a, codes_b, factors)", 3)
        tests = (codes_a, factors), (codes_b, factors)
    transforms = transform if isinstance(transform, tuple) else (transform, transform)
    return log_vars, tests, _parts(transforms, "transform", "one for both, or (of_a, of_b)", 2)


def _parts(values: Any, name: str, expected: str, count: int) -> Sequence[Any]:
    if not isinstance(values, tuple | list) or len(values) != count:
        received = f"{len(values)} parts" if isinstance(values, tuple | list) else type(values).__name__
        raise UnweaveError(f"{name} of a comparison must be {expected}; got {received}.")
    return values


def _width(source: Source, effort: Effort) -> int:
    """The number of codes, from a few points."""
    return int(source.sample(FEW_POINTS, "mean", effort.stream).codes.shape[1])


def _common_choice(wanted: Wanted, a: Source, b: Source) -> Choice:
    """The metrics that both sources can give; for wide codes, both are approximated or none."""
    first, second = wanted.possible(a), wanted.possible(b)
    if a.names != b.names:
        raise UnweaveError(
            f"both must be measured on the same factors; a has {listed(a.names)}, b has {listed(b.names)}. "
            "Pass the same data for both with data=..."
        )
    left_out = {**first.left_out, **second.left_out, **_left_out_blocks(first, a, b)}
    return replace(
        first,
        metrics=tuple(metric for metric in first.metrics if metric.name not in left_out),
        left_out=left_out,
        approximate=True,
    )


def _left_out_blocks(choice: Choice, a: Source, b: Source) -> dict[str, str]:
    """Why scores of blocks cannot be compared, by the names of the metrics."""
    of_a, of_b = (block_word(columns_of_blocks(source), source.names) for source in (a, b))
    names = [metric.name for metric in choice.metrics if "blocks" in metric.inputs.uses]
    if of_a == of_b or not names:
        return {}
    reason = f"the blocks of a and b should hold different factors, {of_a or 'none'} and {of_b or 'none'}"
    for name in names:
        if name in choice.by_name:
            raise UnweaveError(f"{name} cannot be compared: {reason}.")
    return dict.fromkeys(names, reason)


def _common_scores(of_a: Repeated, of_b: Repeated) -> dict[str, Metric]:
    """The metric of each score that both have; counts that come with a score are none."""
    return {
        name: outcome.metric
        for outcome in of_a.outcomes
        for name in outcome.measured.numbers
        if name in of_b.numbers and name.rpartition(".")[2] not in COUNTS
    }


def _difference(name: str, metric: Metric, protocol: str, of_a: Repeated, of_b: Repeated) -> Difference:
    a, b = of_a.numbers[name], of_b.numbers[name]
    repeats = [
        numbers[name] - others[name]
        for numbers, others in zip(of_a.repeats, of_b.repeats, strict=True)
        if name in numbers and name in others
    ]
    least, greatest = metric.bounds_of(name)
    low, high = interval(a - b, repeats, (least - greatest, greatest - least))
    if low is None or high is None:
        return Difference(name, protocol, a, b, a - b, None, None, None, "cannot tell")
    above = probability_above_zero(a - b, repeats)
    probability = above if metric.higher_is_better else 1 - above
    if low <= 0 <= high:
        verdict: Verdict = "cannot tell"
    else:
        verdict = "a better" if (low > 0) == metric.higher_is_better else "b better"
    return Difference(name, protocol, a, b, a - b, low, high, probability, verdict)


def _check_same_data(a: Any, b: Any) -> None:
    """Refuse runs of different data, unless both are to be measured on the same."""
    if not (hasattr(a, "spec") and hasattr(b, "spec")):
        return
    if a.spec.data != b.spec.data:
        raise UnweaveError(
            f"both must be measured on the same data; a was trained on {a.spec.data}, b on {b.spec.data}. "
            "Pass the data to compare them on: compare(a, b, data=...)."
        )


def _cells(row: Difference) -> list[str]:
    """The numbers of a row as texts."""
    ends = "" if row.low is None or row.high is None else f"{row.low:+.4f} to {row.high:+.4f}"
    probability = "" if row.probability is None else f"{row.probability:.3f}"
    return [f"{row.a:.4f}", f"{row.b:.4f}", f"{row.difference:+.4f}", ends, probability, row.verdict]
