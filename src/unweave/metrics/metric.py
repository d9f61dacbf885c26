"""What a metric is, and how one is computed whatever it needs."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.metrics.downstream import Downstream, statistical_efficiency
from unweave.metrics.orbits import Circular
from unweave.metrics.representation import Representation
from unweave.metrics.requests import INPUTS, PUBLISHED, Conditions, Inputs, Needs, check_needs
from unweave.metrics.swap_consistency import Judge
from unweave.plugins.loading import is_reference
from unweave.streams import Stream

# What may be done to codes: reorder them, turn their signs, rescale each, rotate all, add a copy of each, add
# dead ones; or reorder the points.
Change: TypeAlias = Literal["permutation", "sign", "scale", "rotation", "copies", "dead", "row order"]

# What factors are turned into for a metric: values to count, which may lack some or not, or real numbers.
# Metrics of orbits take them as positions on a circle, which are never binned.
FactorsAs: TypeAlias = Literal["labels", "labels with gaps", "numbers", "positions"]

# Numbers that come with some scores but are none themselves, so the range is not theirs.
COUNTS = ("active", "accuracy", "efficiency", "size")

# Scores on the points that trees were fitted to. Trees memorise half of the points better than all of them,
# so halves do not show how such a score varies.
MEMORISED = ("informativeness_train",)

# Above this many codes a suite measures its slow metrics approximately; see Metric.for_wide_codes.
WIDE = 256


class Mixed(NamedTuple):
    """A function of codes, real-valued factors and their kinds, and how the protocol states it."""

    function: Callable[..., Any]
    word: str = ""


class Variant(NamedTuple):
    """Options and estimator that replace those of a metric for some codes."""

    options: Mapping[str, Any]
    estimator: str


@dataclass(frozen=True)
class Metric:
    """A metric: a function with fixed options, and what is known about its scores.

    `detailed` is called in place of the function where the matrix behind a score is wanted too.
    With fewer than `least_factors` factors it is the same whatever the codes are. `compares_factors` names
    the numbers, by the last part of their names, of which this is true while the others mean something.
    """

    name: str
    function: Callable[..., Any]
    estimator: str  # how it is estimated; see `protocol`
    needs: Needs  # what its function gets; see unweave.metrics.requests
    summary: str
    citation: str
    unchanged_by: frozenset[Change] = frozenset()
    range: tuple[float, float] = (0.0, 1.0)
    higher_is_better: bool = True
    flaws: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    detailed: Callable[..., Any] | None = None
    least_factors: int = 1
    compares_factors: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()  # training sizes; those that there are enough points for are run
    factors_as: FactorsAs = "labels"  # how factors that are not all whole numbers are given to it
    mixed: Mixed | None = None  # what is called in its place for such factors
    for_wide_codes: Variant | None = None  # in a suite, if there are more than `WIDE` codes
    for_discrete_codes: Variant | None = None  # if all codes are known to have a few values only
    depends_on_scale: bool = False  # whether its scores depend on the scale that a prior gives to codes
    halves_rows: bool = False  # of rows, one half gives the points to fit on and the other those to test on

    def __post_init__(self) -> None:
        check_needs(self.name, self.needs)

    @property
    def inputs(self) -> Inputs:
        """What its function gets."""
        return INPUTS[self.needs]

    @property
    def of_representation(self) -> bool:
        """Whether it measures codes, so that means and samples of q(z|x) score differently."""
        return self.inputs.of_codes

    def bounds_of(self, score: str) -> tuple[float, float]:
        """The least and the greatest value of one of its scores; counts that come with a score have none."""
        return (-math.inf, math.inf) if score.rpartition(".")[2] in COUNTS else self.range

    def protocol(self, representation: str = "mean", conditions: Conditions = PUBLISHED) -> str:
        """The name of how a score was computed; scores may be compared if and only if it is the same.

        It states the estimator, the representation, and where the data differ from those of the published
        study: n, the number of points, or of points to train and to test on; `rows`, the number of rows among
        which an intervening metric had to look for matching ones; `halves`, if one half of these is fitted to
        and the other is tested on; `disjoint`, if test points show other images than training points;
        `factors:a|b+c`, if one block of codes should hold the factor a and another b and c;
        `standardised`, if the codes have no scale of their own and the score depends on it;
        `read:pca10-n10000-seed0`, if codes were read along 10 directions fitted on 10,000 codes.

        >>> from unweave.metrics import metric_named
        >>> metric_named("mig").protocol("sampled")
        'mig[bins20,sampled]'
        >>> metric_named("sap").protocol("mean", Conditions(train=600, test=300))
        'sap[svm-ovr,C0.01,n600+300,mean]'
        """
        sizes = [str(size) for size in self.sizes if size <= conditions.train] or [str(conditions.train)]
        return with_words(
            self.estimator,
            *(sizes if self.sizes else ()),
            *self.inputs.protocol_words(conditions),
            *(["halves"] if self.halves_rows and conditions.rows is not None else ()),
            *(["standardised"] if self.depends_on_scale and conditions.standardised else ()),
            *([representation] if self.of_representation else ()),
        )


def with_words(estimator: str, *words: str) -> str:
    """An estimator that states further words.

    >>> with_words("mig[bins20]", "mean"), with_words("mine", "mean"), with_words("mine")
    ('mig[bins20,mean]', 'mine[mean]', 'mine')
    """
    name, _, inside = estimator.removesuffix("]").partition("[")
    stated = ",".join([*filter(None, [inside]), *words])
    return f"{name}[{stated}]" if stated else name


def asked_names(names: object) -> list[str]:
    """The names of metrics and suites in a text with commas between them, or in a list of names.

    A metric of one's own is named by its place, `file.py:Name` or `module:Name`, which is left as it is.
    """
    if isinstance(names, str):
        words: list[object] = list(names.split(","))
    else:
        words = list(names) if isinstance(names, Iterable) else [names]
    for word in words:
        if not isinstance(word, str):
            raise UnweaveError(
                'metrics are a text such as "mig, dci", a suite such as "headline", a function of (codes, '
                f"factors), or a list of these; got {word!r}."
            )
    texts = [word.strip() for word in words if isinstance(word, str) and word.strip()]
    return [text if is_reference(text) else text.replace("-", "_") for text in texts]


# Matrices behind scores: one row for each code, or one for each factor, and one column for each factor.
OF_CODES, OF_FACTORS = ("importance", "accuracy"), ("unfairness",)


class Measured(NamedTuple):
    """The numbers of a metric under flat names, and the matrices behind them.

    Matrices of codes have their own names. Those of pairs of factors have flat names, such as
    fairness_trees.unfairness.
    """

    numbers: dict[str, float]
    matrices: dict[str, NDArray[np.float64]]


def measure(
    metric: Metric,
    codes: ArrayLike | None,
    factors: ArrayLike | None,
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    log_var: ArrayLike | None = None,
    losses: ArrayLike | None = None,
    representation: Representation | None = None,
    images: NDArray[np.uint8] | None = None,
    blocks: Mapping[str, Sequence[int]] | None = None,
    block_factors: Mapping[str, Sequence[int]] | None = None,
    factor_names: Sequence[str] | None = None,
    judge: Judge | None = None,
    circular: Circular | None = None,
    periods: Mapping[int, float] | None = None,
    categorical: Sequence[int] = (),
    seed: int | Stream = 0,
) -> Measured:
    """All numbers and matrices of a metric; what the metric does not need may be None."""
    inputs: dict[str, Any] = {
        "codes": codes,
        "factors": factors,
        "test": test,
        "log_var": log_var,
        "losses": losses,
        "representation": representation,
        "images": images,
        "blocks": blocks,
        "block_factors": block_factors,
        "factor_names": factor_names,
        "judge": judge,
        "circular": circular,
        "periods": periods,
        "categorical": categorical,
    }
    names = metric.inputs.arguments
    for name in names:
        if inputs[name] is None:
            raise UnweaveError(f"{metric.name} needs {' and '.join(names)}; {name} was not given.")
    options = {**metric.options, **{name: inputs[name] for name in metric.inputs.options}}
    if "seed" in inspect.signature(metric.function).parameters:
        options["seed"] = seed
    result = (metric.detailed or metric.function)(*(inputs[name] for name in names), **options)
    return Measured(_numbers(metric.name, result), _matrices(metric.name, result))


def compute(
    metric: Metric, codes: ArrayLike | None, factors: ArrayLike | None, **given: Any
) -> dict[str, float]:
    """All numbers of a metric, as `measure` has them.

    >>> from unweave.metrics import metric_named
    >>> compute(metric_named("mig"), [[0], [1]], [[0], [1]])
    {'mig': 1.0}
    """
    return measure(metric, codes, factors, **given).numbers


def _numbers(name: str, result: Any) -> dict[str, float]:
    if isinstance(result, Downstream):
        found = {f"{name}.test_accuracy_{size}": result.mean_test_accuracy(size) for size in result.sizes}
        if {100, 10_000} <= set(result.sizes):
            found[f"{name}.efficiency"] = statistical_efficiency(result)
        return found
    if isinstance(result, Mapping):
        return {f"{name}.{key}": float(value) for key, value in result.items()}
    if isinstance(result, tuple):
        fields = result._asdict().items()  # type: ignore[attr-defined]
        numbers = {key: float(value) for key, value in _flat(fields) if np.ndim(value) == 0}
        # A field that is called "score" is the metric itself.
        return {name if key == "score" else f"{name}.{key}": value for key, value in numbers.items()}
    return {name: float(result)}


def _flat(fields: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Fields by name; a field that is a dictionary is replaced by its entries."""
    for key, value in fields:
        yield from value.items() if isinstance(value, Mapping) else [(key, value)]


def _matrices(name: str, result: Any) -> dict[str, NDArray[np.float64]]:
    if not isinstance(result, tuple) or isinstance(result, Downstream):
        return {}
    fields = result._asdict().items()  # type: ignore[attr-defined]
    return {
        f"{name}.{key}" if key in OF_FACTORS else key: value
        for key, value in fields
        if key in (*OF_CODES, *OF_FACTORS)
    }
