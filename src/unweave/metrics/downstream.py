"""Downstream task: how well, and from how few points, the factors can be predicted from the codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError, did_you_mean
from unweave.metrics.checks import split
from unweave.metrics.estimators.boosting import fit_boosted_trees, sort_codes
from unweave.metrics.estimators.logistic import fit_logistic_cv
from unweave.streams import Stream

Predictor: TypeAlias = Literal["logistic", "trees"]
SIZES = (10, 100, 1_000, 10_000)


class Downstream(NamedTuple):
    """Accuracies for each number of training points; rows are sizes, columns are factors."""

    sizes: tuple[int, ...]
    train_accuracy: NDArray[np.float64]  # (sizes, k)
    test_accuracy: NDArray[np.float64]  # (sizes, k)

    def mean_test_accuracy(self, size: int) -> float:
        """Mean over the factors of the test accuracy after training on so many points."""
        if size not in self.sizes:
            sizes = ", ".join(str(known) for known in self.sizes)
            raise UnweaveError(
                f"the sizes of this downstream task are {sizes}; got {size}. Add it to sizes=."
            )
        return float(self.test_accuracy[self.sizes.index(size)].mean())


def downstream(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    predictor: Predictor = "logistic",
    sizes: Sequence[int] | None = None,
    seed: int | Stream = 0,
) -> Downstream:
    """Accuracy of predicting each factor from the codes; in [0, 1], higher is better.

    For each size the predictor is fitted to the first `size` training rows and tested on all test rows;
    without `test` the last third of the rows is held out. Sizes are 10, 100, 1,000 and 10,000, as far as
    there are so many training rows, unless they are given. A class that is not among the training rows is
    never predicted; if these hold one class only, it is always predicted.

    `predictor` is one of:

    - "logistic": logistic regression, one class against the rest, with C from 10 values by 5 folds:
      LogisticRegressionCV(Cs=10, cv=KFold(5)) of the scikit-learn of the published study [1]. More points
      can lower its accuracy. No line separates a middle value of an ordered factor from the rest, so "no" is
      the best answer for that class for every C, and of ten equally good C the smallest is taken, 1e-4. Which
      of these classes wins is then mostly decided by how often each occurs in the training rows: chance. A
      perfect code of dSprites has 0.358 after 1,000 points and 0.331 after 10,000; with scikit-learn too.
    - "trees": gradient boosted trees with the defaults of the scikit-learn (0.21) of [1]: 100 rounds,
      learning rate 0.1, depth 3, nodes of a variance up to 1e-7 are not split. The seed decides between
      equally good codes.

    Differs from [1]: the rows of a smaller size are the first rows of a larger one, and the test rows are
    the same for all sizes; there all are drawn again for each size.

    [1] Locatello et al., Challenging common assumptions in the unsupervised learning of disentangled
    representations, ICML 2019.

    >>> factors = Stream.of(0).integers(600, [2, 3])
    >>> task = downstream(factors, factors, predictor="trees", sizes=[10, 100])
    >>> task.test_accuracy.shape, task.mean_test_accuracy(100)
    ((2, 2), 1.0)
    """
    data = split(codes, factors, test, few=True)
    check_predictor(predictor)
    chosen = _check_sizes(sizes, len(data.codes))
    stream = Stream.of(seed).child("downstream", predictor)
    train_accuracy = np.empty((len(chosen), data.factors.shape[1]))
    test_accuracy = np.empty_like(train_accuracy)
    for row, size in enumerate(chosen):
        for j, held_out in enumerate(data.test_factors.T):
            labels = data.factors[:size, j]
            fitted, predicted = predict_labels(
                predictor, data.codes[:size], labels, data.test_codes, stream.child(size, j)
            )
            train_accuracy[row, j] = (fitted == labels).mean()
            test_accuracy[row, j] = (predicted == held_out).mean()
    return Downstream(chosen, train_accuracy, test_accuracy)


def statistical_efficiency(task: Downstream, *, few: int = 100, many: int = 10_000) -> float:
    """Mean test accuracy after `few` points divided by that after `many`; from 0, about 1 is best.

    [1] Locatello et al., Challenging common assumptions in the unsupervised learning of disentangled
    representations, ICML 2019, section 5.5.

    >>> task = Downstream((100, 10_000), np.array([[1.0], [1.0]]), np.array([[0.4], [0.8]]))
    >>> statistical_efficiency(task)
    0.5
    """
    best = task.mean_test_accuracy(many)
    # No test row was right after many points: nothing is left to be efficient about.
    return task.mean_test_accuracy(few) / best if best > 0 else 0.0


def check_predictor(predictor: object) -> None:
    """Refuse a predictor that is not known."""
    if predictor not in ("logistic", "trees"):
        known = did_you_mean(str(predictor), ["logistic", "trees"])
        raise UnweaveError(f"predictor must be one of the known ones; got {predictor!r}. {known}")


def _check_sizes(sizes: Sequence[int] | None, rows: int) -> tuple[int, ...]:
    if sizes is None:
        return tuple(size for size in SIZES if size <= rows) or (rows,)
    if not isinstance(sizes, Sequence | np.ndarray) or not len(sizes):
        raise UnweaveError(f"sizes must be a list of numbers of rows, such as [10, 100]; got {sizes!r}.")
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 1 <= size <= rows:
            raise UnweaveError(
                f"sizes must be whole numbers from 1 to the {rows} training rows; got {size!r}. "
                "Give more rows, or smaller sizes."
            )
    return tuple(int(size) for size in sizes)


def predict_labels(
    predictor: Predictor,
    codes: NDArray[np.float64],
    labels: NDArray[np.int64],
    test_codes: NDArray[np.float64],
    stream: Stream,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the labels that are predicted for the training rows, and for the test rows."""
    if predictor == "logistic":
        model = fit_logistic_cv(codes, labels)
        return model.predict(codes), model.predict(test_codes)
    trees = fit_boosted_trees(sort_codes(codes), labels, seed=stream)
    return trees.fitted, trees.predict(test_codes)
