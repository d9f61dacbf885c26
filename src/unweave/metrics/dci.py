"""DCI: which codes are needed to predict which factor (Eastwood and Williams)."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError, did_you_mean
from unweave.metrics.checks import Split, split
from unweave.metrics.estimators.boosting import fit_boosted_trees, sort_codes
from unweave.metrics.estimators.histogram_boosting import bin_codes, fit_histogram_trees
from unweave.metrics.estimators.linear import lasso
from unweave.streams import Stream

Model: TypeAlias = Literal["trees", "histogram", "svm", "forest", "lasso"]
# Added to every importance before it is normalised, so that the entropy of a column of zeros is defined.
SMALL = 1e-11


class DCI(NamedTuple):
    """The three scores of DCI, and the importance of each code for each factor."""

    disentanglement: float
    completeness: float
    informativeness_train: float
    informativeness_test: float
    importance: NDArray[np.float64]  # (d, k)


class Fit(NamedTuple):
    """Models of all factors: the importance of the codes and how well they predict."""

    importance: NDArray[np.float64]  # (d, k)
    train: NDArray[np.float64]  # (k,)
    test: NDArray[np.float64]  # (k,)


def dci(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    model: Model = "trees",
    seed: int | Stream = 0,
) -> DCI:
    """Disentanglement, completeness and informativeness; each in [0, 1], higher is better.

    A model predicts each factor from all codes; R_ij >= 0 is the importance of code i for factor j.

        D = sum_i w_i (1 - H_k(R_i. / sum_j R_ij)),  w_i = sum_j R_ij / sum_ij R_ij,  H_k entropy to base k
        C = sum_j v_j (1 - H_d(R_.j / sum_i R_ij)),  v_j = sum_i R_ij / sum_ij R_ij,  H_d entropy to base d
        I = mean over factors of the accuracy of the models, on the training and on the test data

    D is high if each code serves one factor, C if each factor is held by one code. With one factor D is
    1, and with one code C is 1, as there is nothing to share; if no code serves any factor both are 0.

    `model` is one of:

    - "trees": gradient boosted trees with the defaults of the scikit-learn (0.21) of the published study [2]:
      100 rounds, learning rate 0.1, depth 3, nodes of a variance up to 1e-7 are not split; importance = fall
      of the squared error.
    - "histogram": such trees, approximately, for hundreds of codes. Splits are tried at the edges of 64 bins
      a code only. Nodes below the root of a tree look at the 8 codes that split the root best and at 56
      others that are drawn for each tree.
    - "svm": linear support vector machine with L1 penalty (squared hinge, C = 0.01, one against the
      rest), importance = mean over classes of |weight|: named in the appendix of the preprint of [2].
    - "forest": random forest of 100 trees (Gini, sqrt(d) codes a split), importance = fall of impurity.
    - "lasso": linear regression of the standardised factor with L1 penalty 0.01, importance = |weight|,
      as in [1]; the factor must be ordinal. I is then max(0, R^2), the share of the variance explained.

    The linear models see codes standardised by the training data. Without `test` the last third of the
    rows is held out. The seed decides between equally good codes (trees), and draws the codes of
    histogram trees and the forest.

    Differs from [1]: the models have fixed settings, and I is an accuracy (as in [2]), not an error.

    [1] Eastwood and Williams, A framework for the quantitative evaluation of disentangled
    representations, ICLR 2018. [2] Locatello et al., Challenging common assumptions in the unsupervised
    learning of disentangled representations, ICML 2019.

    >>> factors = Stream.of(0).integers(600, [3, 4])
    >>> score = dci(factors, factors)
    >>> round(score.disentanglement, 3), round(score.completeness, 3), score.informativeness_test
    (1.0, 1.0, 1.0)
    """
    data = split(codes, factors, test)
    fit = fit_models(data, model, Stream.of(seed).child("dci"))
    return DCI(
        disentanglement(fit.importance),
        disentanglement(fit.importance.T),
        float(fit.train.mean()),
        float(fit.test.mean()),
        fit.importance,
    )


def disentanglement(importance: NDArray[np.float64]) -> float:
    """D of an importance matrix (d, k); C is D of its transpose.

    >>> round(disentanglement(np.array([[1.0, 0.0], [0.5, 0.5]])), 6)  # scores 1 and 0 with equal weight
    0.5
    """
    if not importance.any():
        return 0.0
    if importance.shape[1] == 1:
        return 1.0
    share = importance + SMALL
    share = share / share.sum(axis=1, keepdims=True)
    scores = 1 + (share * np.log(share)).sum(axis=1) / np.log(importance.shape[1])
    weights = importance.sum(axis=1) / importance.sum()
    return max(float(scores @ weights), 0.0)  # rounding can leave it just below


def fit_models(data: Split, model: Model, stream: Stream) -> Fit:
    """Predict every factor from all codes by one kind of model."""
    if model not in _FITS:
        raise UnweaveError(
            f"model must be one of the known ones; got {model!r}. {did_you_mean(model, _FITS)}"
        )
    return _FITS[model](data, stream)


def _fit_trees(data: Split, stream: Stream) -> Fit:
    sorted_codes, columns = sort_codes(data.codes), []
    for j, (labels, held_out) in enumerate(zip(data.factors.T, data.test_factors.T, strict=True)):
        trees = fit_boosted_trees(sorted_codes, labels, seed=stream.child("trees", j))
        test = (trees.predict(data.test_codes) == held_out).mean()
        columns.append((trees.importances, (trees.fitted == labels).mean(), test))
    return _fit(columns)


def _fit_histogram(data: Split, stream: Stream) -> Fit:
    bins = bin_codes(data.codes)
    models = fit_histogram_trees(bins, data.factors, seed=stream.child("histogram trees"))
    test_cells = bins.bin_like(data.test_codes)
    return _fit(
        [
            (
                trees.importances,
                (trees.fitted == labels).mean(),
                (trees.predict(test_cells) == held_out).mean(),
            )
            for trees, labels, held_out in zip(models, data.factors.T, data.test_factors.T, strict=True)
        ]
    )


def _fit_svm(data: Split, stream: Stream) -> Fit:
    from sklearn.svm import LinearSVC  # type: ignore[import-untyped]

    train, test = _standardise(data)
    columns = []
    for j, (labels, held_out) in enumerate(zip(data.factors.T, data.test_factors.T, strict=True)):
        svm = LinearSVC(
            penalty="l1", loss="squared_hinge", dual=False, C=0.01, tol=1e-4, max_iter=10_000,
            multi_class="ovr", fit_intercept=True, intercept_scaling=1, class_weight=None,
            random_state=_random_state(stream.child("svm", j)),
        ).fit(train, labels)  # fmt: skip
        accuracies = _accuracy(svm, train, labels), _accuracy(svm, test, held_out)
        columns.append((np.abs(svm.coef_).mean(axis=0), *accuracies))
    return _fit(columns)


def _fit_forest(data: Split, stream: Stream) -> Fit:
    from sklearn.ensemble import RandomForestClassifier  # type: ignore[import-untyped]

    # Trees compare values only, so any scale will do; this one fits into the float32 that is used inside.
    train, test = _standardise(data)
    columns = []
    for j, (labels, held_out) in enumerate(zip(data.factors.T, data.test_factors.T, strict=True)):
        forest = RandomForestClassifier(
            n_estimators=100, criterion="gini", max_depth=None, min_samples_split=2, min_samples_leaf=1,
            max_features="sqrt", max_leaf_nodes=None, bootstrap=True, class_weight=None,
            random_state=_random_state(stream.child("forest", j)),
        ).fit(train, labels)  # fmt: skip
        accuracies = _accuracy(forest, train, labels), _accuracy(forest, test, held_out)
        columns.append((forest.feature_importances_, *accuracies))
    return _fit(columns)


def _fit_lasso(data: Split, stream: Stream) -> Fit:  # noqa: ARG001 - nothing is drawn
    train, test = _standardise(data)
    mean, std = data.factors.mean(axis=0), data.factors.std(axis=0)
    weights = lasso(train, (data.factors - mean) / std, alpha=0.01)
    fitted, predicted = mean + std * (train @ weights), mean + std * (test @ weights)
    return Fit(np.abs(weights), _explained(data.factors, fitted), _explained(data.test_factors, predicted))


_FITS = {
    "trees": _fit_trees,
    "histogram": _fit_histogram,
    "svm": _fit_svm,
    "forest": _fit_forest,
    "lasso": _fit_lasso,
}


def _fit(columns: list[tuple[NDArray[np.float64], float, float]]) -> Fit:
    importance, train, test = zip(*columns, strict=True)
    return Fit(np.stack(importance, axis=1), np.array(train, np.float64), np.array(test, np.float64))


def _accuracy(classifier: Any, codes: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Share of right predictions of a classifier of scikit-learn, without the checks of its `score`."""
    return float((classifier.predict(codes) == labels).mean())


def _standardise(data: Split) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Codes with mean 0 and standard deviation 1 on the training data; dead codes become 0."""
    largest = np.abs(data.codes).max(axis=0)
    scale = np.where(largest > 0, largest, 1.0)  # first, so that the squares of huge codes are finite
    train, test = data.codes / scale, data.test_codes / scale
    mean, std = train.mean(axis=0), train.std(axis=0)
    std = np.where(std > 1e-12, std, np.inf)
    return (train - mean) / std, (test - mean) / std


def _explained(truth: NDArray[np.int64], prediction: NDArray[np.float64]) -> NDArray[np.float64]:
    """R^2 of each factor, the share of the variance explained, at least 0; of one that does not vary, 0."""
    variance = truth.var(axis=0)
    error = ((truth - prediction) ** 2).mean(axis=0)
    return np.where(variance > 0, np.maximum(1 - error / np.where(variance > 0, variance, 1.0), 0.0), 0.0)


def _random_state(stream: Stream) -> int:
    return int(stream.bits(1, 1)[0, 0])
