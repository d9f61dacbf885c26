"""Dense layers of many models at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unweave.nn.kernels.dispatch import has_triton
from unweave.nn.layers.layer import (
    LEAKY_SLOPE,
    Activation,
    Layer,
    activated,
    at_least_float32,
    glorot_uniform,
    rounded,
)
from unweave.nn.layers.precision import Precision
from unweave.streams import Stream

SLOPES: dict[str, float] = {"none": 1.0, "relu": 0.0, "leaky_relu": LEAKY_SLOPE}  # below 0


class Linear(Layer):
    """x W + b, (P, B, inputs) -> (P, B, outputs); weight (P, inputs, outputs).

    The result of a layer that is `last` is at least float32.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        name: str,
        inputs: int,
        outputs: int,
        activation: Activation = "none",
        last: bool = False,
    ) -> None:
        super().__init__(
            glorot_uniform(streams, name, (inputs, outputs), inputs + outputs), outputs, activation
        )
        self.last = last

    def compute(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Apply `linear`."""
        return linear(x, weight, bias, self.activation, self.precision, self.last)


def heads(
    streams: Sequence[Stream], names: Sequence[str], inputs: int, outputs: int, last: bool = False
) -> Linear:
    """Several dense layers of `outputs` features each with the same inputs, as one layer.

    Each has the same initial weights as a separate layer; the result of the first one comes first.
    """
    combined = Linear(streams, names[0], inputs, outputs, last=last)
    others = [Linear(streams, name, inputs, outputs) for name in names[1:]]
    for parameter in ("weight", "bias"):
        values = [getattr(layer, parameter).detach() for layer in (combined, *others)]
        setattr(combined, parameter, nn.Parameter(torch.cat(values, dim=-1)))
    return combined


def linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    activation: Activation,
    precision: Precision,
    last: bool = False,
) -> Tensor:
    """activation(x W + b) for (P, B, I), (P, I, O), (P, O); at least float32 if it is `last`."""
    if is_on_kernels(x, activation):
        from unweave.nn.kernels.dense import dense

        dtype = torch.bfloat16 if precision == "bf16" else weight.dtype
        result = torch.promote_types(dtype, torch.float32) if last else dtype
        return dense(x, weight.to(dtype), bias.to(dtype), slope=SLOPES[activation], dtype=result)
    x, weight, bias = rounded(precision, x, weight, bias)
    y = activated(torch.baddbmm(bias.unsqueeze(1), x, weight), activation)
    return at_least_float32(y) if last else y


def is_on_kernels(x: Tensor, activation: Activation) -> bool:
    """Whether the Triton kernels can be used."""
    return x.is_cuda and has_triton() and activation in SLOPES and x.numel() > 0
