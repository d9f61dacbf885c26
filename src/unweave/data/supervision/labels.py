"""A few labelled points, with labels that are perfect, coarse, wrong, renamed or incomplete.

The five labellers are those of Locatello et al., "Disentangling factors of variation using few labels"
(ICLR 2020, arXiv 1905.01258).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.data.grid import Factors, GroundTruth
from unweave.data.supervision.choices import resolve_class, whole_number
from unweave.errors import UnweaveError, did_you_mean
from unweave.streams import Stream


@dataclass(frozen=True, eq=False)
class Labelled:
    """n points and what a labeller says about them.

    `factors` (n, k) are the true factors, from which images are made; `labels` (n, k') is what a method may
    see: column j has sizes[j] values and stands for the factor names[j], column observed[j] of the factors.
    """

    factors: Factors
    labels: NDArray[np.int64]
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    observed: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.factors)


# (ground truth, (n, k) factors, stream) -> labels of these factors. Row i may use row i of the stream.
Labeller: TypeAlias = Callable[[GroundTruth, Factors, Stream], Labelled]


@dataclass(frozen=True)
class Perfect:
    """The true value of every factor."""

    def __call__(self, ground_truth: GroundTruth, factors: Factors, _stream: Stream) -> Labelled:
        """Labels that are the factors."""
        return _of_all_factors(ground_truth, factors, factors.copy())


@dataclass(frozen=True)
class Binned:
    """At most `bins` values a factor: floor(value bins / size) where size > bins, else the value itself.

    Differs from disentanglement_lib, which divides in floating point, label // (size / bins), and so must cut
    off at bins - 1. With 5 bins the labels are the same; with 6, its rounding puts value 5 of 10 in bin 2.
    """

    bins: int = 5

    def __post_init__(self) -> None:
        whole_number(self.bins, "bins", 1)

    def __call__(self, ground_truth: GroundTruth, factors: Factors, _stream: Stream) -> Labelled:
        """Labels in 0 .. min(size, bins) - 1."""
        sizes = np.asarray(ground_truth.sizes)
        labels = np.where(sizes > self.bins, factors * self.bins // sizes, factors)
        return _of_all_factors(ground_truth, factors, labels, np.minimum(sizes, self.bins).tolist())


@dataclass(frozen=True)
class Noisy:
    """Each label is replaced, with this probability and on its own, by a value drawn from all values.

    The value drawn may be the true one, so a label of a factor of size s is wrong with probability
    probability (s - 1) / s.
    """

    probability: float = 0.1

    def __post_init__(self) -> None:
        _check_share(self.probability, "probability")

    def __call__(self, ground_truth: GroundTruth, factors: Factors, stream: Stream) -> Labelled:
        """Labels of which some are replaced, row i from row i of the stream."""
        n, k = factors.shape
        replaced = stream.child("replaced").uniform(n, k) < self.probability
        values = stream.child("value").integers(n, ground_truth.sizes)
        return _of_all_factors(ground_truth, factors, np.where(replaced, values, factors))


@dataclass(frozen=True)
class Permuted:
    """The values of every factor are renamed by one random permutation, which loses their order.

    The permutations belong to the seed: all rows share them.
    """

    def __call__(self, ground_truth: GroundTruth, factors: Factors, stream: Stream) -> Labelled:
        """Labels that are renamed values."""
        labels = np.empty_like(factors)
        for j, factor in enumerate(ground_truth.factors):
            renamed = _whole_set(stream).child("permutation", factor.name).permutations(1, factor.size)[0]
            labels[:, j] = renamed[factors[:, j]]
        return _of_all_factors(ground_truth, factors, labels)


@dataclass(frozen=True)
class Partial:
    """The true values of `observed` factors, chosen at random once for all rows; nothing of the others.

    Each set of points has factors of its own, unless a seed chooses them: then all sets have the same.
    """

    observed: int = 2
    seed: int | None = None

    def __post_init__(self) -> None:
        whole_number(self.observed, "observed", 1)

    def __call__(self, ground_truth: GroundTruth, factors: Factors, stream: Stream) -> Labelled:
        """Labels of the observed columns, in the order of the factors."""
        k = len(ground_truth.factors)
        if self.observed > k:
            raise UnweaveError(
                f"{ground_truth.name} has {k} factors, so at most {k} can be observed; got {self.observed}."
            )
        source = stream if self.seed is None else Stream.of(self.seed)
        order = _whole_set(source).child("observed").permutations(1, k)[0]
        return _of_some_factors(ground_truth, factors, np.sort(order[: self.observed]).tolist())


@dataclass(frozen=True)
class Chosen:
    """The true values of some factors, nothing of the others.

    `factors` are their names with commas between them, "first" for the first one, or "all". The name "class"
    stands for the class factor: the first categorical factor, or the first factor if none is categorical.
    """

    factors: str = "all"

    def __call__(self, ground_truth: GroundTruth, factors: Factors, _stream: Stream) -> Labelled:
        """Labels of the chosen columns, in the order in which they are named."""
        known = [factor.name for factor in ground_truth.factors]
        names = {"all": known, "first": known[:1]}.get(self.factors)
        if names is None:
            named = [name.strip() for name in self.factors.split(",")]
            names = list(resolve_class(named, ground_truth.factors))
        for name in names:
            if name not in known:
                raise UnweaveError(f'{ground_truth.name} has no factor "{name}". {did_you_mean(name, known)}')
        if len(set(names)) != len(names):
            raise UnweaveError(f'each factor can be named once; got "{self.factors}".')
        return _of_some_factors(ground_truth, factors, [known.index(name) for name in names])


PERFECT = Perfect()


def labelled(ground_truth: GroundTruth, n: int, seed: int | Stream, labeller: Labeller = PERFECT) -> Labelled:
    """n labelled points, drawn independently; the points are the same whichever labeller labels them."""
    if not callable(labeller) or isinstance(labeller, type):
        raise UnweaveError(f"a labeller is an object such as Perfect() or Noisy(0.1); got {labeller!r}.")
    stream = Stream.of(seed).child("labelled")
    factors = ground_truth.sample_factors(whole_number(n, "the number of labelled points", 0), stream)
    return labeller(ground_truth, factors, stream.child("labeller"))


def split(points: Labelled, share: float) -> tuple[Labelled, Labelled]:
    """The first ceil(n share) rows for training, the rest for validation.

    No row is in both. Points are drawn with replacement, so two rows may still have the same factors.
    """
    _check_share(share, "share")
    cut = rows_of_share(len(points), share)
    return (
        replace(points, factors=points.factors[:cut], labels=points.labels[:cut]),
        replace(points, factors=points.factors[cut:], labels=points.labels[cut:]),
    )


def points_of_run(ground_truth: GroundTruth, n: int, run: Stream, labeller: Labeller) -> Labelled:
    """The labelled points that a run is trained on, from the stream of its seed."""
    return labelled(ground_truth, n, run.child("labelled points"), labeller)


def rows_of_share(n: int, share: float) -> int:
    """ceil(n share): how many of n rows a share is.

    >>> rows_of_share(100, 0.9), rows_of_share(105, 0.9)
    (90, 95)
    """
    # 100 x 0.07 is 7.000000000000001 in floating point, which is not meant to be 8 rows.
    return math.ceil(round(n * share, 6))


def _of_all_factors(
    ground_truth: GroundTruth, factors: Factors, labels: NDArray[np.int64], sizes: Sequence[int] | None = None
) -> Labelled:
    names = tuple(factor.name for factor in ground_truth.factors)
    return Labelled(factors, labels, names, tuple(sizes or ground_truth.sizes), tuple(range(len(names))))


def _of_some_factors(ground_truth: GroundTruth, factors: Factors, columns: Sequence[int]) -> Labelled:
    known = [ground_truth.factors[column] for column in columns]
    return Labelled(
        factors,
        factors[:, columns],
        names=tuple(factor.name for factor in known),
        sizes=tuple(factor.size for factor in known),
        observed=tuple(columns),
    )


def _check_share(value: object, what: str) -> None:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0 <= float(value) <= 1:  # type: ignore[arg-type]
        raise UnweaveError(f"{what} must be a number in [0, 1]; got {value!r}.")


def _whole_set(stream: Stream) -> Stream:
    """The stream for what is drawn once: the same from whichever row or step the set is seen."""
    return Stream(stream.key)
