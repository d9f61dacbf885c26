"""Spectral normalisation [1]: weights divided by their largest singular value.

[1] tracks that value from update to update: one step of power iteration per update, from a stored vector.
This module stores nothing. The Gram matrix of the weights is squared eight times, which is 256 steps of power
iteration from all directions at once, and cheap for its at most 128 rows. So a network is a function of its
parameters alone: a run can be resumed, and encodes as it was trained, without a state besides its weights.
The value is below that of a singular value decomposition by at most 0.6 %. The matrices of all layers of a
network are squared in one batch: on a GPU the launches take longer than the products.

[1] Miyato, Kataoka, Koyama, Yoshida: Spectral normalization for generative adversarial networks, ICLR 2018.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from unweave.nn.layers import Layer, as_numbers, at_least_float32

SQUARINGS = 8
SMALLEST = 1e-30  # the least divisor: weights may all be zero


def spectral_norms(weights: Sequence[Tensor]) -> list[Tensor]:
    """(P,) for each layer: the largest singular value of each run's weights (P, ...).

    They are a matrix of the first axis and all others. The value is sqrt(<M, W W^T>) with M = (W W^T)^256 /
    trace: the mean of the squared singular values, in which all but the largest have lost their weight. M is
    treated as a constant in the gradient, which then is that of the largest.
    """
    grams = [_gram(weight) for weight in weights]
    largest = max(gram.shape[-1] for gram in grams)
    widened = torch.stack([pad(gram, (0, largest - gram.shape[-1]) * 2) for gram in grams])
    squares = (_high_power(widened.detach()) * widened).sum((-2, -1))
    return list(squares.clamp_min(SMALLEST).sqrt())


def normalised(weights: Sequence[Tensor]) -> list[Tensor]:
    """The weights of each layer and run, (P, ...), divided by their largest singular value."""
    norms = spectral_norms(weights)
    return [w / norm.view(-1, *[1] * (w.dim() - 1)) for w, norm in zip(weights, norms, strict=True)]


def normalised_layers(*stacks: nn.ModuleList) -> dict[nn.Module, Tensor]:
    """The normalised weights of all layers of some stacks."""
    layers = [cast(Layer, layer) for stack in stacks for layer in stack]
    return dict(zip(layers, normalised([layer.weight for layer in layers]), strict=True))


def through_with(weights: Mapping[nn.Module, Tensor], stack: nn.ModuleList, x: Tensor) -> Tensor:
    """(P, B, ...) through the layers of a stack, with these weights and the biases of the layers."""
    x = as_numbers(x)
    for layer in cast(list[Layer], list(stack)):
        x = layer.compute(x, weights[layer], layer.bias)
    return x


def _gram(weight: Tensor) -> Tensor:
    matrix = at_least_float32(weight.flatten(2))
    if matrix.shape[1] > matrix.shape[2]:
        matrix = matrix.mT
    return matrix @ matrix.mT


def _high_power(grams: Tensor) -> Tensor:
    """(..., n, n) to a power of 2^SQUARINGS, over its trace.

    A matrix of trace 1 can be squared twice before its numbers are too small: the trace is 1/n^3 at least.
    """
    power = _with_trace_one(grams)
    for _ in range(SQUARINGS // 2):
        square = power @ power
        power = _with_trace_one(square @ square)
    return power


def _with_trace_one(matrix: Tensor) -> Tensor:
    trace = matrix.diagonal(dim1=-2, dim2=-1).sum(-1)
    return matrix / trace.clamp_min(SMALLEST)[..., None, None]
