"""A decoder of residual blocks that the code modulates, with smooth activations, as that of Tripod [1, 2].

Two dense layers turn a code into a style. A learned image, the same for all codes, goes through levels of two
blocks, a doubling and a convolution. The style enters by adaptive instance normalisation alone. All
activations are GELU, so second derivatives by the code exist; networks of ReLU have none.

[1] Hsu, Hamid, Burns, Finn, Wu: Tripod: three complementary inductive biases for disentangled representation
learning, ICML 2024.
[2] Its authors' program: github.com/kylehkhsu/tripod.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.nn.distributions.likelihood import likelihood_named
from unweave.nn.layers import Linear, SameConv2d, at_least_float32
from unweave.nn.networks.modulated import EPSILON, doubled, modulated
from unweave.nn.networks.vae import Decoder, check_input
from unweave.streams import Stream

CHANNELS = (128, 64, 32, 16)  # of the blocks of each level; a quarter of those of [2]
WIDTH = 256  # of the style
SMALLEST = 4  # pixels of the first image on its shorter side, unless the image is smaller than 8


class SmoothDense(nn.Module):
    """A dense layer, layer normalisation with a scale and a shift of each feature, and GELU."""

    def __init__(self, streams: Sequence[Stream], name: str, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = Linear(streams, name, inputs, outputs)
        self.scale = nn.Parameter(torch.ones(len(streams), outputs))
        self.shift = nn.Parameter(torch.zeros(len(streams), outputs))

    def forward(self, x: Tensor) -> Tensor:
        """(P, B, inputs) -> (P, B, outputs)."""
        y = at_least_float32(self.linear(x))
        variance, mean = torch.var_mean(y, dim=-1, correction=0, keepdim=True)
        normalised = (y - mean) * torch.rsqrt(variance + EPSILON)
        return F.gelu(normalised * self.scale.unsqueeze(1) + self.shift.unsqueeze(1))


class StyleBlock(nn.Module):
    """x + two convolutions of x, each modulated by the style and followed by GELU; (P, B, C, H, W)."""

    def __init__(self, streams: Sequence[Stream], name: str, channels: int) -> None:
        super().__init__()
        names = [f"{name}.{number}" for number in (1, 2)]
        self.convolutions = nn.ModuleList(
            SameConv2d(streams, f"{name}.conv", channels, channels) for name in names
        )
        self.modulations = nn.ModuleList(
            Linear(streams, f"{name}.style", WIDTH, 2 * channels) for name in names
        )

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        """The sum; style is (P, B, WIDTH)."""
        change = x
        for convolution, modulation in zip(self.convolutions, self.modulations, strict=True):
            scale, shift = at_least_float32(modulation(style)).chunk(2, dim=-1)
            change = F.gelu(modulated(convolution(change), 1 + scale, shift))
        return x + change


class StyleDecoder(Decoder):
    """The style of a code, and up to four levels; images of any size, larger ones are cropped to it."""

    def __init__(
        self,
        streams: Sequence[Stream],
        shape: tuple[int, int, int],
        latents: int,
        likelihood: str = "bernoulli",
    ) -> None:
        super().__init__(latents)
        channels, height, width = shape
        levels = _levels(min(height, width))
        first = (-(-height // 2**levels), -(-width // 2**levels))
        self.rows, self.columns = slice(height), slice(width)
        self.dense = nn.Sequential(
            SmoothDense(streams, "decoder.dense1", latents, WIDTH),
            SmoothDense(streams, "decoder.dense2", WIDTH, WIDTH),
        )
        self.first_image = nn.Parameter(torch.ones(len(streams), CHANNELS[0], *first))
        self.blocks, self.convolutions = nn.ModuleList(), nn.ModuleList()
        widths = (*CHANNELS[:levels], likelihood_named(likelihood).outputs * channels)
        for number, (inputs, outputs) in enumerate(pairwise(widths), 1):
            for block in "ab":
                self.blocks.append(StyleBlock(streams, f"decoder.block{number}{block}", inputs))
            self.convolutions.append(SameConv2d(streams, f"decoder.conv{number}", inputs, outputs))

    def output(self, z: Tensor) -> Tensor:
        """Through all levels."""
        return self._layers(z, len(self.convolutions))[-1][..., self.rows, self.columns]

    def hidden(self, z: Tensor) -> list[Tensor]:
        """The style and the results of all levels but the last, (P, B, ...) each: what [1] penalises."""
        check_input(self, z, (self.latents,))
        return self._layers(z, len(self.convolutions) - 1)

    def _layers(self, z: Tensor, levels: int) -> list[Tensor]:
        style: Tensor = self.dense(z)
        layers = [style]
        x = self.first_image.unsqueeze(1).expand(-1, z.shape[1], -1, -1, -1)
        for level in range(levels):
            for block in self.blocks[2 * level : 2 * level + 2]:
                x = block(x, style)
            x = self.convolutions[level](doubled(x))
            layers.append(x)
        return layers


def _levels(side: int) -> int:
    """How often the first image is doubled."""
    fitting = [count for count in range(1, len(CHANNELS) + 1) if side >= SMALLEST * 2**count]
    return max(fitting, default=1)
