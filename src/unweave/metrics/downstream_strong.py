"""Downstream task under a shift: predictors fitted where one other factor has a single value.

Locatello, Poole, Rätsch, Schölkopf, Bachem, Tschannen, "Weakly-supervised disentanglement without
compromises", ICML 2020 [1], as computed by disentanglement_lib [2].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.metrics.downstream import Predictor, check_predictor, predict_labels
from unweave.metrics.representation import Representation, check_count, check_representation
from unweave.streams import Stream

Floats: TypeAlias = NDArray[np.float64]
# Combinations of factors to train on, and to test on.
_Both: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]


class DownstreamStrong(NamedTuple):
    """Mean accuracies on test points without and with a shift, and those of each factor, (k,)."""

    test_accuracy: float
    strong_test_accuracy: float
    train_accuracies: Floats
    test_accuracies: Floats
    strong_train_accuracies: Floats
    strong_test_accuracies: Floats

    @property
    def gap(self) -> float:
        """1 - strong_test_accuracy / test_accuracy: the share of the accuracy that the shift costs."""
        return 1 - self.strong_test_accuracy / self.test_accuracy if self.test_accuracy > 0 else 0.0


def downstream_strong(
    representation: Representation,
    *,
    predictor: Predictor = "trees",
    train: int = 10_000,
    test: int = 5_000,
    experiments: int = 10,
    seed: int | Stream = 0,
) -> DownstreamStrong:
    """Return how well factors are predicted where another factor has values that were never trained on [1].

    `train` and `test` combinations of factors are drawn. For each factor y a predictor is fitted to the codes
    of the first and tested on those of the second: `test_accuracy` is the mean over factors. Then, for each
    y, `experiments` times: another factor s and one of its values v are drawn. s is set to v in all training
    combinations, and to random other values in all test combinations. A new predictor of y is fitted and
    tested. `strong_test_accuracy` is the mean over factors and experiments. For example, shapes are learned
    from red objects and tested on objects of other colours. `gap` compares both accuracies.

    Both are in [0, 1], higher is better. Perfect codes lose nothing with trees, because s changes no code of
    y. A factor with one value is always predicted, and is never s. Without another factor there is no
    shift, and both accuracies are the same. Few training points are a few-shot task: `train=100`.

    `predictor` is "trees" (gradient boosted trees, as in [1]) or "logistic" (cross-validated logistic
    regression); `downstream` describes both.

    References: [1] Locatello et al., Weakly-supervised disentanglement without compromises, ICML 2020. [2]
    disentanglement_lib, evaluation/metrics/strong_downstream_task.py: `test_accuracy` is its
    "mean_test_accuracy", `strong_test_accuracy` its "mean_strong_test_accuracy", and `gap` its
    "strong_generalization_gap".

    >>> perfect = Representation(lambda factors, stream: factors / 3.0, sizes=(4, 4))
    >>> downstream_strong(perfect, train=200, test=100).gap
    0.0
    >>> entangled = Representation(lambda f, stream: f.sum(axis=1, keepdims=True) % 4, sizes=(4, 4))
    >>> downstream_strong(entangled, train=200, test=100).gap  # wrong for each value that was not seen
    1.0
    """
    check_representation(representation)
    check_predictor(predictor)
    for name, count in (("train", train), ("test", test), ("experiments", experiments)):
        check_count(name, count)
    representation.require_grid("downstream_strong needs")
    stream = Stream.of(seed).child("downstream strong", predictor)
    drawn = (
        stream.child("train").integers(train, representation.sizes),
        stream.child("test").integers(test, representation.sizes),
    )
    task = _Task(representation, predictor)
    k = len(representation.sizes)
    codes = task.codes(drawn, stream.child("plain"))
    plain = np.array([task.accuracies(j, drawn, codes, stream.child("plain", j)) for j in range(k)])
    strong = plain.copy()
    for j in range(k):
        others = [other for other, size in enumerate(representation.sizes) if size > 1 and other != j]
        if others:
            streams = [stream.child("strong", j, number) for number in range(experiments)]
            strong[j] = np.mean([task.shifted(j, drawn, others, own) for own in streams], axis=0)
    means = float(plain[:, 1].mean()), float(strong[:, 1].mean())
    return DownstreamStrong(*means, plain[:, 0], plain[:, 1], strong[:, 0], strong[:, 1])


class _Task(NamedTuple):
    """The codes that are predicted from, and by what."""

    representation: Representation
    predictor: Predictor

    def codes(self, factors: _Both, stream: Stream) -> tuple[Floats, Floats]:
        """Codes of the points to train on, and of those to test on."""
        train, test = factors
        return (
            self.representation.codes(train, stream.child("train", "codes")),
            self.representation.codes(test, stream.child("test", "codes")),
        )

    def accuracies(
        self, target: int, factors: _Both, codes: tuple[Floats, Floats], stream: Stream
    ) -> tuple[float, float]:
        """Accuracies of a factor on the points that its predictor is fitted to, and on the test points."""
        labels, test_labels = (part[:, target] for part in factors)
        fitted, predicted = predict_labels(
            self.predictor, codes[0], labels, codes[1], stream.child("predictor")
        )
        return float((fitted == labels).mean()), float((predicted == test_labels).mean())

    def shifted(
        self, target: int, factors: _Both, others: Sequence[int], stream: Stream
    ) -> tuple[float, float]:
        """The same after a random shift of one of the other factors."""
        shifted = _shifted(factors, self.representation.sizes, others, stream)
        return self.accuracies(target, shifted, self.codes(shifted, stream), stream)


def _shifted(factors: _Both, sizes: Sequence[int], others: Sequence[int], stream: Stream) -> _Both:
    """Copies of the training and test combinations with one value of another factor, and with other ones."""
    train, test = (part.copy() for part in factors)
    column = others[int(stream.child("factor").integers(1, [len(others)])[0, 0])]
    size = sizes[column]
    value = int(stream.child("value").integers(1, [size])[0, 0])
    train[:, column] = value
    steps = 1 + stream.child("other values").integers(len(test), [size - 1])[:, 0]
    test[:, column] = (value + steps) % size
    return train, test
