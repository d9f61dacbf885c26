"""Regression of one real-valued factor on standardised codes, with the importance of each code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unweave.metrics.estimators.linear import lasso
from unweave.streams import Stream

Floats = NDArray[np.float64]


class RegressionFit(NamedTuple):
    """Importance of each code, and max(0, R^2) on the training and the test data."""

    importance: Floats  # (d,)
    train: float
    test: float


def fit_regression_trees(
    codes: Floats, targets: Floats, test_codes: Floats, test_targets: Floats, stream: Stream
) -> RegressionFit:
    """Fit boosted regression trees with scikit-learn's defaults: 100 rounds, learning rate 0.1, depth 3.

    Importance is the fall of the squared error, as for the classifiers of `unweave.metrics.dci`.
    """
    from sklearn.ensemble import GradientBoostingRegressor  # type: ignore[import-untyped]

    model = GradientBoostingRegressor(
        loss="squared_error", learning_rate=0.1, n_estimators=100, max_depth=3, subsample=1.0,
        min_samples_split=2, min_samples_leaf=1, random_state=int(stream.bits(1, 1)[0, 0]),
    ).fit(codes, targets)  # fmt: skip
    return RegressionFit(
        np.asarray(model.feature_importances_),
        _share_explained(targets, model.predict(codes)),
        _share_explained(test_targets, model.predict(test_codes)),
    )


def fit_lasso(
    codes: Floats,
    targets: Floats,
    test_codes: Floats,
    test_targets: Floats,
    stream: Stream,  # noqa: ARG001 - nothing is drawn
) -> RegressionFit:
    """Fit a linear regression of the standardised factor with L1 penalty 0.01; importance is |weight|."""
    mean, deviation = targets.mean(), targets.std() or 1.0
    weights = lasso(codes, ((targets - mean) / deviation)[:, None], alpha=0.01)[:, 0]
    return RegressionFit(
        np.abs(weights),
        _share_explained(targets, mean + deviation * (codes @ weights)),
        _share_explained(test_targets, mean + deviation * (test_codes @ weights)),
    )


def _share_explained(truth: Floats, prediction: Floats) -> float:
    variance = float(truth.var()) if len(truth) else 0.0
    return max(0.0, 1 - float(((truth - prediction) ** 2).mean()) / variance) if variance > 0 else 0.0
