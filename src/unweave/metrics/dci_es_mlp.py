"""DCI-ES with the multi-layer perceptrons of its authors: how wide a network must be to predict the factors.

Eastwood, Nicolicioiu, von Kügelgen, Kekić, Träuble, Dittadi, Schölkopf, "DCI-ES: An extended disentanglement
framework with connections to identifiability", ICLR 2023 [1], with the settings of the authors' program [2].
`dci_es` has the authors' Fourier features with a formula for the optimum, `dci_es_forest` their forests.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unweave.metrics.dci_es import DCIES, explicitness_of_curves
from unweave.metrics.estimators.perceptrons import Points, Training, fit_perceptrons, parameters_of
from unweave.metrics.real_factors import Floats, split_real, standardised
from unweave.metrics.representation import check_count
from unweave.streams import Stream

# Units of each of the two hidden layers [2]; 0 stands for a linear probe.
WIDTHS = (0, 14, 21, 28, 33, 47, 75, 103, 131, 243)
# The default of [2], which its runs of perceptrons replace by 0.0002.
RATE = 4e-3
# Test codes are cut here, so that the networks, which work in float32, give finite predictions.
FARTHEST = 1e6


def dci_es_mlp(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    updates: int = 4600,
    seed: int | Stream = 0,
) -> DCIES:
    """Return explicitness E in [-1, 1] and size S > 0 with neural networks as probes; higher is better.

    See `dci_es` for the formulas. Probe t predicts each factor by a network of its own: the first is linear,
    the others have two hidden layers of 14, 21, 28, 33, 47, 75, 103, 131 or 243 rectified units. kappa_t is
    the logarithm of the number of weights and biases for one factor, and the loss l_tj is 1 - R^2 on the
    test data, at most 1. E is 1 if a linear model is enough.

    Networks minimise the squared error by Adam (batches of 128, `updates` updates, rate 0.004, divided by 10
    after 40% and after 80% of the updates). A tenth of the training data is kept for validation: of ten
    states of a probe, the one with the least error on it counts. Codes and factors are standardised by the
    training data; dead codes are left out of the networks.

    Without `test`, the last third of the rows is held out. The seed draws the validation rows, the initial
    weights and the batches.

    Differs from [2]: all factors are numbers (there, categories have classifiers and loss 1 - accuracy); a
    loss above 1 counts as 1. There, codes are taken as they are and factors run from 0 to 1; probes are
    trained by 23,085 updates at rate 0.0002; validation rows are 5% of the training data, and the last state
    is not among those to choose from. Widths go on to 467, 915, 1,811 and 3,603 units, which would take
    about two hours on one core and have more weights than 10,000 points can determine.

    >>> factors = Stream.of(0).integers(300, [2, 2])
    >>> score = dci_es_mlp(factors * 0.1, factors, updates=1000)
    >>> score.explicitness > 0.9, score.size, score.losses.shape
    (True, 1.0, (10, 2))
    """
    check_count("updates", updates)
    data = split_real(codes, factors, test)
    train, held_out = standardised(data.codes, data.test_codes)
    alive = train.any(axis=0)
    targets, truth = standardised(data.factors, data.test_factors)
    stream = Stream.of(seed).child("dci_es_mlp")
    fitting, validation = _with_validation(train[:, alive], targets, stream.child("validation"))
    test_codes = np.clip(held_out[:, alive], -FARTHEST, FARTHEST).astype(np.float32)
    layers = [_layers(width, test_codes.shape[1]) for width in WIDTHS]
    losses = np.empty((len(WIDTHS), targets.shape[1]))
    for probe, (width, shape) in enumerate(zip(WIDTHS, layers, strict=True)):
        networks = fit_perceptrons(
            fitting, validation, shape, Training(updates, RATE), stream.child("width", width)
        )
        losses[probe] = _losses(networks.predict(test_codes).astype(np.float64), truth)
    capacities = np.log([parameters_of(shape) for shape in layers])
    own = explicitness_of_curves(losses, capacities)
    return DCIES(float(own.mean()), targets.shape[1] / train.shape[1], own, losses)


def _layers(width: int, inputs: int) -> tuple[int, ...]:
    return (inputs, width, width, 1) if width else (inputs, 1)


def _with_validation(codes: Floats, targets: Floats, stream: Stream) -> tuple[Points, Points]:
    """Nine tenths of the rows, and at least one, and the rest of them; of a single row, this row twice."""
    order = stream.permutations(1, len(codes))[0]
    kept = max(len(codes) // 10, 1)
    rest = order[kept:] if len(codes) > 1 else order
    points = Points(codes.astype(np.float32), targets.astype(np.float32))
    return (
        Points(points.codes[rest], points.targets[rest]),
        Points(points.codes[order[:kept]], points.targets[order[:kept]]),
    )


def _losses(predictions: Floats, truth: Floats) -> Floats:
    """Squared error (k,) divided by the variance of the test data; at most 1, and 1 if it is 0."""
    error, spread = ((predictions - truth) ** 2).mean(axis=0), truth.var(axis=0)
    return np.asarray(np.minimum(np.divide(error, spread, out=np.ones_like(error), where=spread > 0), 1.0))
