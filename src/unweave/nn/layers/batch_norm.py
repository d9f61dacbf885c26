"""Batch normalisation [1] of a population, without a state: statistics are always those of a batch.

[1] Ioffe, Szegedy: Batch normalization, ICML 2015.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unweave.nn.kernels.dispatch import has_triton

EPSILON = 1e-5


class BatchNorm(nn.Module):
    """Each feature with mean `shift` and deviation `scale` over a batch; (P, B, F) or (P, B, F, H, W)."""

    def __init__(self, runs: int, features: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(runs, features))
        self.shift = nn.Parameter(torch.zeros(runs, features))

    def forward(self, x: Tensor, over: Tensor | None = None) -> Tensor:
        """Normalise x by mean and variance over its own batch, or over another one."""
        if over is None:
            arguments = x, self.scale, self.shift
            y: Tensor = _ByKernels.apply(*arguments) if is_on_kernels(x) else _ByTorch.apply(*arguments)
            return y
        x = x.to(self.scale.dtype)
        mean, inverse = _mean_and_inverse_deviation(over.to(self.scale.dtype))
        slope = inverse * _broadcastable(self.scale, x)
        return torch.addcmul(_broadcastable(self.shift, x) - mean * slope, x, slope)


def is_on_kernels(x: Tensor) -> bool:
    """Whether the Triton kernels can be used."""
    return x.is_cuda and has_triton() and x.dtype != torch.float64


class _ByKernels(torch.autograd.Function):
    """Over a whole batch, on CUDA."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        from unweave.nn.kernels.norm import normalise

        flat = _rows(x)
        y, moments = normalise(flat, scale, shift, EPSILON)
        ctx.save_for_backward(flat, moments, scale)
        return _like(y, x)

    @staticmethod
    def backward(ctx: Any, *to_y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        from unweave.nn.kernels.norm import gradients

        flat, moments, scale = ctx.saved_tensors
        to_x, to_scale, to_shift = gradients(flat, moments, _rows(to_y[0]), scale, EPSILON)
        return _like(to_x, to_y[0]), to_scale, to_shift


class _ByTorch(torch.autograd.Function):
    """Over a whole batch, on any device; autograd would need twice as many operations."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        numbers = x.to(scale.dtype)
        mean, inverse = _mean_and_inverse_deviation(numbers)
        slope = inverse * _broadcastable(scale, x)
        ctx.save_for_backward(x, mean, inverse, slope)
        return torch.addcmul(_broadcastable(shift, x) - mean * slope, numbers, slope)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """To x: slope (g - mean of g - x' mean of (g x')), where x' is x normalised."""
        x, mean, inverse, slope = ctx.saved_tensors
        g, numbers = gradients[0], x.to(slope.dtype)
        axes, count = _all_but_runs_and_features(x), x[0].numel() // x.shape[2]
        to_shift = g.sum(axes, keepdim=True)
        to_scale = (g * numbers).sum(axes, keepdim=True).addcmul_(mean, to_shift, value=-1).mul_(inverse)
        of_x = slope * inverse * to_scale / -count
        rest = torch.addcmul(of_x * mean, slope, to_shift, value=1 / count).neg_()
        to_x = torch.addcmul(torch.addcmul(rest, numbers, of_x), g, slope)
        return to_x.to(x.dtype), to_scale.flatten(1), to_shift.flatten(1)


def _rows(x: Tensor) -> Tensor:
    """(P, B, F) as it is, (P, B, F, H, W) as (P, B H W, F), with features contiguous in memory."""
    from unweave.nn.kernels.stacks import last_channels

    return x.contiguous() if x.dim() == 3 else last_channels(x).flatten(1, 3)


def _like(rows: Tensor, x: Tensor) -> Tensor:
    """The inverse of `_rows`: rows in the shape of x."""
    if x.dim() == 3:
        return rows
    images, _, height, width = x.shape[1:]
    pixels: Tensor = rows.unflatten(1, (images, height, width))
    return pixels.permute(0, 1, 4, 2, 3)


def _mean_and_inverse_deviation(x: Tensor) -> tuple[Tensor, Tensor]:
    variance, mean = torch.var_mean(x, _all_but_runs_and_features(x), correction=0, keepdim=True)
    return mean, torch.rsqrt(variance + EPSILON)


def _all_but_runs_and_features(x: Tensor) -> tuple[int, ...]:
    return (1, *range(3, x.dim()))


def _broadcastable(parameter: Tensor, x: Tensor) -> Tensor:
    """(P, F) as (P, 1, F, ...), for x (P, B, F, ...)."""
    return parameter.view(len(x), 1, -1, *[1] * (x.dim() - 3))
