"""Whole stacks of convolutions on CUDA, forward and backward, by the kernels of this folder.

A stack is differentiated as one function, because neighbouring layers share work: the gradient of a layer's
input is masked by the ReLU before it, and summed for the bias before it, in the same kernel. So the gradient
of a layer is that of its sum before the ReLU. The decoder's stack ends in the likelihood, whose gradient is
computed together with its value.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from unweave.nn.kernels import activation, edge
from unweave.nn.kernels import convolution as inner
from unweave.nn.kernels.branches import Branch
from unweave.nn.kernels.dispatch import EDGE_CHANNELS


def down(x: Tensor, paddings: Sequence[int], precision: str, parameters: Sequence[Tensor]) -> Tensor:
    """Images (P, B, C, H, W), bytes or numbers, through convolutions: (P, B, features, h, w)."""
    y: Tensor = _Down.apply(last_channels(x), tuple(paddings), precision, *parameters)
    return y.permute(0, 1, 4, 2, 3)


def up(x: Tensor, paddings: Sequence[int], precision: str, parameters: Sequence[Tensor]) -> Tensor:
    """Features (P, B, C, h, w) through transposed convolutions: (P, B, channels, H, W)."""
    y: Tensor = _Up.apply(last_channels(x), tuple(paddings), precision, *parameters)
    return y.permute(0, 1, 4, 2, 3)


def up_to_likelihood(
    x: Tensor,
    images: Tensor,
    likelihood: str,
    paddings: Sequence[int],
    precision: str,
    parameters: Sequence[Tensor],
) -> Tensor:
    """(P,): the `reconstruction_loss` of the logits and the images, bytes or numbers."""
    arguments = last_channels(x), last_channels(images), likelihood, tuple(paddings), precision
    loss: Tensor = _UpToLikelihood.apply(*arguments, *parameters)
    return loss


class _Down(torch.autograd.Function):
    """Convolutions, each with a ReLU."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, paddings: tuple[int, ...], precision: str, *parameters: Tensor
    ) -> Tensor:
        weights, biases = _ready(parameters, precision)
        how = products(precision)
        inputs = [edge.padded(x) if is_edge(weights[0]) else x.to(weights[0].dtype)]
        for w, bias, padding in zip(weights, biases, paddings, strict=True):
            if is_edge(w):
                y = edge.first(inputs[-1], w, bias, how)
            else:
                y, _ = inner.correlate(inputs[-1], w, padding, how, bias=bias)
            inputs.append(y)
        ctx.save_for_backward(*inputs, *weights)
        ctx.paddings, ctx.how, ctx.dtype = paddings, how, x.dtype
        return inputs[-1]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        count, how = len(ctx.paddings), ctx.how
        inputs, weights = ctx.saved_tensors[: count + 1], ctx.saved_tensors[count + 1 :]
        g, sums = _before_relu(inputs[-1], gradients[0])
        to_x, parameter_gradients, branch = None, list[Tensor | None](), Branch(g)
        for number in reversed(range(count)):
            x, w, padding = inputs[number], weights[number], ctx.paddings[number]
            to_w = branch.run(partial(_down_weights, x, g, w, padding, how), x, g)
            parameter_gradients = [to_w, sums, *parameter_gradients]
            if number > 0:
                g, sums = inner.spread(g, w, padding, how, mask=x)
            elif ctx.needs_input_grad[0]:
                to_x = (edge.last(g, w, None, how) if is_edge(w) else inner.spread(g, w, padding, how)[0]).to(
                    ctx.dtype
                )
        branch.join()
        return to_x, None, None, *parameter_gradients


class _Up(torch.autograd.Function):
    """Transposed convolutions, each with a ReLU except for the last, whose results are logits."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, paddings: tuple[int, ...], precision: str, *parameters: Tensor
    ) -> Tensor:
        weights, biases = _ready(parameters, precision)
        ctx.how, ctx.paddings, ctx.dtype = products(precision), paddings, x.dtype
        inputs = _up_to_last(x, weights, biases, paddings, ctx.how)
        ctx.save_for_backward(*inputs, *weights)
        return edge.last(inputs[-1], weights[-1], biases[-1], ctx.how)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        count = len(ctx.paddings)
        inputs, weights = ctx.saved_tensors[:count], ctx.saved_tensors[count:]
        g = edge.padded(gradients[0].to(inputs[0].dtype)).contiguous()
        to_bias = gradients[0].sum(dim=(1, 2, 3))
        to_x, parameter_gradients = _up_backward(g, to_bias, None, inputs, weights, ctx.paddings, ctx.how)
        return to_x.to(ctx.dtype), None, None, *parameter_gradients


class _UpToLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        images: Tensor,
        likelihood: str,
        paddings: tuple[int, ...],
        precision: str,
        *parameters: Tensor,
    ) -> Tensor:
        weights, biases = _ready(parameters, precision)
        ctx.how, ctx.paddings, ctx.dtype = products(precision), paddings, x.dtype
        inputs = _up_to_last(x, weights, biases, paddings, ctx.how)
        loss, slopes, to_bias = edge.last_likelihood(
            inputs[-1], weights[-1], biases[-1], images, likelihood, ctx.how
        )
        ctx.save_for_backward(*inputs, *weights, slopes, to_bias)
        return loss / x.shape[1]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        count = len(ctx.paddings)
        inputs, weights = ctx.saved_tensors[:count], ctx.saved_tensors[count:-2]
        slopes, to_bias = ctx.saved_tensors[-2:]
        scale = (gradients[0] / slopes.shape[1]).contiguous()
        to_bias = to_bias * scale[:, None]
        to_x, parameter_gradients = _up_backward(
            slopes, to_bias, scale, inputs, weights, ctx.paddings, ctx.how
        )
        return to_x.to(ctx.dtype), None, None, None, None, *parameter_gradients


def _up_to_last(
    x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], paddings: Sequence[int], how: str
) -> list[Tensor]:
    """The input of each layer."""
    inputs = [x.to(weights[0].dtype)]
    for w, bias, padding in zip(weights[:-1], biases[:-1], paddings[:-1], strict=True):
        inputs.append(inner.spread(inputs[-1], w, padding, how, bias=bias)[0])
    return inputs


def _up_backward(
    g: Tensor,
    to_bias: Tensor,
    scale: Tensor | None,
    inputs: Sequence[Tensor],
    weights: Sequence[Tensor],
    paddings: Sequence[int],
    how: str,
) -> tuple[Tensor, list[Tensor | None]]:
    """Gradients of the input and of all parameters; g is that of the logits before the factor scale (P,)."""
    sums: Tensor | None
    g, to_w, sums = edge.last_gradient(g, inputs[-1], weights[-1], scale, len(inputs) > 1, how)
    parameter_gradients: list[Tensor | None] = [as_parameter(to_w), to_bias]
    branch = Branch(g)
    for number in reversed(range(len(inputs) - 1)):
        x, w, padding = inputs[number], weights[number], paddings[number]
        to_w = branch.run(partial(inner.weight_gradient, g, x, w.shape[1], padding, how), g, x)
        parameter_gradients = [as_parameter(to_w), sums, *parameter_gradients]
        # The input of the stack has no ReLU to mask.
        g, sums = inner.correlate(g, w, padding, how, mask=x if number > 0 else None)
    branch.join()
    return g, parameter_gradients


def _before_relu(y: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor | None]:
    """The gradient of the sum before a ReLU, whose result y is (P, B, H, W, F), and the bias's, (P, F)."""
    rows = (len(y), -1, y.shape[-1])
    g, sums = activation.gradients(y.view(rows), gradient.contiguous().view(rows), 0.0, to_bias=True)
    return g.view(y.shape), sums


def _down_weights(x: Tensor, g: Tensor, w: Tensor, padding: int, how: str) -> Tensor:
    """The gradient of the weights of a convolution."""
    if is_edge(w):
        return as_parameter(edge.first_gradient(x, g, w.shape[3], how))
    return as_parameter(inner.weight_gradient(x, g, w.shape[1], padding, how))


def is_edge(w: Tensor) -> bool:
    """Whether the layer, of weights (P, k, k, big, small), is the one next to the image."""
    return w.shape[3] <= EDGE_CHANNELS


def products(precision: str) -> str:
    """How float32 numbers are multiplied: in three products of TF32, as exact as float32, or in one.

    bfloat16 numbers are always multiplied exactly.
    """
    return "tf32" if precision == "tf32" else "tf32x3"


def _ready(parameters: Sequence[Tensor], precision: str) -> tuple[list[Tensor], list[Tensor]]:
    """Weights as the kernels expect them, and biases."""
    biases = [bias.contiguous() for bias in parameters[1::2]]
    taps_first = [weight.permute(0, 3, 4, 2, 1) for weight in parameters[0::2]]
    if precision != "bf16" or not all(weight.is_contiguous() for weight in taps_first):
        return [ready_weight(weight, precision) for weight in parameters[0::2]], biases
    weights = [torch.empty_like(weight, dtype=torch.bfloat16) for weight in taps_first]
    torch._foreach_copy_(weights, taps_first)  # one launch for all layers
    return weights, biases


def ready_weight(weight: Tensor, precision: str) -> Tensor:
    """A layer's weights as the kernels expect them: (P, k, k, big, small)."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    return weight.permute(0, 3, 4, 2, 1).to(dtype).contiguous()


def as_parameter(to_w: Tensor) -> Tensor:
    """A gradient in the layout of `ready_weight`, in the layout of the parameter."""
    return to_w.contiguous().permute(0, 4, 3, 1, 2)


def last_channels(images: Tensor) -> Tensor:
    """(P, B, C, H, W) as the kernels expect them: (P, B, H, W, C)."""
    return images.permute(0, 1, 3, 4, 2).contiguous()
