"""Convolutions of many models at once, and how each is computed.

On CUDA with Triton, stacks of convolutions of the usual shapes use kernels/stacks.py, and convolutions with
other layers between them kernels/single_convolutions.py. Everything else, and all other devices, use the
convolutions of torch.

On a CPU the runs go through the convolutions one after another. Forward and backward pass of the study's
convolutions, batch 64, in milliseconds per run on 2 cores (AMD EPYC, torch 2.13):

    P                                                  1     4     8
    loop of separate models, default layout           73    72    64
    this module                                       53    58    53
    one grouped convolution, default layout           80   100   105
    one grouped convolution, channels-last            70    80    76
    images to columns and a matrix product        >= 280

Dense layers are one batched product: 0.77 ms, and 0.98 ms in a loop (10-256-1024, P = 8).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.nn.distributions.likelihood import likelihood_named
from unweave.nn.kernels.dispatch import (
    EDGE_CHANNELS,
    are_powers_of_two,
    has_kernel,
    has_triton,
    is_on_kernels,
)
from unweave.nn.layers.layer import (
    LEAKY_SLOPE,
    Activation,
    Layer,
    activated,
    as_numbers,
    glorot_uniform,
    rounded,
    rounded_copy,
)
from unweave.nn.layers.precision import Precision
from unweave.streams import Stream

STRIDE = 2
# Products of numbers in the convolution of one run, from which a GPU is faster with one run after another.
# On an H200, three runs of 1.2 billion took 149 us instead of 239 us as one grouped convolution, three of 75
# million 248 us instead of 117 us (forward and backward, bf16).
LARGE = 400_000_000


class Conv2d(Layer):
    """A convolution of stride 2, (P, B, inputs, H, W) -> (P, B, outputs, H/2, W/2).

    weight is (P, outputs, inputs, kernel, kernel). A kernel of 4 with padding 1 or of 2 with padding 0
    halves an image exactly.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        name: str,
        inputs: int,
        outputs: int,
        kernel: int = 4,
        padding: int = 1,
        activation: Activation = "none",
    ) -> None:
        shape, fans = (outputs, inputs, kernel, kernel), kernel**2 * (inputs + outputs)
        super().__init__(glorot_uniform(streams, name, shape, fans), outputs, activation)
        self.padding = padding

    def compute(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Apply `conv2d`."""
        return conv2d(x, weight, bias, self.padding, self.activation, self.precision)


class ConvTranspose2d(Layer):
    """A transposed convolution of stride 2, (P, B, inputs, H, W) -> (P, B, outputs, 2H, 2W).

    weight is (P, inputs, outputs, kernel, kernel). A kernel of 4 with padding 1 or of 2 with padding 0
    doubles an image exactly.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        name: str,
        inputs: int,
        outputs: int,
        kernel: int = 4,
        padding: int = 1,
        activation: Activation = "none",
    ) -> None:
        shape, fans = (inputs, outputs, kernel, kernel), kernel**2 * (inputs + outputs)
        super().__init__(glorot_uniform(streams, name, shape, fans), outputs, activation)
        self.padding = padding

    def compute(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Apply `conv_transpose2d`."""
        return conv_transpose2d(x, weight, bias, self.padding, self.activation, self.precision)


class SameConv2d(Layer):
    """A convolution of stride 1 that keeps the size, (P, B, inputs, H, W) -> (P, B, outputs, H, W).

    weight is (P, outputs, inputs, kernel, kernel), with an odd kernel. There is no Triton kernel for it;
    torch computes it on all devices. On a GPU, a kernel of 1 is a matrix product.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        name: str,
        inputs: int,
        outputs: int,
        kernel: int = 3,
        activation: Activation = "none",
    ) -> None:
        shape, fans = (outputs, inputs, kernel, kernel), kernel**2 * (inputs + outputs)
        super().__init__(glorot_uniform(streams, name, shape, fans), outputs, activation)
        self.padding = kernel // 2

    def compute(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Convolve, add the bias, activate."""
        x, weight, bias = rounded(self.precision, as_numbers(x), weight, bias)
        if x.is_cuda and not self.padding:
            return activated(_mixed_channels(x, weight, bias), self.activation)
        return _by_torch(F.conv2d, x, weight, bias, 1, self.padding, self.activation)


def conv2d(
    x: Tensor, weight: Tensor, bias: Tensor, padding: int, activation: Activation, precision: Precision
) -> Tensor:
    """Convolve (P, B, I, H, W) with (P, O, I, k, k), stride 2; add (P, O); activate."""
    return _convolved(F.conv2d, x, weight, bias, padding, activation, precision)


def conv_transpose2d(
    x: Tensor, weight: Tensor, bias: Tensor, padding: int, activation: Activation, precision: Precision
) -> Tensor:
    """Convolve, transposed, (P, B, I, H, W) with (P, I, O, k, k), stride 2; add (P, O); activate."""
    return _convolved(F.conv_transpose2d, x, weight, bias, padding, activation, precision)


def through(convolutions: nn.ModuleList, x: Tensor) -> Tensor:
    """Images (P, B, C, H, W) through one convolution after another."""
    layers = cast(list[Layer], list(convolutions))
    if have_kernels(layers, x):
        from unweave.nn.kernels import stacks

        go = stacks.up if isinstance(layers[0], ConvTranspose2d) else stacks.down
        return go(x, *_for_kernels(layers))
    x = as_numbers(x)
    if not layers or len(x) == 1 or _runs_together(x):
        for layer in layers:
            x = layer(x)
        return x
    # Run by run through the whole stack: the images of one run stay in the cache, and only the last layer's
    # are copied into a common tensor.
    weights = [zip(torch.split(layer.weight, 1), torch.split(layer.bias, 1), strict=True) for layer in layers]
    results = []
    for images, *parameters in zip(torch.split(x, 1), *weights, strict=True):
        for layer, (weight, bias) in zip(layers, parameters, strict=True):
            images = layer.compute(images, weight, bias)
        results.append(images.squeeze(0))
    return _stacked(results)


def through_to_likelihood(convolutions: nn.ModuleList, x: Tensor, images: Tensor, likelihood: str) -> Tensor:
    """(P,): how well the output of the convolutions explains the images, by the likelihood of that name."""
    layers, density = cast(list[Layer], list(convolutions)), likelihood_named(likelihood)
    if density.has_kernel and have_kernels(layers, x):
        from unweave.nn.kernels import stacks

        return stacks.up_to_likelihood(x, images, likelihood, *_for_kernels(layers))
    return density.loss(through(convolutions, x), as_numbers(images))


def _convolved(
    convolution: Callable[..., Tensor],
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    padding: int,
    activation: Activation,
    precision: Precision,
) -> Tensor:
    """The one place that chooses how a convolution is computed."""
    if is_on_kernels(x, weight, padding):
        from unweave.nn.kernels import single_convolutions as single

        product = single.convolve if convolution is F.conv2d else single.convolve_transposed
        if activation in ("relu", "leaky_relu"):
            slope = LEAKY_SLOPE if activation == "leaky_relu" else 0.0
            return product(x, weight, padding, precision, bias, slope)
        y = product(x, weight, padding, precision)
        return activated(y + bias[:, None, :, None, None].to(y.dtype), activation)
    x, weight, bias = rounded(precision, as_numbers(x), weight, bias)
    return _by_torch(convolution, x, weight, bias, STRIDE, padding, activation)


def _by_torch(
    convolution: Callable[..., Tensor],
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    stride: int,
    padding: int,
    activation: Activation,
) -> Tensor:
    """All runs as one grouped convolution if they are small and on a GPU, otherwise one run after another."""
    if _runs_together(x, _products_of_a_run(convolution, x, weight, stride)):
        runs, images, channels, height, width = x.shape
        grouped = x.transpose(0, 1).reshape(images, runs * channels, height, width)
        y = convolution(
            grouped, weight.flatten(0, 1), bias.flatten(), stride=stride, padding=padding, groups=runs
        )
        return activated(y, activation).view(images, runs, -1, *y.shape[2:]).transpose(0, 1)
    return _stacked(
        [
            activated(convolution(_channels_last(image), w, b, stride=stride, padding=padding), activation)
            for image, w, b in zip(*map(_single_runs, (x, weight, bias)), strict=True)
        ]
    )


def have_kernels(layers: Sequence[Layer], x: Tensor) -> bool:
    """Whether there are kernels for a stack: on CUDA with Triton, for the study's shapes."""
    if not layers or not x.is_cuda or not has_triton():
        return False
    fits = are_powers_of_two(x)
    if isinstance(layers[0], ConvTranspose2d):  # these end in the image's logits
        fits &= layers[-1].weight.shape[2] <= EDGE_CHANNELS
        activations = [*["relu"] * (len(layers) - 1), "none"]
    else:
        fits &= min(x.shape[-2:]) >= 2 ** len(layers)
        activations = ["relu"] * len(layers)
    convolutions = [(layer.weight, cast(Conv2d | ConvTranspose2d, layer).padding) for layer in layers]
    return (
        fits
        and [layer.activation for layer in layers] == activations
        and all(has_kernel(weight, padding) for weight, padding in convolutions)
    )


def _for_kernels(layers: Sequence[Layer]) -> tuple[list[int], str, list[Tensor], list[Tensor | None]]:
    """Paddings, precision, parameters layer by layer, weights before biases, and copies of weights."""
    paddings = [cast(Conv2d | ConvTranspose2d, layer).padding for layer in layers]
    parameters: list[Tensor] = [p for layer in layers for p in (layer.weight, layer.bias)]
    return paddings, layers[0].precision, parameters, [rounded_copy(layer.weight) for layer in layers]


def _runs_together(x: Tensor, products: int = 0) -> bool:
    # A GPU is idle with one small model; a CPU is busy, and better off with one run's images in its cache.
    return x.is_cuda and products < LARGE


def _products_of_a_run(convolution: Callable[..., Tensor], x: Tensor, weight: Tensor, stride: int) -> int:
    """How many products of numbers the convolution of one run has."""
    positions = x[0, :, 0].numel() if convolution is F.conv_transpose2d else x[0, :, 0].numel() // stride**2
    return positions * weight[0].numel()


def _mixed_channels(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The convolution with a kernel of 1: (P, B, I, H, W), (P, O, I, 1, 1) and (P, O) as a matrix product."""
    runs, images, channels, height, width = x.shape
    rows = x.permute(0, 1, 3, 4, 2).reshape(runs, -1, channels)
    y = torch.baddbmm(bias.unsqueeze(1), rows, weight.flatten(2).mT)
    return y.view(runs, images, height, width, -1).permute(0, 1, 4, 2, 3)


def _single_runs(tensor: Tensor) -> Sequence[Tensor]:
    """(P, ...) as P tensors; the gradient of a single one is passed on without a copy, in its own layout."""
    return tensor.unbind() if len(tensor) > 1 else [tensor.squeeze(0)]


def _channels_last(images: Tensor) -> Tensor:
    """The same (B, C, H, W), with the channels of a pixel next to each other in memory."""
    if images.shape[1] == 1:
        # With one channel both layouts are the same in memory, and torch decides by the strides.
        return images.squeeze(1).unsqueeze(-1).permute(0, 3, 1, 2)
    return images.contiguous(memory_format=torch.channels_last)


def _stacked(runs: Sequence[Tensor]) -> Tensor:
    """P images (B, C, H, W) as one (P, B, C, H, W), channels-last in memory; one run is not copied."""
    if len(runs) == 1:
        return runs[0].unsqueeze(0)
    return torch.stack([images.permute(0, 2, 3, 1) for images in runs]).permute(0, 1, 4, 2, 3)
