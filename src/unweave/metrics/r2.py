"""R^2: how much of the variance of the factors can be predicted from all codes, out of sample.

The measure of block-identifiability and of identifiability up to a linear map: von Kügelgen et al.,
"Self-Supervised Learning with Data Augmentations Provably Isolates Content from Style", NeurIPS 2021 [1].
Multi-layer perceptrons are the nonlinear probes of Eastwood et al., "DCI-ES", ICLR 2023 [2].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from unweave.errors import UnweaveError, did_you_mean
from unweave.metrics.estimators.kernel_ridge import fit_kernel_ridge
from unweave.metrics.real_factors import Floats, explained_variance, split_real, standardised
from unweave.streams import Stream

RegressionModel: TypeAlias = Literal["linear", "kernel", "mlp"]
# Rows that a kernel is fitted on: time grows with the cube of their number.
KERNEL_ROWS = 2000
# Units of the two hidden layers.
HIDDEN = (64, 64)
# A tenth of fewer rows is a single row, of which there is no R^2 to stop by.
LEAST_TO_STOP = 11


class R2(NamedTuple):
    """The mean over factors, and R^2 of each factor."""

    score: float
    factors: Floats  # (k,)


def r2(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    model: RegressionModel = "linear",
    seed: int | Stream = 0,
) -> R2:
    """Return the mean over factors of R^2 = 1 - squared error / variance on test data.

    A model predicts all factors, real numbers, from all codes. At most 1; 0 is the prediction of the mean,
    and overfitting gives values below 0. Higher is better. Codes and factors are standardised by the training
    data.

    - "linear": least squares with an intercept. 1 means: identified up to an affine map.
    - "kernel": ridge regression with a Gaussian kernel exp(-g |z - z'|^2); penalty (1, 0.1, 0.01, 0.001) and
      g (4 values from 0.01 to 100, evenly on a logarithmic scale) by 3-fold cross-validation, as in [1]. At
      most the first 2,000 training rows are used.
    - "mlp": perceptron with two hidden layers of 64 rectified units, trained by Adam (rate 0.001, batches of
      200, at most 200 epochs); it stops when R^2 on a tenth of the training data has not improved for 10
      epochs. With 10 training rows or fewer, it stops when the error of these has not improved.

    Without `test`, the last third of the rows is held out. The seed draws the weights and batches of the
    perceptron.

    Differs from [1]: for "kernel" [1] fits 4,096 rows, and rows with equal codes may be in different folds.

    >>> factors = Stream.of(0).normal(300, 2)
    >>> round(r2(factors @ [[1.0, 2.0], [-1.0, 1.0]], factors).score, 3)  # any invertible linear map
    1.0
    """
    check_model(model)
    data = split_real(codes, factors, test)
    train, held_out = standardised(data.codes, data.test_codes)
    targets, truth = standardised(data.factors, data.test_factors)
    scores = predicted_variance(train, targets, held_out, truth, model, Stream.of(seed).child("r2"))
    return R2(float(scores.mean()), scores)


def check_model(model: object) -> None:
    """Refuse a regression model that is not known."""
    if model not in _PREDICTORS:
        raise UnweaveError(
            f"`model` must be one of {', '.join(_PREDICTORS)}; got {model!r}. "
            f"{did_you_mean(str(model), _PREDICTORS)}"
        )


def predicted_variance(
    train: Floats, targets: Floats, held_out: Floats, truth: Floats, model: RegressionModel, stream: Stream
) -> Floats:
    """Return R^2 (k,) on the test data of a model of standardised codes and targets."""
    return explained_variance(truth, predict_targets(train, targets, held_out, model, stream))


def predict_targets(
    train: Floats, targets: Floats, held_out: Floats, model: RegressionModel, stream: Stream
) -> Floats:
    """Return the targets (m, k) that a model of standardised codes and centred targets predicts."""
    return _PREDICTORS[model](train, targets, held_out, stream)


def _predict_linear(train: Floats, targets: Floats, held_out: Floats, stream: Stream) -> Floats:  # noqa: ARG001
    return np.asarray(held_out @ np.linalg.lstsq(train, targets, rcond=None)[0])


def _predict_kernel(train: Floats, targets: Floats, held_out: Floats, stream: Stream) -> Floats:  # noqa: ARG001
    return fit_kernel_ridge(train[:KERNEL_ROWS], targets[:KERNEL_ROWS]).predict(held_out)


def _predict_mlp(train: Floats, targets: Floats, held_out: Floats, stream: Stream) -> Floats:
    import warnings

    from sklearn.neural_network import MLPRegressor  # type: ignore[import-untyped]

    network = MLPRegressor(
        hidden_layer_sizes=HIDDEN, activation="relu", solver="adam", alpha=1e-4,
        batch_size=max(1, min(200, len(train) * 9 // 10)), learning_rate_init=1e-3,
        max_iter=200, early_stopping=len(train) >= LEAST_TO_STOP, validation_fraction=0.1,
        n_iter_no_change=10, random_state=int(stream.child("mlp").bits(1, 1)[0, 0]),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the number of epochs is part of the definition
        network.fit(train, targets)
    return np.asarray(network.predict(held_out)).reshape(len(held_out), targets.shape[1])


_PREDICTORS: dict[RegressionModel, Callable[[Floats, Floats, Floats, Stream], Floats]] = {
    "linear": _predict_linear,
    "kernel": _predict_kernel,
    "mlp": _predict_mlp,
}
