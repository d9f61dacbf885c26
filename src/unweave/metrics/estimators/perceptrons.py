"""Multi-layer perceptrons for regression, one for each target, trained side by side by Adam."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.streams import Stream

Singles: TypeAlias = NDArray[np.float32]

BATCH = 128
# The learning rate is divided by 10 after these shares of the updates.
DROPS = (0.4, 0.8)
# How often the error on the validation data is measured.
VALIDATIONS = 10
# Adam: decay of the two moments, and what is added to the root of the second.
DECAYS = (0.9, 0.999)
SMALL = 1e-8


class Points(NamedTuple):
    """Codes (n, d) and targets (n, k)."""

    codes: Singles
    targets: Singles


class Training(NamedTuple):
    """Number of updates, and the learning rate of the first of them."""

    updates: int
    rate: float

    def rate_of(self, update: int) -> float:
        """Return the learning rate of an update, counted from 0."""
        return self.rate * 0.1 ** sum(update >= int(self.updates * drop) for drop in DROPS)

    def validates_after(self, update: int) -> bool:
        """Return whether the error on the validation data is measured after an update, counted from 0."""
        return (update + 1) * VALIDATIONS // self.updates > update * VALIDATIONS // self.updates


class Layer(NamedTuple):
    """One layer of all networks."""

    weights: Singles  # (k, inputs, outputs)
    biases: Singles  # (k, 1, outputs)


class Perceptrons(NamedTuple):
    """Networks of one shape with one output, one network for each of k targets.

    `values` holds all weights and biases; those of the layers are parts of it.
    """

    values: Singles
    layers: tuple[Layer, ...]

    @classmethod
    def of(cls, values: Singles, widths: tuple[int, ...], k: int) -> Perceptrons:
        """Networks whose layers are parts of a vector."""
        layers, begin = [], 0
        for inputs, outputs in pairwise(widths):
            middle = begin + k * inputs * outputs
            end = middle + k * outputs
            weights = values[begin:middle].reshape(k, inputs, outputs)
            layers.append(Layer(weights, values[middle:end].reshape(k, 1, outputs)))
            begin = end
        return cls(values, tuple(layers))

    def predict(self, codes: Singles) -> Singles:
        """Predictions (n, k) of codes (n, d)."""
        return np.asarray(self.activations(codes)[-1][:, :, 0].T)

    def activations(self, codes: Singles) -> list[Singles]:
        """The codes and the outputs (k, n, width) of each layer; all but the last layer are rectified."""
        outputs: list[Singles] = [codes]
        for number, layer in enumerate(self.layers):
            sums = np.matmul(outputs[-1], layer.weights)
            sums += layer.biases
            if number < len(self.layers) - 1:
                np.maximum(sums, 0, out=sums)
            outputs.append(sums)
        return outputs


def parameters_of(widths: tuple[int, ...]) -> int:
    """Number of weights and biases of a network with layers of these widths, from the codes to the output.

    >>> parameters_of((10, 1)), parameters_of((10, 14, 14, 1))
    (11, 379)
    """
    return sum((inputs + 1) * outputs for inputs, outputs in pairwise(widths))


def fit_perceptrons(
    train: Points, validation: Points, widths: tuple[int, ...], training: Training, stream: Stream
) -> Perceptrons:
    """Minimise the mean squared error of each target by Adam on batches of 128 rows.

    The learning rate is divided by 10 after 40% and after 80% of the updates. Of ten states, one after each
    tenth of the updates, the one with the least error on the validation data is returned.
    """
    k = train.targets.shape[1]
    networks = initial_perceptrons(widths, k, stream.child("weights"))
    gradient = Perceptrons.of(np.zeros_like(networks.values), widths, k)
    moments = np.zeros((2, networks.values.size), np.float32)
    best, least = networks.values.copy(), np.inf
    batches = endless_batches(len(train.codes), stream.child("batches"))
    for update, rows in zip(range(training.updates), batches, strict=False):
        outputs = networks.activations(train.codes[rows])
        errors = outputs[-1] - train.targets[rows].T[:, :, None]
        backpropagate(gradient, networks, outputs, errors * np.float32(2 / len(rows)))
        adam(networks.values, gradient.values, moments, update, training.rate_of(update))
        if training.validates_after(update):
            error = float(((networks.predict(validation.codes) - validation.targets) ** 2).mean())
            if error < least:
                best, least = networks.values.copy(), error
    return Perceptrons.of(best, widths, k)


def initial_perceptrons(widths: tuple[int, ...], k: int, stream: Stream) -> Perceptrons:
    """Weights and biases of a layer, uniform between -1 / sqrt(inputs) and 1 / sqrt(inputs)."""
    values = stream.uniform(k, parameters_of(widths)).ravel().astype(np.float32) * 2 - 1
    networks = Perceptrons.of(values, widths, k)
    for layer in networks.layers:
        bound = np.float32(max(layer.weights.shape[1], 1) ** -0.5)
        layer.weights[:] *= bound
        layer.biases[:] *= bound
    return networks


def endless_batches(n: int, stream: Stream) -> Iterator[NDArray[np.int64]]:
    """Rows of batches without end; each epoch has an order of its own and may end with a smaller batch."""
    for epoch in count():
        order = stream.child(epoch).permutations(1, n)[0]
        yield from (order[begin : begin + BATCH] for begin in range(0, n, BATCH))


def backpropagate(
    gradient: Perceptrons, networks: Perceptrons, outputs: list[Singles], slope: Singles
) -> None:
    """Write the gradient of a loss whose derivative by the last outputs, (k, n, width), is `slope`.

    `outputs` are the activations of the batch.
    """
    for number in range(len(networks.layers) - 1, -1, -1):
        inputs, slot = outputs[number], gradient.layers[number]
        np.matmul(inputs.swapaxes(-1, -2), slope, out=slot.weights)
        np.sum(slope, axis=1, keepdims=True, out=slot.biases)
        if number:
            slope = np.matmul(slope, networks.layers[number].weights.swapaxes(1, 2))
            slope *= inputs > 0


def adam(values: Singles, gradient: Singles, moments: Singles, update: int, rate: float) -> None:
    """Change the values by one step of Adam, in place."""
    first, second = moments
    first *= DECAYS[0]
    first += (1 - DECAYS[0]) * gradient
    second *= DECAYS[1]
    second += (1 - DECAYS[1]) * gradient**2
    step = np.sqrt(second)
    step /= (1 - DECAYS[1] ** (update + 1)) ** 0.5
    step += SMALL
    np.divide(first, step, out=step)
    step *= rate / (1 - DECAYS[0] ** (update + 1))
    values -= step
