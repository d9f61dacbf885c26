"""One convolution on CUDA, with or without bias and activation, forward and backward.

It is for networks whose layers do not follow each other directly, such as a generator with batch
normalisation between them, or whose activation is not ReLU; stacks.py fuses more where layers do.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unweave.nn.kernels import activation as activations
from unweave.nn.kernels import convolution as inner
from unweave.nn.kernels import edge
from unweave.nn.kernels.stacks import as_parameter, is_edge, last_channels, products, ready_weight


def convolve(
    x: Tensor,
    weight: Tensor,
    padding: int,
    precision: str,
    bias: Tensor | None = None,
    slope: float = 1.0,
) -> Tensor:
    """Images (P, B, C, H, W) with weights (P, features, C, k, k): (P, B, features, H/2, W/2).

    A bias (P, features) is added, and then numbers below 0 are multiplied by the slope: 0 is ReLU.
    """
    y: Tensor = _Convolution.apply(last_channels(x), weight, bias, padding, precision, slope)
    return y.permute(0, 1, 4, 2, 3)


def convolve_transposed(
    x: Tensor,
    weight: Tensor,
    padding: int,
    precision: str,
    bias: Tensor | None = None,
    slope: float = 1.0,
) -> Tensor:
    """Features (P, B, features, h, w), weights (P, features, C, k, k), bias (P, C): (P, B, C, 2 h, 2 w)."""
    y: Tensor = _Transposed.apply(last_channels(x), weight, bias, padding, precision, slope)
    return y.permute(0, 1, 4, 2, 3)


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, padding: int, precision: str, slope: float
    ) -> Tensor:
        w, how = ready_weight(weight, precision), products(precision)
        ctx.padding, ctx.how, ctx.dtype = padding, how, x.dtype
        if is_edge(w):
            layer_input = edge.padded(x)
            y = edge.first(layer_input, w, None, how)
        else:
            layer_input = x.to(w.dtype)
            y = inner.correlate(layer_input, w, padding, how)[0]
        return _activated(ctx, layer_input, w, y, bias, slope)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        layer_input, w, g, to_bias = _before_activation(ctx, gradients[0])
        to_x = to_w = None
        if ctx.needs_input_grad[1]:
            if is_edge(w):
                to_w = edge.first_gradient(layer_input, g, w.shape[3], ctx.how)
            else:
                to_w = inner.weight_gradient(layer_input, g, w.shape[1], ctx.padding, ctx.how)
            to_w = as_parameter(to_w)
        if ctx.needs_input_grad[0]:
            to_x = (
                edge.last(g, w, None, ctx.how) if is_edge(w) else inner.spread(g, w, ctx.padding, ctx.how)[0]
            )
            to_x = to_x.to(ctx.dtype)
        return to_x, to_w, to_bias, None, None, None


class _Transposed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, padding: int, precision: str, slope: float
    ) -> Tensor:
        w, how = ready_weight(weight, precision), products(precision)
        ctx.padding, ctx.how, ctx.dtype = padding, how, x.dtype
        layer_input = x.to(w.dtype)
        y = (
            edge.last(layer_input, w, None, how)
            if is_edge(w)
            else inner.spread(layer_input, w, padding, how)[0]
        )
        return _activated(ctx, layer_input, w, y, bias, slope)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        layer_input, w, g, to_bias = _before_activation(ctx, gradients[0])
        if is_edge(w):
            to_x, to_w, _ = edge.last_gradient(
                edge.padded(g).contiguous(), layer_input, w, None, False, ctx.how
            )
        else:
            to_x = inner.correlate(g, w, ctx.padding, ctx.how)[0]
            to_w = inner.weight_gradient(g, layer_input, w.shape[1], ctx.padding, ctx.how)
        return to_x.to(ctx.dtype), as_parameter(to_w), to_bias, None, None, None


def _activated(
    ctx: Any, layer_input: Tensor, w: Tensor, y: Tensor, bias: Tensor | None, slope: float
) -> Tensor:
    """A product y (P, B, H, W, features), activated in place; saves what the backward pass needs."""
    if bias is None:
        ctx.save_for_backward(layer_input, w)
        return y
    y, ctx.slope = y.contiguous(), slope
    activations.activate(y.flatten(1, 3), bias, slope)
    ctx.save_for_backward(layer_input, w, y)
    return y


def _before_activation(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The saved tensors, the gradient of the product, and that of the bias."""
    layer_input, w, *y = ctx.saved_tensors
    g = gradient.to(w.dtype).contiguous()
    if not y:
        return layer_input, w, g, None
    flat, to_bias = activations.gradients(
        y[0].flatten(1, 3), g.flatten(1, 3), ctx.slope, ctx.needs_input_grad[2]
    )
    return layer_input, w, flat.view_as(g), to_bias
