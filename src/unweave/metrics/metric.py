"""What a metric is, and how one is computed whatever it needs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.metrics.downstream import Downstream, statistical_efficiency
from unweave.metrics.representation import Representation
from unweave.plugins.loading import is_reference
from unweave.streams import Stream

Needs: TypeAlias = Literal["codes", "codes+test", "representation", "posterior", "likelihood", "unsupervised"]
# What may be done to codes: reorder them, turn their signs, rescale each, rotate all, add a copy of each, add
# dead ones; or reorder the points.
Change: TypeAlias = Literal["permutation", "sign", "scale", "rotation", "copies", "dead", "row order"]

# Numbers that come with some scores but are none themselves, so the range is not theirs.
COUNTS = ("active", "efficiency", "size")

_ARGUMENTS: dict[Needs, tuple[str, ...]] = {
    "codes": ("codes", "factors"),
    "codes+test": ("codes", "factors"),
    "representation": ("representation",),
    "posterior": ("codes", "log_var", "factors"),
    "likelihood": ("losses", "codes", "log_var"),
    "unsupervised": ("codes",),
}


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
    needs: Needs
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

    @property
    def of_representation(self) -> bool:
        """Whether it measures codes, so that means and samples of q(z|x) score differently."""
        return self.needs not in ("posterior", "likelihood")

    def protocol(self, representation: str = "mean", rows: int | None = None, disjoint: bool = False) -> str:
        """The name that states the estimator; scores may be compared if and only if it is the same.

        `rows` is the number of rows among which an intervening metric had to look for matching ones.
        `disjoint` says that points to test on were drawn from other images than points to fit on.

        >>> from unweave.metrics import metric_named
        >>> metric_named("mig").protocol("sampled")
        'mig[bins20,sampled]'
        """
        if not self.of_representation:
            return self.estimator
        matching = f",rows{rows}" if rows is not None and self.needs == "representation" else ""
        held_out = ",disjoint" if disjoint and self.needs == "codes+test" else ""
        return f"{self.estimator.removesuffix(']')}{matching}{held_out},{representation}]"


def asked_names(names: object) -> list[str]:
    """The names of metrics and suites in a text with commas between them, or in a list of names.

    A metric of one's own is named by its place, `file.py:Name` or `module:Name`, which is left as it is.
    """
    if isinstance(names, str):
        words: list[object] = list(names.split(","))
    else:
        words = list(names) if isinstance(names, Iterable) else [names]
    for word in words:
        if callable(word):
            raise UnweaveError(
                f"metrics are chosen by name; got the function {getattr(word, '__name__', word)}. Name it "
                "by its file, path/to/file.py:Name, or call it directly: function(codes, factors)."
            )
        if not isinstance(word, str):
            raise UnweaveError(
                'metrics are chosen by name: a text such as "mig, dci", a suite such as "headline", or a '
                f"list; got {word!r}."
            )
    texts = [word.strip() for word in words if isinstance(word, str) and word.strip()]
    return [text if is_reference(text) else text.replace("-", "_") for text in texts]


class Measured(NamedTuple):
    """The numbers of a metric under flat names, and the matrices behind them by their own names."""

    numbers: dict[str, float]
    matrices: dict[str, NDArray[np.float64]]  # rows are codes, columns are factors


def measure(
    metric: Metric,
    codes: ArrayLike | None,
    factors: ArrayLike | None,
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    log_var: ArrayLike | None = None,
    losses: ArrayLike | None = None,
    representation: Representation | None = None,
    seed: int | Stream = 0,
) -> Measured:
    """All numbers and matrices of a metric; what the metric does not need may be None."""
    given = {
        "codes": codes,
        "factors": factors,
        "log_var": log_var,
        "losses": losses,
        "representation": representation,
    }
    wanted = _ARGUMENTS[metric.needs]
    for name in wanted:
        if given[name] is None:
            raise UnweaveError(f"{metric.name} needs {' and '.join(wanted)}; {name} was not given.")
    options = dict(metric.options)
    if metric.needs == "codes+test":
        options["test"] = test
    if "seed" in inspect.signature(metric.function).parameters:
        options["seed"] = seed
    result = (metric.detailed or metric.function)(*(given[name] for name in wanted), **options)
    return Measured(_numbers(metric.name, result), _matrices(result))


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
    if isinstance(result, tuple):
        fields = result._asdict().items()  # type: ignore[attr-defined]
        numbers = {key: float(value) for key, value in fields if np.ndim(value) == 0}
        # A field that is called "score" is the metric itself.
        return {name if key == "score" else f"{name}.{key}": value for key, value in numbers.items()}
    return {name: float(result)}


def _matrices(result: Any) -> dict[str, NDArray[np.float64]]:
    if not isinstance(result, tuple) or isinstance(result, Downstream):
        return {}
    fields = result._asdict().items()  # type: ignore[attr-defined]
    return {key: value for key, value in fields if key in ("importance", "accuracy")}
