"""A layer of many models at once: the common part of all kinds."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.nn.layers.precision import Precision
from unweave.streams import Stream

Activation: TypeAlias = Literal["none", "relu", "leaky_relu", "tanh"]

ROUNDED_COPY = "rounded_copy"  # an attribute of a parameter

LEAKY_SLOPE = 0.2  # TensorFlow's default, which the published discriminators had; torch's is 0.01


class Layer(nn.Module, ABC):
    """A layer in each of P runs: `weight` (P, ...) and `bias` (P, outputs)."""

    def __init__(self, weight: Tensor, outputs: int, activation: Activation) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.zeros(len(weight), outputs))
        self.activation: Activation = activation
        self.precision: Precision = "float32"

    @abstractmethod
    def compute(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Apply the layer with the weights of all runs or of some."""

    def forward(self, x: Tensor) -> Tensor:
        """(P, B, ...) -> (P, B, ...), all runs."""
        return self.compute(x, self.weight, self.bias)


def glorot_uniform(streams: Sequence[Stream], name: str, shape: tuple[int, ...], fans: int) -> Tensor:
    """(P, *shape) float32 numbers, uniform in (-a, a) with a = sqrt(6 / (fan in + fan out)).

    As TensorFlow counts them, the fans of a convolution are its channels times the size of the kernel.

    Glorot, Bengio: Understanding the difficulty of training deep feedforward neural networks, AISTATS 2010.
    """
    if not streams:
        raise UnweaveError("A population needs at least one run; got no streams of initial weights.")
    bound = math.sqrt(6 / fans)
    weights = np.empty((len(streams), *shape), np.float32)
    for run, stream in zip(weights, streams, strict=True):
        uniform = stream.child("weights", name).uniform(shape[0], math.prod(shape[1:]))
        run[...] = ((2 * uniform - 1) * bound).reshape(shape)
    return torch.from_numpy(weights)


def as_numbers(images: Tensor) -> Tensor:
    """Bytes of 0 to 255 as numbers from 0 to 1; numbers stay as they are."""
    return images.float() / 255 if images.dtype == torch.uint8 else images


def at_least_float32(x: Tensor) -> Tensor:
    """bfloat16 as float32, others as they are: losses and densities are not computed in bfloat16."""
    # Not torch.promote_types: torch 2.6 records it as a part of an exported network, and cannot load that.
    return x if x.dtype == torch.float64 else x.to(torch.float32)


def activated(y: Tensor, activation: Activation) -> Tensor:
    """activation(y), in place: y is the result of a product, whose gradient does not need it."""
    if activation == "relu":
        return F.relu_(y)
    if activation == "leaky_relu":
        return F.leaky_relu_(y, LEAKY_SLOPE)
    return torch.tanh_(y) if activation == "tanh" else y


def rounded_copy(weight: Tensor) -> Tensor | None:
    """The copy of a parameter in bfloat16 that its optimiser keeps up to date, if there is one."""
    copy: Tensor | None = getattr(weight, ROUNDED_COPY, None)
    return copy


def rounded(precision: Precision, x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Input and parameters in the type that a layer of that precision multiplies."""
    dtype = torch.bfloat16 if precision == "bf16" else weight.dtype
    return x.to(dtype), weight.to(dtype), bias.to(dtype)
