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

from unweave.nn.kernels import activation, edge, image_ends, image_ends_check
from unweave.nn.kernels import convolution as inner
from unweave.nn.kernels.branches import Branch
from unweave.nn.kernels.dispatch import EDGE_CHANNELS


def down(
    x: Tensor,
    paddings: Sequence[int],
    precision: str,
    parameters: Sequence[Tensor],
    copies: Sequence[Tensor | None],
) -> Tensor:
    """Images (P, B, C, H, W), bytes or numbers, through convolutions: (P, B, features, h, w).

    Parameters are weights and biases in turn. In bf16 there may be copies of the weights that are rounded.
    """
    y: Tensor = _Down.apply(last_channels(x), tuple(paddings), precision, tuple(copies), *parameters)
    return y.permute(0, 1, 4, 2, 3)


def up(
    x: Tensor,
    paddings: Sequence[int],
    precision: str,
    parameters: Sequence[Tensor],
    copies: Sequence[Tensor | None],
) -> Tensor:
    """Features (P, B, C, h, w) through transposed convolutions: (P, B, channels, H, W)."""
    y: Tensor = _Up.apply(last_channels(x), tuple(paddings), precision, tuple(copies), *parameters)
    return y.permute(0, 1, 4, 2, 3)


def up_to_likelihood(
    x: Tensor,
    images: Tensor,
    likelihood: str,
    paddings: Sequence[int],
    precision: str,
    parameters: Sequence[Tensor],
    copies: Sequence[Tensor | None],
) -> Tensor:
    """(P,): the `reconstruction_loss` of the logits and the images, bytes or numbers."""
    arguments = last_channels(x), last_channels(images), likelihood, tuple(paddings), precision, tuple(copies)
    loss: Tensor = _UpToLikelihood.apply(*arguments, *parameters)
    return loss


class _Down(torch.autograd.Function):
    """Convolutions, each with a ReLU."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        paddings: tuple[int, ...],
        precision: str,
        copies: tuple[Tensor | None, ...],
        *parameters: Tensor,
    ) -> Tensor:
        weights, biases = _ready(parameters, precision, copies)
        how, layers = products(precision), list(zip(weights, biases, paddings, strict=True))
        ctx.fused = (
            not ctx.needs_input_grad[0]
            and len(weights) > 1
            and image_ends_check.are_used(x, weights[0], weights[1])
        )
        if ctx.fused:
            # The first layer's result is never stored; this place of the list stays unused.
            inputs = [x, x, image_ends.start(x, weights[0], biases[0], weights[1], biases[1])]
        else:
            inputs = [edge.padded(x) if is_edge(weights[0]) else x.to(weights[0].dtype)]
        for w, bias, padding in layers[len(inputs) - 1 :]:
            if is_edge(w):
                y = edge.first(inputs[-1], w, bias, how)
            else:
                y, _ = inner.correlate(inputs[-1], w, padding, how, bias=bias)
            inputs.append(y)
        ctx.save_for_backward(*inputs, *weights, biases[0])
        ctx.paddings, ctx.how, ctx.dtype = paddings, how, x.dtype
        return inputs[-1]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        count, how = len(ctx.paddings), ctx.how
        inputs, weights = ctx.saved_tensors[: count + 1], ctx.saved_tensors[count + 1 : -1]
        g, sums = _before_relu(inputs[-1], gradients[0])
        to_x, parameter_gradients = None, list[Tensor | None]()
        with Branch(g) as branch:
            for number in reversed(range(count)):
                x, w, padding = inputs[number], weights[number], ctx.paddings[number]
                if ctx.fused and number == 1:
                    start = image_ends.start_gradient(x, g, weights[0], ctx.saved_tensors[-1], w)
                    to_w, to_first, to_first_bias = start
                    first_two = as_parameter(to_first), to_first_bias, as_parameter(to_w), sums
                    parameter_gradients = [*first_two, *parameter_gradients]
                    break
                to_w = branch.run(partial(_down_weights, x, g, w, padding, how), x, g)
                parameter_gradients = [to_w, sums, *parameter_gradients]
                if number > 0:
                    g, sums = inner.spread(g, w, padding, how, mask=x)
                elif ctx.needs_input_grad[0]:
                    to_x = edge.last(g, w, None, how) if is_edge(w) else inner.spread(g, w, padding, how)[0]
                    to_x = to_x.to(ctx.dtype)
        return to_x, None, None, None, *parameter_gradients


class _Up(torch.autograd.Function):
    """Transposed convolutions, each with a ReLU except for the last, whose results are logits."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        paddings: tuple[int, ...],
        precision: str,
        copies: tuple[Tensor | None, ...],
        *parameters: Tensor,
    ) -> Tensor:
        weights, biases = _ready(parameters, precision, copies)
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
        return to_x.to(ctx.dtype), None, None, None, *parameter_gradients


class _UpToLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        images: Tensor,
        likelihood: str,
        paddings: tuple[int, ...],
        precision: str,
        copies: tuple[Tensor | None, ...],
        *parameters: Tensor,
    ) -> Tensor:
        weights, biases = _ready(parameters, precision, copies)
        ctx.how, ctx.paddings, ctx.dtype = products(precision), paddings, x.dtype
        # The fused kernel computes gradients, too, which the caller may not need.
        ctx.fused = (
            any(ctx.needs_input_grad)
            and len(weights) > 2
            and image_ends_check.are_used(images, weights[-1], weights[-2], likelihood)
        )
        if ctx.fused:
            inputs = _up_to_last(x, weights[:-1], biases[:-1], paddings[:-1], ctx.how)
            last_two = weights[-2], biases[-2], weights[-1], biases[-1]
            end = image_ends.end(inputs[-1], *last_two, images, likelihood)
            loss, saved = end.loss, (end.to_features, end.parts)
        else:
            inputs = _up_to_last(x, weights, biases, paddings, ctx.how)
            loss, slopes, to_bias = edge.last_likelihood(
                inputs[-1], weights[-1], biases[-1], images, likelihood, ctx.how
            )
            saved = slopes, to_bias
        ctx.count = len(inputs)
        ctx.save_for_backward(*inputs, *weights, *saved)
        return loss / x.shape[1]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        count = ctx.count
        inputs, weights = ctx.saved_tensors[:count], ctx.saved_tensors[count:-2]
        first, second = ctx.saved_tensors[-2:]
        scale = (gradients[0] / first.shape[1]).contiguous()
        if ctx.fused:
            end = image_ends.end_gradients(second, scale, weights[-1].shape[3])
            last: list[Tensor | None] = [
                as_parameter(end.inner),
                end.bias,
                as_parameter(end.edge),
                end.edge_bias,
            ]
            to_x, others = _up_inner_backward(
                first, end.sums, scale, inputs, weights[:-2], ctx.paddings[:-2], ctx.how
            )
            return to_x.to(ctx.dtype), None, None, None, None, None, *others, *last
        to_x, parameter_gradients = _up_backward(
            first, second * scale[:, None], scale, inputs, weights, ctx.paddings, ctx.how
        )
        return to_x.to(ctx.dtype), None, None, None, None, None, *parameter_gradients


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
    g, to_w, sums = edge.last_gradient(g, inputs[-1], weights[-1], scale, len(inputs) > 1, how)
    to_x, others = _up_inner_backward(g, sums, None, inputs, weights[:-1], paddings[:-1], how)
    return to_x, [*others, as_parameter(to_w), to_bias]


def _up_inner_backward(
    g: Tensor,
    sums: Tensor | None,
    scale: Tensor | None,
    inputs: Sequence[Tensor],
    weights: Sequence[Tensor],
    paddings: Sequence[int],
    how: str,
) -> tuple[Tensor, list[Tensor | None]]:
    """Gradients of the input and of the parameters of these layers.

    g is the gradient of the last layer's sums before the factor scale (P,), and `sums` that of its bias.
    """
    parameter_gradients = list[Tensor | None]()
    with Branch(g) as branch:
        for number in reversed(range(len(weights))):
            x, w, padding = inputs[number], weights[number], paddings[number]
            to_w = branch.run(partial(inner.weight_gradient, g, x, w.shape[1], padding, how, scale), g, x)
            parameter_gradients = [as_parameter(to_w), sums, *parameter_gradients]
            # The input of the stack has no ReLU to mask.
            g, sums = inner.correlate(g, w, padding, how, mask=x if number > 0 else None, scale=scale)
            scale = None  # applied
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


def _ready(
    parameters: Sequence[Tensor], precision: str, copies: Sequence[Tensor | None]
) -> tuple[list[Tensor], list[Tensor]]:
    """Weights as the kernels expect them, and biases."""
    weights, biases = parameters[0::2], [bias.contiguous() for bias in parameters[1::2]]
    rounded = [
        weight if copy is None or precision != "bf16" else copy
        for weight, copy in zip(weights, copies, strict=True)
    ]
    return [ready_weight(weight, precision) for weight in rounded], biases


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
