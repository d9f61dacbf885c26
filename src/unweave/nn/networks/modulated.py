"""A decoder whose layers are modulated by the first part of the code, as the generator of LORD [1].

The second part of the code is the input of the first layer. The first part enters by adaptive instance
normalisation [2] alone: each feature map of each image is normalised to mean 0 and deviation 1, scaled and
shifted, and scales and shifts are linear functions of the first part. Scales start around 1.

[1] Gabbay, Hoshen: Demystifying inter-class disentanglement, ICLR 2020.
[2] Huang, Belongie: Arbitrary style transfer in real-time with adaptive instance normalization, ICCV 2017.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unweave.nn.distributions.likelihood import likelihood_named
from unweave.nn.layers import Linear, SameConv2d, at_least_float32
from unweave.nn.networks.vae import Decoder, dense_layers
from unweave.streams import Stream

CHANNELS = 32  # of all modulated layers; 256 in [1], and 64 in the layer before the last
DOUBLINGS = 4
EPSILON = 1e-5


class ModulatedDecoder(Decoder):
    """Dense layers of the second part, then doublings, each with a convolution that the first part modulates.

    The layers are those of [1] with fewer channels: three dense layers, up to four doublings with a 3 x 3
    convolution, then convolutions of 5 x 5 and 7 x 7. Images whose sides are no multiples of 16 are doubled
    as often as both sides are even.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        shape: tuple[int, int, int],
        latents: int,
        first: int,
        likelihood: str = "bernoulli",
    ) -> None:
        super().__init__(latents)
        self.first = first
        height, width, doublings = _smallest(shape)
        self.first_image = (height, width, CHANNELS)
        pixels = height * width
        widths = (latents - first, *(pixels * channels for channels in (CHANNELS // 8, CHANNELS // 4)))
        self.dense = dense_layers(streams, "decoder", (*widths, math.prod(self.first_image)), "leaky_relu")
        self.convolutions, self.modulations = nn.ModuleList(), nn.ModuleList()
        for number in range(1, doublings + 1):
            name = f"decoder.conv{number}"
            self.convolutions.append(SameConv2d(streams, name, CHANNELS, CHANNELS, activation="leaky_relu"))
            self.modulations.append(Linear(streams, f"decoder.modulation{number}", first, 2 * CHANNELS))
        outputs = likelihood_named(likelihood).outputs * shape[0]
        self.last = nn.Sequential(
            SameConv2d(streams, "decoder.last1", CHANNELS, CHANNELS, kernel=5, activation="leaky_relu"),
            SameConv2d(streams, "decoder.last2", CHANNELS, outputs, kernel=7),
        )

    def output(self, z: Tensor) -> Tensor:
        """Through all layers."""
        modulating, content = z[..., : self.first], z[..., self.first :]
        x: Tensor = self.dense(content).unflatten(2, self.first_image).permute(0, 1, 4, 2, 3)
        for convolution, modulation in zip(self.convolutions, self.modulations, strict=True):
            x = convolution(doubled(x))
            scale, shift = at_least_float32(modulation(modulating)).chunk(2, dim=-1)
            x = modulated(x, 1 + scale, shift)
        images: Tensor = self.last(x)
        return images


def modulated(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Adaptive instance normalisation [2] of features (P, B, C, H, W) by scale and shift (P, B, C)."""
    x = at_least_float32(x)
    variance, mean = torch.var_mean(x, dim=(-2, -1), correction=0, keepdim=True)
    normalised = (x - mean) * torch.rsqrt(variance + EPSILON)
    return normalised * scale[..., None, None] + shift[..., None, None]


def doubled(x: Tensor) -> Tensor:
    """Each pixel four times."""
    height, width = x.shape[-2:]
    quadrupled = x[..., :, None, :, None].expand(*x.shape[:-2], height, 2, width, 2)
    return quadrupled.reshape(*x.shape[:-2], 2 * height, 2 * width)


def _smallest(shape: tuple[int, int, int]) -> tuple[int, int, int]:
    """Height and width of the first image, and how often it is doubled."""
    height, width = shape[1:]
    doublings = 0
    while doublings < DOUBLINGS and height % 2 == width % 2 == 0:
        height, width, doublings = height // 2, width // 2, doublings + 1
    return height, width, doublings
