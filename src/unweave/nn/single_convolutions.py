"""One convolution on CUDA, forward and backward, by the kernels of this folder: the product alone.

Bias and activation are left to torch. It is for networks whose layers do not follow each other directly, such
as a generator with batch normalisation between them; stacks.py fuses what does.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unweave.nn import convolution_kernels as inner
from unweave.nn import edge_kernels as edge
from unweave.nn.stacks import as_parameter, is_edge, last_channels, products, ready_weight


def convolve(x: Tensor, weight: Tensor, padding: int, precision: str) -> Tensor:
    """Images (P, B, C, H, W) with weights (P, features, C, k, k): (P, B, features, H/2, W/2)."""
    y: Tensor = _Convolution.apply(last_channels(x), weight, padding, precision)
    return y.permute(0, 1, 4, 2, 3)


def convolve_transposed(x: Tensor, weight: Tensor, padding: int, precision: str) -> Tensor:
    """Features (P, B, features, h, w) with weights (P, features, C, k, k): (P, B, C, 2 h, 2 w)."""
    y: Tensor = _Transposed.apply(last_channels(x), weight, padding, precision)
    return y.permute(0, 1, 4, 2, 3)


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, padding: int, precision: str) -> Tensor:
        w, how = ready_weight(weight, precision), products(precision)
        ctx.padding, ctx.how, ctx.dtype = padding, how, x.dtype
        if is_edge(w):
            seen = edge.padded(x)
            y = edge.first(seen, w, None, how)
        else:
            seen = x.to(w.dtype)
            y = inner.correlate(seen, w, padding, how)[0]
        ctx.save_for_backward(seen, w)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        seen, w = ctx.saved_tensors
        g = gradients[0].to(w.dtype).contiguous()
        to_x = to_w = None
        if ctx.needs_input_grad[1]:
            if is_edge(w):
                to_w = edge.first_gradient(seen, g, w.shape[3], ctx.how)
            else:
                to_w = inner.weight_gradient(seen, g, w.shape[1], ctx.padding, ctx.how)
            to_w = as_parameter(to_w)
        if ctx.needs_input_grad[0]:
            to_x = (
                edge.last(g, w, None, ctx.how) if is_edge(w) else inner.spread(g, w, ctx.padding, ctx.how)[0]
            )
            to_x = to_x.to(ctx.dtype)
        return to_x, to_w, None, None


class _Transposed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, padding: int, precision: str) -> Tensor:
        w, how = ready_weight(weight, precision), products(precision)
        ctx.padding, ctx.how, ctx.dtype = padding, how, x.dtype
        seen = x.to(w.dtype)
        ctx.save_for_backward(seen, w)
        return edge.last(seen, w, None, how) if is_edge(w) else inner.spread(seen, w, padding, how)[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        seen, w = ctx.saved_tensors
        g = gradients[0].to(w.dtype).contiguous()
        if is_edge(w):
            to_x, to_w, _ = edge.last_gradient(edge.padded(g).contiguous(), seen, w, None, False, ctx.how)
        else:
            to_x = inner.correlate(g, w, ctx.padding, ctx.how)[0]
            to_w = inner.weight_gradient(g, seen, w.shape[1], ctx.padding, ctx.how)
        return to_x.to(ctx.dtype), as_parameter(to_w), None, None
