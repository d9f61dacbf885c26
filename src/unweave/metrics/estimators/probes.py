"""Probes: a perceptron that predicts the probabilities of all values of all factors from codes.

One network serves all factors: two hidden layers of rectified units, and a softmax for each factor. Adam
minimises the sum of the factors' cross-entropies. For each factor the state with the least cross-entropy on
validation rows is used. One of the candidates is the frequencies of the values, which is what codes of
noise get.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unweave.metrics.checks import scaled
from unweave.metrics.estimators.perceptrons import (
    Perceptrons,
    Singles,
    adam,
    backpropagate,
    endless_batches,
    initial_perceptrons,
)
from unweave.streams import Stream

HIDDEN = (128, 128)
UPDATES = 2000
RATE = 3e-3  # it falls linearly to 0
VALIDATED = 5  # one row in so many is a validation row
VALIDATIONS = 20
# A code with at most so many different values is a category, with one input for each value.
MOST_CATEGORIES = 64


class Rows(NamedTuple):
    """Codes (n, d) and labels (n, k): labels of factor j are 0 to sizes[j] - 1."""

    codes: NDArray[np.float64]
    labels: NDArray[np.int64]


class Probed(NamedTuple):
    """How well each factor of test rows is predicted: (k,) accuracies, and cross-entropies in nats."""

    accuracy: NDArray[np.float64]
    cross_entropy: NDArray[np.float64]


def guess(labels: NDArray[np.int64], test: NDArray[np.int64], sizes: tuple[int, ...]) -> Probed:
    """How well test labels (n, k) are predicted by the frequencies of the training labels.

    One row is added that is spread over all values, so that no value has the probability 0.
    """
    found = Probed(*np.zeros((2, len(sizes))))
    for j, size in enumerate(sizes):
        shares = (np.bincount(labels[:, j], minlength=size) + 1 / size) / (len(labels) + 1)
        found.accuracy[j] = (test[:, j] == shares.argmax()).mean()
        found.cross_entropy[j] = -np.log(shares)[test[:, j]].mean()
    return found


def probe(train: Rows, test: Rows, sizes: tuple[int, ...], updates: int, stream: Stream) -> Probed:
    """Fit a probe to training rows and predict test rows."""
    inputs, test_inputs = _inputs(train.codes, test.codes)
    is_validation = np.arange(len(inputs)) % VALIDATED == 0
    fitted, validation = train.labels[~is_validation], train.labels[is_validation]
    best, least = guess(fitted, test.labels, sizes), guess(fitted, validation, sizes).cross_entropy
    for networks in _states(inputs[~is_validation], fitted, sizes, updates, stream):
        known = _predicted(networks, inputs[is_validation], validation, sizes)
        better = known.cross_entropy < least
        if better.any():
            tested = _predicted(networks, test_inputs, test.labels, sizes)
            least = np.minimum(least, known.cross_entropy)
            best = Probed(*(np.where(better, new, old) for new, old in zip(tested, best, strict=True)))
    return best


def _inputs(codes: NDArray[np.float64], test: NDArray[np.float64]) -> tuple[Singles, Singles]:
    """Standardised codes; a code with few values is replaced by an indicator of each of its values."""
    columns, test_columns = [], []
    for column, tested in zip(codes.T, test.T, strict=True):
        values = np.unique(column)
        if len(values) <= MOST_CATEGORIES:
            columns.append(column[:, None] == values)
            test_columns.append(tested[:, None] == values)
        else:
            small, exponent = scaled(column)
            centre, spread = small.mean(), small.std()
            columns.append(((small - centre) / spread)[:, None])
            test_columns.append(((np.ldexp(tested, -exponent) - centre) / spread)[:, None])
    return np.hstack(columns).astype(np.float32), np.hstack(test_columns).astype(np.float32)


def _states(
    inputs: Singles, labels: NDArray[np.int64], sizes: tuple[int, ...], updates: int, stream: Stream
) -> Iterator[Perceptrons]:
    """The network in training, VALIDATIONS times, or after each update if there are fewer updates."""
    widths = (inputs.shape[1], *HIDDEN, sum(sizes))
    networks = initial_perceptrons(widths, 1, stream.child("weights"))
    gradient = Perceptrons.of(np.zeros_like(networks.values), widths, 1)
    moments = np.zeros((2, networks.values.size), np.float32)
    columns = labels + np.cumsum([0, *sizes[:-1]])
    batches = endless_batches(len(inputs), stream.child("batches"))
    for update, rows in zip(range(updates), batches, strict=False):
        outputs = networks.activations(inputs[rows])
        slope: Singles = np.exp(np.hstack(_normalised(outputs[-1][0], sizes)))
        slope[np.arange(len(rows))[:, None], columns[rows]] -= 1
        backpropagate(gradient, networks, outputs, slope[None] * np.float32(1 / len(rows)))
        adam(networks.values, gradient.values, moments, update, RATE * (1 - update / updates))
        if (update + 1) % max(updates // VALIDATIONS, 1) == 0:
            yield networks


def _predicted(
    networks: Perceptrons, inputs: Singles, labels: NDArray[np.int64], sizes: tuple[int, ...]
) -> Probed:
    """How well the networks predict labels (n, k)."""
    found = Probed(*np.zeros((2, len(sizes))))
    for j, part in enumerate(_normalised(networks.activations(inputs)[-1][0], sizes)):
        # One row is spread over all values, as in `guess`: no probability is 0.
        shares = (np.exp(part.astype(np.float64)) * len(labels) + 1 / sizes[j]) / (len(labels) + 1)
        found.accuracy[j] = (part.argmax(axis=1) == labels[:, j]).mean()
        found.cross_entropy[j] = -np.log(shares[np.arange(len(labels)), labels[:, j]]).mean()
    return found


def _normalised(logits: Singles, sizes: tuple[int, ...]) -> list[Singles]:
    """Of each factor, the logarithms of the probabilities of its values, (n, size)."""
    parts = np.split(logits, np.cumsum(sizes)[:-1], axis=1)
    shifted = [part - part.max(axis=1, keepdims=True) for part in parts]
    return [part - np.log(np.exp(part).sum(axis=1, keepdims=True)) for part in shifted]
