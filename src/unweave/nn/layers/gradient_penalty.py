"""Convolutions of many models for losses that contain gradients, such as penalties on their norm.

A convolution is linear in its input and in its weights, so all its derivatives, of any order, are of three
kinds: the convolution, its gradient for the input and its gradient for the weights. Each is one call here.
The second derivatives of torch's own convolution are convolutions with kernels as large as the images, one
run after another, which takes many times as long on a GPU.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.grad import conv2d_weight


class Form(NamedTuple):
    """How a convolution goes over its input, and the sizes that its result does not tell."""

    stride: int
    padding: int
    groups: int
    input_size: torch.Size
    weight_size: torch.Size

    def rest(self, output_size: torch.Size) -> tuple[int, int]:
        """Rows and columns at the end of the input that a stride is too large to reach."""
        reached = [self.stride * (side - 1) - 2 * self.padding for side in output_size[-2:]]
        rows, columns = (
            side - start - kernel
            for side, start, kernel in zip(self.input_size[-2:], reached, self.weight_size[-2:], strict=True)
        )
        return rows, columns


def convolve(x: Tensor, weight: Tensor, stride: int = 1, padding: int = 0) -> Tensor:
    """Convolve (P, B, I, H, W) with (P, O, I, k, k), without a bias."""
    grouped, kernels = _grouped(x), weight.flatten(0, 1)
    form = Form(stride, padding, len(weight), grouped.shape, kernels.shape)
    return _separate(_convolution(grouped, kernels, form), len(weight))


def convolve_transposed(x: Tensor, weight: Tensor, stride: int) -> Tensor:
    """Convolve, transposed, (P, B, I, H, W) with (P, I, O, k, k): sides become stride (H - 1) + k."""
    grouped, kernels = _grouped(x), weight.flatten(0, 1)
    sides = [stride * (side - 1) + weight.shape[-1] for side in x.shape[-2:]]
    size = torch.Size([x.shape[1], len(weight) * weight.shape[2], *sides])
    form = Form(stride, 0, len(weight), size, kernels.shape)
    return _separate(_input_gradient(grouped, kernels, form), len(weight))


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, form: Form) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.form = form
        return F.conv2d(x, weight, None, form.stride, form.padding, groups=form.groups)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        (x, weight), [gradient] = ctx.saved_tensors, gradients
        of_x, of_weight, _ = ctx.needs_input_grad
        return (
            _input_gradient(gradient, weight, ctx.form) if of_x else None,
            _weight_gradient(x, gradient, ctx.form) if of_weight else None,
            None,
        )


class _InputGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, weight: Tensor, form: Form) -> Tensor:
        ctx.save_for_backward(y, weight)
        ctx.form = form
        return F.conv_transpose2d(
            y, weight, None, form.stride, form.padding, form.rest(y.shape), groups=form.groups
        )

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        (y, weight), [gradient] = ctx.saved_tensors, gradients
        of_y, of_weight, _ = ctx.needs_input_grad
        return (
            _convolution(gradient, weight, ctx.form) if of_y else None,
            _weight_gradient(gradient, y, ctx.form) if of_weight else None,
            None,
        )


class _WeightGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, form: Form) -> Tensor:
        ctx.save_for_backward(x, y)
        ctx.form = form
        weight: Tensor = conv2d_weight(x, form.weight_size, y, form.stride, form.padding, groups=form.groups)
        return weight

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        (x, y), [gradient] = ctx.saved_tensors, gradients
        of_x, of_y, _ = ctx.needs_input_grad
        return (
            _input_gradient(y, gradient, ctx.form) if of_x else None,
            _convolution(x, gradient, ctx.form) if of_y else None,
            None,
        )


def _convolution(x: Tensor, weight: Tensor, form: Form) -> Tensor:
    y: Tensor = _Convolution.apply(x, weight, form)
    return y


def _input_gradient(y: Tensor, weight: Tensor, form: Form) -> Tensor:
    x: Tensor = _InputGradient.apply(y, weight, form)
    return x


def _weight_gradient(x: Tensor, y: Tensor, form: Form) -> Tensor:
    weight: Tensor = _WeightGradient.apply(x, y, form)
    return weight


def _grouped(x: Tensor) -> Tensor:
    """(P, B, C, H, W) -> (B, P C, H, W)."""
    return x.transpose(0, 1).flatten(1, 2)


def _separate(y: Tensor, runs: int) -> Tensor:
    """(B, P C, H, W) -> (P, B, C, H, W)."""
    runs_apart: Tensor = y.unflatten(1, (runs, -1))
    return runs_apart.transpose(0, 1)
