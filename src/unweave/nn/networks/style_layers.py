"""Layers of StyleGAN2 [1]: equalised learning rates, modulated convolutions, filters, minibatch deviation.

Weights start as standard normal numbers and are multiplied by a constant when they are used [2], so that all
layers learn equally fast with Adam. All operations have gradients of gradients.

[1] Karras, Laine, Aittala, Hellsten, Lehtinen, Aila: Analyzing and improving the image quality of StyleGAN,
CVPR 2020.
[2] Karras, Aila, Laine, Lehtinen: Progressive growing of GANs for improved quality, stability, and variation,
ICLR 2018.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.nn.layers import LEAKY_SLOPE
from unweave.nn.layers.gradient_penalty import convolve, convolve_transposed
from unweave.streams import Stream

TAPS = (1 / 8, 3 / 8, 3 / 8, 1 / 8)  # the low-pass filter of all changes of resolution
SMALL = 1e-8  # added before roots
GAIN = math.sqrt(2)  # keeps the variance of what passes a leaky rectifier


class EqualLinear(nn.Module):
    """(P, B, inputs) -> (P, B, outputs), with weights times `rate` / sqrt(inputs) and biases times `rate`."""

    def __init__(
        self,
        streams: Sequence[Stream],
        name: str,
        inputs: int,
        outputs: int,
        rate: float = 1.0,
        bias: float = 0.0,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(_normal(streams, name, (inputs, outputs)) / rate)
        self.bias = nn.Parameter(torch.full((len(streams), outputs), bias))
        self.gain, self.rate = rate / math.sqrt(inputs), rate

    def forward(self, x: Tensor) -> Tensor:
        """x W + b, without an activation."""
        return torch.baddbmm(self.bias.unsqueeze(1) * self.rate, x, self.weight * self.gain)


class EqualConv(nn.Module):
    """A convolution that keeps the size, (P, B, inputs, H, W) -> (P, B, outputs, H, W); then a rectifier.

    With `side`, the height of its input, images are filtered and halved. Without a bias there is no
    rectifier.
    """

    matrix: Tensor

    def __init__(
        self,
        streams: Sequence[Stream],
        name: str,
        inputs: int,
        outputs: int,
        kernel: int = 3,
        side: int | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(_normal(streams, name, (outputs, inputs, kernel, kernel)))
        self.bias = nn.Parameter(torch.zeros(len(streams), outputs)) if bias else None
        self.gain, self.kernel, self.halves = 1 / math.sqrt(inputs * kernel**2), kernel, side is not None
        if side is not None:
            margin, step = (2, 1) if kernel > 1 else (1, 2)
            matrix = filter_matrix(side, margin, margin, down=step)
            self.register_buffer("matrix", matrix, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Filter if the size is halved, convolve, add the bias, activate."""
        weight = self.weight * self.gain
        if not self.halves:
            y = convolve(x, weight, padding=self.kernel // 2)
        elif self.kernel > 1:
            y = convolve(filtered(x, self.matrix), weight, stride=2)
        else:
            y = convolve(filtered(x, self.matrix), weight)
        return y if self.bias is None else rectified(y + self.bias[:, None, :, None, None])


class ModulatedConv(nn.Module):
    """A convolution whose weights are scaled by a style, a linear function of w, for each image [1].

    The style scales input channels. Demodulated, the weights of each output channel then have norm 1. This is
    the same as scaling the images before and after the convolution, which is what is computed. With `side`,
    the height of its input, images are doubled and filtered.
    """

    matrix: Tensor

    def __init__(
        self,
        streams: Sequence[Stream],
        name: str,
        w_size: int,
        inputs: int,
        outputs: int,
        kernel: int = 3,
        side: int | None = None,
        demodulate: bool = True,
    ) -> None:
        super().__init__()
        self.affine = EqualLinear(streams, f"{name}.affine", w_size, inputs, bias=1.0)
        self.weight = nn.Parameter(_normal(streams, name, (outputs, inputs, kernel, kernel)))
        self.gain = 1.0 if demodulate else 1 / math.sqrt(inputs * kernel**2)
        self.kernel, self.demodulate, self.doubles = kernel, demodulate, side is not None
        if side is not None:
            matrix = filter_matrix(2 * side + kernel - 2, 1, 1, gain=2.0)
            self.register_buffer("matrix", matrix, persistent=False)

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        """(P, B, inputs, H, W) and w (P, B, D) -> (P, B, outputs, H, W)."""
        style = self.affine(w) * self.gain
        scaled = x * style[..., None, None]
        if self.doubles:
            y = filtered(convolve_transposed(scaled, self.weight.transpose(1, 2), stride=2), self.matrix)
        else:
            y = convolve(scaled, self.weight, padding=self.kernel // 2)
        if not self.demodulate:
            return y
        squares = (style * style) @ self.weight.square().sum((-2, -1)).transpose(1, 2)
        return y * torch.rsqrt(squares + SMALL)[..., None, None]


def rectified(x: Tensor) -> Tensor:
    """A leaky rectifier that keeps the variance."""
    return F.leaky_relu(x, LEAKY_SLOPE) * GAIN


def normalised(z: Tensor) -> Tensor:
    """z (..., D) with a mean square of 1."""
    return z * torch.rsqrt(z.square().mean(-1, keepdim=True) + SMALL)


def filtered(x: Tensor, matrix: Tensor) -> Tensor:
    """Images (..., H, W) with both axes multiplied by a matrix (H', H)."""
    across = x @ matrix.T
    return (across.transpose(-1, -2) @ matrix.T).transpose(-1, -2)


def filter_matrix(
    size: int, before: int, after: int, up: int = 1, down: int = 1, gain: float = 1.0
) -> Tensor:
    """The matrix that filters a row of so many pixels by `TAPS` times the gain; outside are zeros.

    Zeros are put between pixels if `up` is 2, and around the row, `before` and `after` it. Of the filtered
    row, each `down`-th pixel is kept.
    """
    padded = torch.zeros(before + up * size + after, size)
    padded[before + up * torch.arange(size), torch.arange(size)] = gain
    length = len(padded) - len(TAPS) + 1
    shifted = [tap * padded[place : place + length] for place, tap in enumerate(TAPS)]
    return torch.stack(shifted).sum(0)[::down]


def doubling_matrix(size: int) -> Tensor:
    """The matrix that doubles a row by interpolation."""
    return filter_matrix(size, 2, 1, up=2, gain=2.0)


def with_deviation(x: Tensor, group: int) -> Tensor:
    """Features (P, B, C, H, W) with a further channel: how much images of a group differ, one number for all.

    Groups are `group` images next to each other. The number is the standard deviation of a feature at a place
    over the group, averaged over features and places.
    """
    grouped = x.unflatten(1, (-1, group))
    variance = (grouped - grouped.mean(2, keepdim=True)).square().mean(2)
    deviation = (variance + SMALL).sqrt().mean((-3, -2, -1))
    of_images = deviation.repeat_interleave(group, dim=1)[..., None, None, None]
    return torch.cat([x, of_images.expand(*x.shape[:2], 1, *x.shape[3:])], dim=2)


def _normal(streams: Sequence[Stream], name: str, shape: tuple[int, ...]) -> Tensor:
    """(P, *shape) standard normal numbers from the stream of each run."""
    drawn = [stream.child("weights", name).normal(shape[0], math.prod(shape[1:])) for stream in streams]
    return torch.from_numpy(np.stack(drawn)).float().view(len(streams), *shape)
