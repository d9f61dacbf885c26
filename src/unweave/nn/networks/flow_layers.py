"""Invertible layers of Glow [1], for populations: images are (P, B, C, H, W).

Each layer maps x to (y, log_determinant), and `inverse` maps y back to x. The log-determinant of an image is
log |det dy/dx|, (P, B).

[1] Kingma, Dhariwal: Glow: generative flow with invertible 1x1 convolutions, NeurIPS 2018.
[2] Its authors' program: github.com/openai/glow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.nn.layers import SameConv2d
from unweave.nn.layers.precision import precision_context
from unweave.streams import Stream

SCALE_FACTOR = 3.0  # logscale_factor of [2]: a logarithm is this times its parameter, and so learns faster
DEVIATION_MARGIN = 1e-6  # added to deviations that are divided by
SCALE_OFFSET = 2.0  # scales of a coupling start at sigmoid(2) = 0.88
SMALLEST_SCALE = 1e-6  # of a coupling, so that its inverse stays finite
LARGEST_VALUE = 1e4  # inverses are clipped here; inputs of images stay far below


class ActNorm(nn.Module):
    """(x + shift) exp(3 log_scale), one shift and one scale for each channel; [1], section 3.1."""

    def __init__(self, runs: int, channels: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(runs, channels))
        self.log_scale = nn.Parameter(torch.zeros(runs, channels))
        self.is_fitting = False  # whether the next input sets shift and scale

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The normalised images."""
        if self.is_fitting:
            mean, log_scale = _standardising(x)
            self.shift.copy_(-mean)
            self.log_scale.copy_(log_scale)
        log_scale = SCALE_FACTOR * self.log_scale
        y = (x + _for_images(self.shift)) * _for_images(log_scale.exp())
        return y, _of_all_pixels(log_scale.sum(-1), x)

    def inverse(self, y: Tensor) -> Tensor:
        """The images before normalisation."""
        return y * _for_images((-SCALE_FACTOR * self.log_scale).exp()) - _for_images(self.shift)


class InvertibleConvolution(nn.Module):
    """A 1 x 1 convolution with as many outputs as inputs; W = P L U, [1], section 3.2 and equation 10.

    L is lower triangular with a diagonal of ones, U upper triangular with the diagonal exp(log_diagonal), so
    the log-determinant is sum log_diagonal for each pixel. W starts as a random orthogonal matrix, whose
    columns have the signs that make the diagonal of U positive.

    Differs from [1]: the permutation P is the same in all runs. It is no parameter, and networks for the
    weights of any run have it.
    """

    order: Tensor  # of the rows of L U; a permutation of the channels

    def __init__(self, streams: Sequence[Stream], name: str, channels: int) -> None:
        super().__init__()
        lower, upper, log_diagonal = zip(
            *[_orthogonal_factors(stream.child("weights", name), channels) for stream in streams], strict=True
        )
        self.lower = nn.Parameter(torch.stack(lower))
        self.upper = nn.Parameter(torch.stack(upper))
        self.log_diagonal = nn.Parameter(torch.stack(log_diagonal))
        order = Stream.of(0).child("permutation", name).permutations(1, channels)[0]
        self.register_buffer("order", torch.from_numpy(np.asarray(order, np.int64)), persistent=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The product of W and the channels of each pixel."""
        return _each_pixel(x, self.weight()), _of_all_pixels(self.log_diagonal.sum(-1), x)

    def inverse(self, y: Tensor) -> Tensor:
        """The product of the inverse of W and the channels of each pixel."""
        lower, upper = self._factors()
        product = _exact_product(
            inverse_of_lower(upper.transpose(1, 2)).transpose(1, 2), inverse_of_lower(lower)
        )
        return _each_pixel(y, product.index_select(2, self.order))

    def weight(self) -> Tensor:
        """W, (P, C, C)."""
        return _exact_product(*self._factors()).index_select(1, self.order)

    def _factors(self) -> tuple[Tensor, Tensor]:
        lower = self.lower.tril(-1) + torch.eye(self.lower.shape[-1], device=self.lower.device)
        return lower, self.upper.triu(1) + torch.diag_embed(self.log_diagonal.exp())


class ScaledConvolution(nn.Module):
    """(conv(x) + bias) exp(3 log_scale): a convolution that keeps the size, with a scale for each output.

    It is the `conv2d` of [2], whose outputs are normalised for the first batch, or, if it starts at zero, the
    `conv2d_zeros`. Kernels larger than 1 get a further input of ones, which shows them where an image ends.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        name: str,
        inputs: int,
        outputs: int,
        kernel: int = 3,
        starts_at_zero: bool = False,
    ) -> None:
        super().__init__()
        self.shows_edges = kernel > 1
        self.convolution = SameConv2d(streams, name, inputs + self.shows_edges, outputs, kernel)
        self.log_scale = nn.Parameter(torch.zeros(len(streams), outputs))
        self.starts_at_zero = starts_at_zero
        self.is_fitting = False  # whether the next input sets bias and scale
        if starts_at_zero:
            nn.init.zeros_(self.convolution.weight)

    def forward(self, x: Tensor) -> Tensor:
        """(P, B, inputs, H, W) -> (P, B, outputs, H, W)."""
        y: Tensor = self.convolution(_with_ones(x) if self.shows_edges else x)
        if self.is_fitting:
            mean, log_scale = _standardising(y)
            self.convolution.bias.sub_(mean)
            self.log_scale.copy_(log_scale)
            y = y - _for_images(mean)
        return y * _for_images((SCALE_FACTOR * self.log_scale).exp())


class Coupling(nn.Module):
    """An affine coupling: the first half of the channels shifts and scales the second; [1], section 3.3."""

    def __init__(self, streams: Sequence[Stream], name: str, channels: int, width: int) -> None:
        super().__init__()
        self.kept, changed = channels // 2, channels - channels // 2
        self.first = ScaledConvolution(streams, f"{name}.conv1", self.kept, width)
        self.second = ScaledConvolution(streams, f"{name}.conv2", width, width, kernel=1)
        self.last = ScaledConvolution(streams, f"{name}.conv3", width, 2 * changed, starts_at_zero=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The second half plus a shift, times a scale."""
        kept, changed = x[:, :, : self.kept], x[:, :, self.kept :]
        shift, scale = self._shift_and_scale(kept)
        y = torch.cat([kept, (changed + shift) * scale], dim=2)
        return y, scale.log().sum((-3, -2, -1))

    def inverse(self, y: Tensor) -> Tensor:
        """The second half without scale and shift."""
        kept, changed = y[:, :, : self.kept], y[:, :, self.kept :]
        shift, scale = self._shift_and_scale(kept)
        return torch.cat([kept, changed / scale - shift], dim=2)

    def _shift_and_scale(self, kept: Tensor) -> tuple[Tensor, Tensor]:
        shift, logits = self.last(F.relu(self.second(F.relu(self.first(kept))))).chunk(2, dim=2)
        return shift, torch.sigmoid(logits + SCALE_OFFSET).clamp(min=SMALLEST_SCALE)


class FlowStep(nn.Module):
    """Normalisation, 1 x 1 convolution and coupling; [1], figure 2a."""

    def __init__(self, streams: Sequence[Stream], name: str, channels: int, width: int) -> None:
        super().__init__()
        self.norm = ActNorm(len(streams), channels)
        self.mixing = InvertibleConvolution(streams, f"{name}.mixing", channels)
        self.coupling = Coupling(streams, f"{name}.coupling", channels, width)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """All three, one after another."""
        x, of_norm = self.norm(x)
        x, of_mixing = self.mixing(x)
        x, of_coupling = self.coupling(x)
        return x, of_norm + of_mixing + of_coupling

    def inverse(self, y: Tensor) -> Tensor:
        """The inverses of all three in the opposite order."""
        x = self.norm.inverse(self.mixing.inverse(self.coupling.inverse(y)))
        return x.clamp(-LARGEST_VALUE, LARGEST_VALUE)


class Prior(nn.Module):
    """Channels x, normal given other channels: (x - mean) / deviation is standard normal.

    Mean and log-deviation are a convolution of the other channels that starts at zero. Without other channels
    it is that of the edges, as with `learntop` of [2].
    """

    def __init__(self, streams: Sequence[Stream], name: str, given: int, channels: int) -> None:
        super().__init__()
        self.convolution = ScaledConvolution(streams, name, given, 2 * channels, starts_at_zero=True)

    def forward(self, x: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
        """The standardised channels."""
        mean, log_deviation = self._mean_and_log_deviation(given)
        return (x - mean) * (-log_deviation).exp(), -log_deviation.sum((-3, -2, -1))

    def inverse(self, y: Tensor, given: Tensor) -> Tensor:
        """The channels before they were standardised."""
        mean, log_deviation = self._mean_and_log_deviation(given)
        return (mean + y * log_deviation.exp()).clamp(-LARGEST_VALUE, LARGEST_VALUE)

    def _mean_and_log_deviation(self, given: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_deviation = self.convolution(given).chunk(2, dim=2)
        return mean, log_deviation


def squeezed(x: Tensor) -> Tensor:
    """(P, B, C, H, W) -> (P, B, 4 C, H/2, W/2): each block of 2 x 2 pixels becomes one pixel."""
    blocks: Tensor = x.unflatten(-1, (-1, 2)).unflatten(-3, (-1, 2))
    return blocks.permute(0, 1, 2, 4, 6, 3, 5).flatten(2, 4)


def unsqueezed(x: Tensor) -> Tensor:
    """(P, B, C, H, W) -> (P, B, C/4, 2 H, 2 W): the inverse of `squeezed`."""
    blocks: Tensor = x.unflatten(2, (-1, 2, 2)).permute(0, 1, 2, 5, 3, 6, 4)
    return blocks.flatten(5, 6).flatten(3, 4)


def inverse_of_lower(matrix: Tensor) -> Tensor:
    """The inverse of lower triangular matrices (P, C, C), by products only, which ONNX has.

    X is the inverse of the blocks of some size along the diagonal. The inverse of blocks [[A, 0], [B, D]] of
    twice that size has -D^-1 B A^-1 in their lower left part, which is that part of -X B X.
    """
    size = matrix.shape[-1]
    inverse = torch.diag_embed(matrix.diagonal(dim1=1, dim2=2).reciprocal())
    place, block = torch.arange(size, device=matrix.device), 1
    while block < size:
        row, column = place[:, None] // block, place // block
        lower_left = (row % 2 == 1) & (column == row - 1)
        inverse = inverse - _exact_product(_exact_product(inverse, matrix * lower_left), inverse)
        block *= 2
    return inverse


def _orthogonal_factors(stream: Stream, channels: int) -> tuple[Tensor, Tensor, Tensor]:
    """L, U and the logarithm of the diagonal of U, for L U a random orthogonal matrix."""
    orthogonal, _ = np.linalg.qr(stream.normal(channels, channels))
    _, lower, upper = torch.linalg.lu(torch.from_numpy(orthogonal).double())
    upper = upper * upper.diagonal().sign()
    return lower.float(), upper.float(), upper.diagonal().log().float()


def _standardising(x: Tensor) -> tuple[Tensor, Tensor]:
    """(P, C) each: the mean of each channel, and the `log_scale` that divides by its deviation."""
    variance, mean = torch.var_mean(x, dim=(1, 3, 4), correction=0)
    return mean, -torch.log(variance.sqrt() + DEVIATION_MARGIN) / SCALE_FACTOR


def _for_images(channels: Tensor) -> Tensor:
    """(P, C) as (P, 1, C, 1, 1)."""
    return channels[:, None, :, None, None]


def _of_all_pixels(of_a_pixel: Tensor, x: Tensor) -> Tensor:
    """(P, B): the log-determinant of images x, from that of one pixel, (P,)."""
    return (of_a_pixel * (x.shape[-2] * x.shape[-1])).unsqueeze(1).expand(*x.shape[:2])


def _with_ones(x: Tensor) -> Tensor:
    return torch.cat([x, x.new_ones(*x.shape[:2], 1, *x.shape[3:])], dim=2)


def _each_pixel(x: Tensor, weight: Tensor) -> Tensor:
    """Multiply the channels of each pixel of (P, B, C, H, W) by (P, C, C)."""
    pixels = x.permute(0, 1, 3, 4, 2)
    product = _exact_product(pixels.flatten(1, 3), weight.transpose(1, 2))
    images: Tensor = product.unflatten(1, pixels.shape[1:4])
    return images.permute(0, 1, 4, 2, 3)


def _exact_product(a: Tensor, b: Tensor) -> Tensor:
    """a b in float32 on all devices.

    Inputs that are shortened to TF32 lose some of the noise between two grey levels. Images would then appear
    likelier than they are.
    """
    if not a.is_cuda:
        return torch.bmm(a, b)
    with precision_context("float32"):
        return torch.bmm(a, b)
