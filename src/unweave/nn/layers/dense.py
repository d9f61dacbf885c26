"""Dense layers of many models at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unweave.nn.layers.layer import Activation, Layer, activated, glorot_uniform, rounded
from unweave.nn.layers.precision import Precision
from unweave.streams import Stream


class Linear(Layer):
    """x W + b, (P, B, inputs) -> (P, B, outputs); weight (P, inputs, outputs)."""

    def __init__(
        self,
        streams: Sequence[Stream],
        name: str,
        inputs: int,
        outputs: int,
        activation: Activation = "none",
    ) -> None:
        super().__init__(
            glorot_uniform(streams, name, (inputs, outputs), inputs + outputs), outputs, activation
        )

    def compute(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Apply `linear`."""
        return linear(x, weight, bias, self.activation, self.precision)


def heads(streams: Sequence[Stream], names: Sequence[str], inputs: int, outputs: int) -> Linear:
    """Several dense layers of `outputs` features each with the same inputs, as one layer.

    Each has the same initial weights as a separate layer; the result of the first one comes first.
    """
    combined = Linear(streams, names[0], inputs, outputs)
    others = [Linear(streams, name, inputs, outputs) for name in names[1:]]
    for parameter in ("weight", "bias"):
        values = [getattr(layer, parameter).detach() for layer in (combined, *others)]
        setattr(combined, parameter, nn.Parameter(torch.cat(values, dim=-1)))
    return combined


def linear(x: Tensor, weight: Tensor, bias: Tensor, activation: Activation, precision: Precision) -> Tensor:
    """activation(x W + b) for (P, B, I), (P, I, O), (P, O)."""
    x, weight, bias = rounded(precision, x, weight, bias)
    return activated(torch.baddbmm(bias.unsqueeze(1), x, weight), activation)
