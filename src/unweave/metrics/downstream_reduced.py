"""Downstream task without the most important codes: what is left of a factor in all other codes.

As computed by disentanglement_lib [1], evaluation/metrics/reduced_downstream_task.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.metrics.checks import Split, split
from unweave.metrics.downstream import Predictor, check_predictor, predict_labels
from unweave.metrics.estimators.boosting import fit_boosted_trees, sort_codes
from unweave.metrics.representation import check_count
from unweave.streams import Stream

Floats = NDArray[np.float64]


class DownstreamReduced(NamedTuple):
    """Accuracies after the most important codes of each factor are removed.

    `test_accuracies` is (k, k): row i has the accuracy of each factor without the codes of factor i;
    `train_accuracies` is the same on the training points. `removed` (k, r) names these codes.
    """

    score: float
    other_accuracy: float
    reduced_accuracy: float
    test_accuracies: Floats
    train_accuracies: Floats
    removed: NDArray[np.int64]


def downstream_reduced(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    predictor: Predictor = "trees",
    removed: int = 1,
    seed: int | Stream = 0,
) -> DownstreamReduced:
    """Return how far the codes that matter most for a factor hold this factor, and no other one [1].

    For each factor, the code with the largest importance in boosted trees is removed, `removed` times, with
    new trees each time. Predictors of all factors are then fitted to the other codes.

    - `reduced_accuracy`: the mean over factors of the accuracy of the factor whose codes were removed. Above
      chance, other codes know it as well: it leaks.
    - `other_accuracy`: the mean accuracy of all other factors. It falls if they share the removed codes.
    - `score`: other_accuracy - reduced_accuracy.

    Score from -1 to 1, higher is better. Perfect codes have an other_accuracy of 1 and a reduced_accuracy of
    chance. Two copies of such codes have a score of 0. Without any code left, the most frequent value is
    predicted. With a single factor, other_accuracy is 0.

    `predictor` is "trees" (gradient boosted trees) or "logistic" (cross-validated logistic regression);
    `downstream` describes both. Without `test` the last third of the rows is held out.

    Reference: [1] disentanglement_lib, evaluation/metrics/reduced_downstream_task.py: `other_accuracy` is its
    "mean_test_accuracy_other_factors", `reduced_accuracy` its "mean_test_accuracy_reduced_factor", with
    `factorwise_dci` as the measure of correlation. The score is ours.

    >>> factors = Stream.of(0).integers(900, [2, 4])
    >>> task = downstream_reduced(factors, factors)
    >>> task.other_accuracy, task.removed.tolist(), task.score > 0.5
    (1.0, [[0], [1]], True)
    >>> downstream_reduced(np.hstack([factors, factors]), factors).score
    0.0
    """
    data = split(codes, factors, test, few=True)
    check_predictor(predictor)
    check_count("removed", removed)
    if removed > data.codes.shape[1]:
        raise UnweaveError(f"removed must be at most the {data.codes.shape[1]} codes; got {removed}.")
    stream = Stream.of(seed).child("downstream reduced", predictor)
    k = data.factors.shape[1]
    train_accuracies, test_accuracies, gone = (
        np.empty((k, k)),
        np.empty((k, k)),
        np.empty((k, removed), np.int64),
    )
    for factor in range(k):
        gone[factor] = _most_important(data, factor, removed, stream.child("importance", factor))
        left = np.delete(np.arange(data.codes.shape[1]), gone[factor])
        for target in range(k):
            accuracies = _accuracies(data, left, target, predictor, stream.child("trees", factor, target))
            train_accuracies[factor, target], test_accuracies[factor, target] = accuracies
    own = np.eye(k, dtype=bool)
    reduced = float(test_accuracies[own].mean())
    others = float(test_accuracies[~own].mean()) if k > 1 else 0.0
    return DownstreamReduced(others - reduced, others, reduced, test_accuracies, train_accuracies, gone)


def _most_important(data: Split, factor: int, count: int, stream: Stream) -> list[int]:
    """The codes that boosted trees of a factor need most, one after another."""
    left, chosen = list(range(data.codes.shape[1])), []
    for number in range(count):
        ordered = sort_codes(data.codes[:, left])
        trees = fit_boosted_trees(ordered, data.factors[:, factor], seed=stream.child(number))
        chosen.append(left.pop(int(trees.importances.argmax())))
    return chosen


def _accuracies(
    data: Split, left: NDArray[np.int64], target: int, predictor: Predictor, stream: Stream
) -> tuple[float, float]:
    """Accuracies of a factor, predicted from some codes, on the training points and on the test points."""
    train, test = (
        table[:, left] if len(left) else np.zeros((len(table), 1)) for table in (data.codes, data.test_codes)
    )
    labels = data.factors[:, target]
    fitted, predicted = predict_labels(predictor, train, labels, test, stream)
    return float((fitted == labels).mean()), float((predicted == data.test_factors[:, target]).mean())
