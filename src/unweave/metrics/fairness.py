"""Unfairness of predictions from codes: how far they depend on a sensitive factor without labels.

Locatello, Abbati, Rainforth, Bauer, Schölkopf, Bachem, "On the fairness of disentangled representations",
NeurIPS 2019 [1], as computed by disentanglement_lib [2].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.metrics.downstream import Predictor, check_predictor
from unweave.metrics.estimators.boosting import fit_boosted_trees, sort_codes
from unweave.metrics.estimators.logistic import fit_logistic_cv
from unweave.metrics.representation import Representation, check_count, check_representation, parts
from unweave.streams import Stream

Floats: TypeAlias = NDArray[np.float64]
Predict: TypeAlias = Callable[[Floats], NDArray[np.int64]]


class Fairness(NamedTuple):
    """Unfairness of all pairs of factors, its mean and its maximum over pairs.

    `unfairness` is (k, k): rows are the predicted factors, columns the sensitive ones. Its diagonal is 0 and
    does not count. `worst_value` is the same for that value of the sensitive factor that is treated worst.
    """

    mean_unfairness: float
    max_unfairness: float
    unfairness: Floats
    worst_value: Floats


def fairness(
    representation: Representation,
    *,
    predictor: Predictor = "trees",
    train: int = 10_000,
    points: int = 100,
    seed: int | Stream = 0,
) -> Fairness:
    """Return how far predictions of one factor change with another, sensitive one [1]; 0 is fair.

    A predictor of each factor y is fitted to the codes of `train` points; the sensitive factor s is not among
    its inputs. Then `points` combinations of factors are drawn, s is set to each of its values in all of
    them, and the predictions are counted. The unfairness of the pair (y, s) is

        mean over values v of s of TV(p(prediction), p(prediction | s = v)),

    TV(p, q) = sum |p - q| / 2, with p(prediction) over all values of s. `mean_unfairness` is the score of
    [1]: the mean over all pairs of different factors. `max_unfairness` is that of the least fair pair. In
    the matrix `worst_value`, the largest distance over v takes the place of the mean.

    Range: 0 to 1 - 1 / (number of values of s); lower is fairer. Perfect codes score 0 with trees, because an
    intervention on s leaves all other codes unchanged. If codes are random given the factors (sampled codes,
    noisy images) or come as rows, predictions also differ by chance between the values of s. If c classes are
    predicted equally often, a pair then scores about sqrt((c - 1) / (2 pi points)) although nothing depends
    on s. With a single factor all numbers are 0.

    `predictor` is "trees" (gradient boosted trees, as in [2]) or "logistic" (cross-validated logistic
    regression); `downstream` describes both.

    From rows (`Representation.from_rows`), the predictors are fitted to one half of the rows, and `points`
    rows of the other half are drawn for each value of s.

    Differs from [2]: the combinations drawn for a sensitive factor serve all predicted factors; there they
    are drawn again for each.

    References: [1] Locatello et al., On the fairness of disentangled representations, NeurIPS 2019. [2]
    disentanglement_lib, evaluation/metrics/fairness.py: `mean_unfairness` is its
    "mean_fairness:mean_pred:mean_sens", `max_unfairness` its "mean_fairness:max_pred:max_sens", and
    worst_value[i, j] its "max_fairness:pred{i}:sens{j}".

    >>> perfect = Representation(lambda factors, stream: factors / 3.0, sizes=(4, 4))
    >>> fairness(perfect, train=200).mean_unfairness
    0.0
    >>> entangled = Representation(lambda factors, stream: factors.sum(axis=1, keepdims=True), sizes=(4, 4))
    >>> fairness(entangled, train=200).mean_unfairness > 0.2
    True
    """
    check_representation(representation)
    check_predictor(predictor)
    check_count("train", train)
    check_count("points", points)
    stream = Stream.of(seed).child("fairness", predictor)
    to_fit, to_test = representation.separated(stream)
    codes, factors = _training_points(to_fit, train, stream.child("train"))
    models = _fit(codes, factors, predictor, stream)
    k = factors.shape[1]
    classes = factors.max(axis=0) + 1
    unfairness, worst = np.zeros((k, k)), np.zeros((k, k))
    for sensitive in range(k):
        tables = _count_predictions(
            models, classes, to_test, sensitive, points, stream.child("test", sensitive)
        )
        unfairness[:, sensitive] = [total_variation(table) for table in tables]
        worst[:, sensitive] = [_distances(table).max() for table in tables]
    np.fill_diagonal(unfairness, 0.0)
    np.fill_diagonal(worst, 0.0)
    return Fairness(*summarised(unfairness), unfairness, worst)


def summarised(unfairness: Floats) -> tuple[float, float]:
    """Return the mean and the maximum of (k, k) unfairness over all pairs of different factors."""
    pairs = unfairness[~np.eye(len(unfairness), dtype=bool)]
    return float(pairs.mean()) if len(pairs) else 0.0, float(pairs.max(initial=0.0))


def total_variation(counts: ArrayLike) -> float:
    """Return the mean total variation distance of the columns of a table of counts to the sum of all columns.

    Rows are predicted classes and columns are groups. Each column is normalised to a distribution, and weighs
    as much as it has counts.

    >>> total_variation([[0, 100], [100, 0]])
    0.5
    """
    table = np.asarray(counts, np.float64)
    sizes = table.sum(axis=0)
    return float((_distances(table) * sizes).sum() / sizes.sum())


def _distances(counts: ArrayLike) -> Floats:
    """The distance of each column; 0 for a column without counts."""
    table = np.asarray(counts, np.float64)
    sizes = table.sum(axis=0)
    pooled = table.sum(axis=1, keepdims=True) / sizes.sum()
    distances = np.abs(table / np.maximum(sizes, 1.0) - pooled).sum(axis=0) / 2
    return np.where(sizes > 0, distances, 0.0)


def _training_points(
    representation: Representation, train: int, stream: Stream
) -> tuple[Floats, NDArray[np.int64]]:
    """Drawn points, or rows in random order: a row that is drawn twice tells nothing new."""
    if representation.rows is None:
        return representation.draw(train, stream)
    chosen = stream.permutations(1, len(representation.rows.codes))[0][:train]
    return representation.rows.codes[chosen], representation.rows.factors[chosen]


def _fit(codes: Floats, factors: NDArray[np.int64], predictor: Predictor, stream: Stream) -> list[Predict]:
    """A predictor of each factor."""
    if predictor == "logistic":
        return [fit_logistic_cv(codes, labels).predict for labels in factors.T]
    ordered = sort_codes(codes)
    return [
        fit_boosted_trees(ordered, labels, seed=stream.child("trees", j)).predict
        for j, labels in enumerate(factors.T)
    ]


def _count_predictions(
    models: Sequence[Predict],
    classes: Sequence[int] | NDArray[np.int64],
    representation: Representation,
    sensitive: int,
    points: int,
    stream: Stream,
) -> list[NDArray[np.int64]]:
    """For each model how often it predicts each class (rows) at each value of the sensitive factor."""
    sizes = representation.sizes
    drawn = stream.child("factors").integers(points, sizes)
    tables = [np.zeros((int(count), sizes[sensitive]), np.int64) for count in classes]
    for first, count in parts(sizes[sensitive], points, representation.width):
        factors = np.tile(drawn, (count, 1))
        factors[:, sensitive] = np.repeat(np.arange(first, first + count), points)
        held = np.full(len(factors), sensitive)
        codes = representation.codes(factors, stream.child("codes").skip(first * points), held)
        for table, predict in zip(tables, models, strict=True):
            np.add.at(table, (predict(codes), factors[:, sensitive]), 1)
    return tables
