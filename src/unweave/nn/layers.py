"""Layers of many models at once: every parameter has an axis of runs in front, every input too.

Images are logically (P, B, C, H, W) and lie channels-last in memory where a layer made them, features are
(P, B, features). A run's initial weights come from its own stream and from the name of the layer, so they
are the same whether it trains alone or in company.

Each layer computes in a precision (precision.py). Weights are float32, rounded at use, except for those of
dense layers in "bf16", which are rounded copies of what the optimiser keeps.

Images are bytes of 0 to 255 or numbers from 0 to 1. On CUDA with Triton, convolutions of the usual shapes go
through the kernels behind stacks.py, or, where something stands between them, behind single_convolutions.py;
everything else, and all other devices, through torch's own.

On a CPU the runs go through the convolutions one after another. Forward and backward through the study's
convolutions, batch 64, milliseconds a run on 2 cores (AMD EPYC, torch 2.13), a loop of separate models in
torch's default layout first: P = 1: 73 and 53 here, P = 4: 72 and 58, P = 8: 64 and 53. One grouped
convolution takes 80, 100 and 105, or 70, 80 and 76 channels-last; images to columns and a matrix product 280
and more. Dense layers are one batched product: 0.98 for the loop and 0.77 here (10-256-1024, P = 8).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Literal, TypeAlias, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.nn.likelihood import Likelihood, reconstruction_loss
from unweave.nn.precision import Precision, check_precision
from unweave.streams import Stream

Activation: TypeAlias = Literal["none", "relu", "leaky_relu", "tanh"]

EDGE_CHANNELS = 4  # up to that many, an image's channels are few: kernels of their own
KERNEL_CHANNELS = (16, 32, 64, 128)
LEAKY_SLOPE = 0.2  # TensorFlow's default, which the published discriminators had; torch's is 0.01
STRIDE = 2


class Layer(nn.Module, ABC):
    """A layer in each of P runs: `weight` (P, ...) and `bias` (P, outputs)."""

    def __init__(self, weight: Tensor, outputs: int, activation: Activation) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.zeros(len(weight), outputs))
        self.activation: Activation = activation
        self.precision: Precision = "float32"

    @abstractmethod
    def compute(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """What the layer does, with the weights of all runs or of some."""

    def forward(self, x: Tensor) -> Tensor:
        """(P, B, ...) -> (P, B, ...), all runs."""
        return self.compute(x, self.weight, self.bias)


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


def heads(streams: Sequence[Stream], names: Sequence[str], inputs: int, outputs: int) -> Linear:
    """Several dense layers of `outputs` features each that see the same inputs, as one layer.

    Each has its own initial weights, as if it stood alone; the result of the first one comes first.
    """
    together = Linear(streams, names[0], inputs, outputs)
    others = [Linear(streams, name, inputs, outputs) for name in names[1:]]
    for parameter in ("weight", "bias"):
        values = [getattr(layer, parameter).detach() for layer in (together, *others)]
        setattr(together, parameter, nn.Parameter(torch.cat(values, dim=-1)))
    return together


def glorot_uniform(streams: Sequence[Stream], name: str, shape: tuple[int, ...], fans: int) -> Tensor:
    """(P, *shape) float32 numbers, uniform in (-a, a) with a = sqrt(6 / (fan in + fan out)).

    As TensorFlow counts them, the fans of a convolution are its channels times the size of the kernel.

    Glorot, Bengio: Understanding the difficulty of training deep feedforward neural networks, AISTATS 2010.
    """
    if not streams:
        raise UnweaveError("A population needs at least one run; got no streams of initial weights.")
    bound = math.sqrt(6 / fans)
    weights = np.empty((len(streams), *shape), np.float32)
    for run, stream in zip(weights, streams, strict=True):
        uniform = stream.child("weights", name).uniform(shape[0], math.prod(shape[1:]))
        run[...] = ((2 * uniform - 1) * bound).reshape(shape)
    return torch.from_numpy(weights)


def linear(x: Tensor, weight: Tensor, bias: Tensor, activation: Activation, precision: Precision) -> Tensor:
    """activation(x W + b) for (P, B, I), (P, I, O), (P, O)."""
    x, weight, bias = _rounded(precision, x, weight, bias)
    return _activated(torch.baddbmm(bias.unsqueeze(1), x, weight), activation)


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
        from unweave.nn import stacks

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


def through_to_likelihood(
    convolutions: nn.ModuleList, x: Tensor, images: Tensor, likelihood: Likelihood
) -> Tensor:
    """(P,): how well the logits at the end of the convolutions explain the images."""
    layers = cast(list[Layer], list(convolutions))
    if have_kernels(layers, x):
        from unweave.nn import stacks

        return stacks.up_to_likelihood(x, images, likelihood, *_for_kernels(layers))
    return reconstruction_loss(through(convolutions, x), as_numbers(images), likelihood)


def as_numbers(images: Tensor) -> Tensor:
    """Bytes of 0 to 255 as numbers from 0 to 1; numbers stay as they are."""
    return images.float() / 255 if images.dtype == torch.uint8 else images


def at_least_float32(x: Tensor) -> Tensor:
    """bfloat16 as float32, others as they are: losses and densities are not computed in bfloat16."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def set_precision(module: nn.Module, precision: Precision) -> None:
    """Set how all layers of a network compute: "float32", "tf32" or "bf16".

    Parameters of dense layers are replaced by rounded ones in "bf16": optimisers must be given them.
    """
    check_precision(precision)
    for part in module.modules():
        if isinstance(part, Layer):
            part.precision = precision
        if isinstance(part, Linear) and precision == "bf16":
            part.weight = nn.Parameter(part.weight.detach().bfloat16())
            part.bias = nn.Parameter(part.bias.detach().bfloat16())


def lay_out_for_kernels(module: nn.Module) -> None:
    """Put the weights of convolutions in memory as the kernels take them; optimisers must be given them."""
    for part in module.modules():
        if isinstance(part, Conv2d | ConvTranspose2d):
            taps_first = part.weight.detach().permute(0, 3, 4, 2, 1).contiguous()
            part.weight = nn.Parameter(taps_first.permute(0, 4, 3, 1, 2))


def num_runs(module: nn.Module) -> int:
    """How many runs there are in a network: the P of its parameters."""
    sizes = {len(parameter) for parameter in module.parameters()}
    if len(sizes) != 1:
        raise UnweaveError(f"All parameters must have one leading axis of runs; got lengths {sorted(sizes)}.")
    return sizes.pop()


def select_runs(module: nn.Module, index: Sequence[int]) -> None:
    """Keep only the runs with these numbers, in this order.

    The parameters of the module are new ones, without gradients: optimisers must be given them.
    """
    runs = num_runs(module)
    if not index or not all(0 <= number < runs for number in index):
        raise UnweaveError(f"The runs to keep must be numbers from 0 to {runs - 1}; got {list(index)}.")
    for part in module.modules():
        for name, parameter in list(part.named_parameters(recurse=False)):
            kept = chosen(parameter.detach(), torch.as_tensor(list(index), device=parameter.device))
            setattr(part, name, nn.Parameter(kept, parameter.requires_grad))


def chosen(tensor: Tensor, index: Tensor) -> Tensor:
    """The runs with these numbers, in memory as they were."""
    return torch.empty_like(tensor[: len(index)]).copy_(tensor[index])


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
        from unweave.nn import single_convolutions as single

        product = single.convolve if convolution is F.conv2d else single.convolve_transposed
        if activation in ("relu", "leaky_relu"):
            slope = LEAKY_SLOPE if activation == "leaky_relu" else 0.0
            return product(x, weight, padding, precision, bias, slope)
        y = product(x, weight, padding, precision)
        return _activated(y + bias[:, None, :, None, None].to(y.dtype), activation)
    x, weight, bias = _rounded(precision, as_numbers(x), weight, bias)
    if _runs_together(x):
        runs, images, channels, height, width = x.shape
        beside = x.transpose(0, 1).reshape(images, runs * channels, height, width)
        y = convolution(
            beside, weight.flatten(0, 1), bias.flatten(), stride=STRIDE, padding=padding, groups=runs
        )
        return _activated(y, activation).view(images, runs, -1, *y.shape[2:]).transpose(0, 1)
    return _stacked(
        [
            _activated(convolution(_channels_last(image), w, b, stride=STRIDE, padding=padding), activation)
            for image, w, b in zip(x.unbind(), weight.unbind(), bias.unbind(), strict=True)
        ]
    )


def have_kernels(layers: Sequence[Layer], x: Tensor) -> bool:
    """Whether the kernels can do a stack: on CUDA with Triton, the study's shapes."""
    if not layers or not x.is_cuda or not has_triton():
        return False
    fits = _are_powers_of_two(x)
    if isinstance(layers[0], ConvTranspose2d):  # these end in the image's logits
        fits &= layers[-1].weight.shape[2] <= EDGE_CHANNELS
        activations = [*["relu"] * (len(layers) - 1), "none"]
    else:
        fits &= min(x.shape[-2:]) >= 2 ** len(layers)
        activations = ["relu"] * len(layers)
    found = [(layer.weight, cast(Conv2d | ConvTranspose2d, layer).padding) for layer in layers]
    return (
        fits
        and [layer.activation for layer in layers] == activations
        and all(_has_kernel(weight, padding) for weight, padding in found)
    )


def is_on_kernels(x: Tensor, weight: Tensor, padding: int) -> bool:
    """Whether the kernels can do a single convolution, of either direction and with any activation."""
    fits = x.is_cuda and has_triton() and _are_powers_of_two(x) and min(x.shape[-2:]) >= 2
    return fits and _has_kernel(weight, padding)


def _are_powers_of_two(images: Tensor) -> bool:
    return all(size & (size - 1) == 0 for size in images.shape[-2:])


def _has_kernel(weight: Tensor, padding: int) -> bool:
    small, big, kernel = weight.shape[1], weight.shape[2], weight.shape[-1]
    if big <= EDGE_CHANNELS:
        usual = (kernel, padding) == (4, 1)
    else:
        usual = (kernel, padding) in ((4, 1), (2, 0)) and big in KERNEL_CHANNELS
    return usual and small in KERNEL_CHANNELS and weight.dtype == torch.float32


def _for_kernels(layers: Sequence[Layer]) -> tuple[list[int], str, list[Tensor]]:
    """Paddings, precision, and parameters layer by layer, weights before biases."""
    paddings = [cast(Conv2d | ConvTranspose2d, layer).padding for layer in layers]
    return paddings, layers[0].precision, [p for layer in layers for p in (layer.weight, layer.bias)]


@cache
def has_triton() -> bool:
    """Whether Triton is installed."""
    return find_spec("triton") is not None


def _runs_together(x: Tensor) -> bool:
    # A GPU is idle with one small model; a CPU is busy, and better off with one run's images in its cache.
    return x.is_cuda


def _channels_last(images: Tensor) -> Tensor:
    """The same (B, C, H, W), with the channels of a pixel beside each other in memory."""
    if images.shape[1] == 1:
        # With one channel both layouts are the same memory, and torch goes by the strides.
        return images.squeeze(1).unsqueeze(-1).permute(0, 3, 1, 2)
    return images.contiguous(memory_format=torch.channels_last)


def _stacked(runs: Sequence[Tensor]) -> Tensor:
    """P images (B, C, H, W) as one (P, B, C, H, W), channels-last in memory; one run is not copied."""
    if len(runs) == 1:
        return runs[0].unsqueeze(0)
    return torch.stack([images.permute(0, 2, 3, 1) for images in runs]).permute(0, 1, 4, 2, 3)


def _activated(y: Tensor, activation: Activation) -> Tensor:
    """activation(y), in place: y was made by a product, whose gradient does not need it."""
    if activation == "relu":
        return F.relu_(y)
    if activation == "leaky_relu":
        return F.leaky_relu_(y, LEAKY_SLOPE)
    return torch.tanh_(y) if activation == "tanh" else y


def _rounded(precision: Precision, x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    dtype = torch.bfloat16 if precision == "bf16" else weight.dtype
    return x.to(dtype), weight.to(dtype), bias.to(dtype)
