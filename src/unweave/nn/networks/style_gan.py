"""Networks of StyleGAN2 [1]: mapping, synthesis, a residual discriminator, and an encoder built like it.

[1] Karras, Laine, Aittala, Hellsten, Lehtinen, Aila: Analyzing and improving the image quality of StyleGAN,
CVPR 2020.

Images are numbers from -1 to 1 here, as in [1]. A code w enters each convolution of the synthesis, and may
differ from layer to layer: (P, B, layers, D).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.nn.networks.style_layers import (
    EqualConv,
    EqualLinear,
    ModulatedConv,
    doubling_matrix,
    filtered,
    normalised,
    rectified,
    with_deviation,
)
from unweave.streams import Stream

SMALLEST = 4  # the side of the constant that images grow from
MAPPING_RATE = 0.01  # of the mapping, relative to all other layers
DEVIATION_GROUP = 4  # images whose features are compared by the discriminator


@dataclass(frozen=True)
class Widths:
    """How many channels features of a resolution have: `base` / resolution, at most `largest`."""

    base: int
    largest: int

    def __call__(self, resolution: int) -> int:
        """Channels at that resolution, at least one."""
        return max(1, min(self.base // resolution, self.largest))


class StyleGenerator(nn.Module):
    """z -> w by the mapping, and w of each layer -> images by the synthesis."""

    def __init__(
        self,
        streams: Sequence[Stream],
        shape: tuple[int, int, int],
        latents: int,
        widths: Widths,
        mapping_layers: int,
    ) -> None:
        super().__init__()
        sizes = [latents, *[widths.largest] * (mapping_layers - 1), latents]
        self.mapping = nn.ModuleList(
            EqualLinear(streams, f"mapping.dense{number}", inputs, outputs, MAPPING_RATE)
            for number, (inputs, outputs) in enumerate(pairwise(sizes), 1)
        )
        self.synthesis = Synthesis(streams, shape, latents, widths)

    def styles(self, z: Tensor) -> Tensor:
        """(P, B, D) -> w (P, B, D)."""
        w = normalised(z)
        for layer in self.mapping:
            w = rectified(layer(w))
        return w

    def forward(self, w: Tensor, noise: Tensor | None = None) -> Tensor:
        """Images (P, B, c, h, w) of w (P, B, layers, D); without noise, that of all layers is 0."""
        images: Tensor = self.synthesis(w, noise)
        return images

    @property
    def affines(self) -> list[EqualLinear]:
        """The layers that make styles of w: those of all convolutions, and that of the last image."""
        layers = [part for part in self.synthesis.modules() if isinstance(part, ModulatedConv)]
        return [layer.affine for layer in layers if layer.demodulate or layer is layers[-1]]

    def same_in_all_layers(self, w: Tensor) -> Tensor:
        """(P, B, D) -> (P, B, layers, D)."""
        return w.unsqueeze(2).expand(-1, -1, self.synthesis.num_layers, -1)


class Synthesis(nn.Module):
    """w of each layer (P, B, layers, D), and noise -> images; each resolution adds its part to the image."""

    def __init__(
        self, streams: Sequence[Stream], shape: tuple[int, int, int], latents: int, widths: Widths
    ) -> None:
        super().__init__()
        self.resolutions = resolutions_of(shape)
        self.num_layers = 2 * len(self.resolutions)
        constant = [
            stream.child("weights", "synthesis.constant").normal(widths(SMALLEST), SMALLEST**2)
            for stream in streams
        ]
        numbers = torch.stack([torch.from_numpy(run) for run in constant]).float()
        self.constant = nn.Parameter(numbers.unflatten(-1, (SMALLEST, SMALLEST)))
        self.blocks = nn.ModuleList(
            SynthesisBlock(streams, resolution, shape[0], latents, widths) for resolution in self.resolutions
        )

    @property
    def noise_size(self) -> int:
        """How many numbers of noise an image has."""
        return sum(resolution**2 * count for resolution, count in self.layer_counts.items())

    @property
    def layer_counts(self) -> dict[int, int]:
        """How many convolutions each resolution has, apart from those that make images."""
        return {resolution: 1 if resolution == SMALLEST else 2 for resolution in self.resolutions}

    def forward(self, w: Tensor, noise: Tensor | None) -> Tensor:
        """Noise is (P, B, noise_size), or None for none."""
        maps = iter(self._noise_maps(noise))
        x = self.constant.unsqueeze(1).expand(-1, w.shape[1], -1, -1, -1)
        # The layer that makes an image shares its w with the next convolution, as the authors have it.
        starts = accumulate(self.layer_counts.values(), initial=0)
        styles = [
            w[:, :, start : start + count + 1].unbind(2)
            for start, count in zip(starts, self.layer_counts.values(), strict=False)
        ]
        first, *others = self.blocks
        image: Tensor
        x, image = first(x, None, styles[0], maps)
        for block, of_block in zip(others, styles[1:], strict=True):
            x, image = block(x, image, of_block, maps)
        return image

    def _noise_maps(self, noise: Tensor | None) -> list[Tensor | None]:
        """(P, B, 1, r, r) for each convolution."""
        sides = [side for side, count in self.layer_counts.items() for _ in range(count)]
        if noise is None:
            return [None for _ in sides]
        parts = noise.split([side**2 for side in sides], dim=-1)
        return [part.unflatten(-1, (1, side, side)) for part, side in zip(parts, sides, strict=True)]


class SynthesisBlock(nn.Module):
    """The convolutions of a resolution: one that doubles the size, except in the first, and another one."""

    matrix: Tensor

    def __init__(
        self, streams: Sequence[Stream], resolution: int, channels: int, latents: int, widths: Widths
    ) -> None:
        super().__init__()
        name, width = f"synthesis.size{resolution}", widths(resolution)
        self.convolutions = nn.ModuleList()
        if resolution > SMALLEST:
            half = resolution // 2
            self.convolutions.append(
                NoisyConv(streams, f"{name}.conv1", latents, widths(half), width, side=half)
            )
            self.register_buffer("matrix", doubling_matrix(half), persistent=False)
        self.convolutions.append(NoisyConv(streams, f"{name}.conv2", latents, width, width))
        self.to_image = ModulatedConv(
            streams, f"{name}.image", latents, width, channels, kernel=1, demodulate=False
        )
        self.image_bias = nn.Parameter(torch.zeros(len(streams), channels))

    def forward(
        self, x: Tensor, image: Tensor | None, w: Sequence[Tensor], noise: Iterator[Tensor | None]
    ) -> tuple[Tensor, Tensor]:
        """Features and image of the resolution before -> those of this one."""
        *of_convolutions, of_image = w
        for convolution, style in zip(self.convolutions, of_convolutions, strict=True):
            x = convolution(x, style, next(noise))
        part = self.to_image(x, of_image) + self.image_bias[:, None, :, None, None]
        return x, part if image is None else filtered(image, self.matrix) + part


class NoisyConv(nn.Module):
    """A modulated convolution, noise of a learned strength, a bias and a rectifier."""

    def __init__(
        self,
        streams: Sequence[Stream],
        name: str,
        latents: int,
        inputs: int,
        outputs: int,
        side: int | None = None,
    ) -> None:
        super().__init__()
        self.convolution = ModulatedConv(streams, name, latents, inputs, outputs, side=side)
        self.strength = nn.Parameter(torch.zeros(len(streams), 1))
        self.bias = nn.Parameter(torch.zeros(len(streams), outputs))

    def forward(self, x: Tensor, w: Tensor, noise: Tensor | None) -> Tensor:
        """(P, B, inputs, H, W) -> (P, B, outputs, H', W'); noise is (P, B, 1, H', W')."""
        y = self.convolution(x, w)
        if noise is not None:
            y = y + noise * self.strength[:, :, None, None, None]
        return rectified(y + self.bias[:, None, :, None, None])


class ResidualTrunk(nn.Module):
    """Images (P, B, c, h, w) from -1 to 1 -> features (P, B, C, 4, 4), by residual blocks that halve them."""

    def __init__(
        self, streams: Sequence[Stream], name: str, shape: tuple[int, int, int], widths: Widths
    ) -> None:
        super().__init__()
        sides = resolutions_of(shape)[:0:-1]
        self.from_image = EqualConv(streams, f"{name}.image", shape[0], widths(sides[0]), kernel=1)
        self.blocks = nn.ModuleList(
            HalvingBlock(streams, f"{name}.size{side}", side, widths(side), widths(side // 2))
            for side in sides
        )

    def forward(self, images: Tensor) -> Tensor:
        """Features."""
        x: Tensor = self.from_image(images)
        for block in self.blocks:
            x = block(x)
        return x


class HalvingBlock(nn.Module):
    """Features of images of one side -> those of half of it, by a residual block."""

    def __init__(self, streams: Sequence[Stream], name: str, side: int, inputs: int, outputs: int) -> None:
        super().__init__()
        self.keep = EqualConv(streams, f"{name}.keep", inputs, inputs)
        self.halve = EqualConv(streams, f"{name}.halve", inputs, outputs, side=side)
        self.skip = EqualConv(streams, f"{name}.skip", inputs, outputs, kernel=1, side=side, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The sum of both ways, with the variance of one."""
        both: Tensor = self.skip(x) + self.halve(self.keep(x))
        return both * math.sqrt(0.5)


class StyleDiscriminator(nn.Module):
    """Images from -1 to 1 -> logits (P, B) that they are real."""

    def __init__(self, streams: Sequence[Stream], shape: tuple[int, int, int], widths: Widths) -> None:
        super().__init__()
        width = widths(SMALLEST)
        self.trunk = ResidualTrunk(streams, "discriminator", shape, widths)
        self.last = EqualConv(streams, "discriminator.last", width + 1, width)
        self.dense = EqualLinear(streams, "discriminator.dense", width * SMALLEST**2, width)
        self.verdict = EqualLinear(streams, "discriminator.verdict", width, 1)

    def forward(self, images: Tensor, group: int) -> Tensor:
        """Logits; so many images next to each other are compared with one another."""
        x = self.last(with_deviation(self.trunk(images), group))
        verdict: Tensor = self.verdict(rectified(self.dense(x.flatten(2))))
        return verdict.squeeze(-1)


class StyleEncoder(nn.Module):
    """Images from -1 to 1 -> codes (P, B, D)."""

    def __init__(
        self, streams: Sequence[Stream], shape: tuple[int, int, int], latents: int, widths: Widths
    ) -> None:
        super().__init__()
        width = widths(SMALLEST)
        self.trunk = ResidualTrunk(streams, "encoder", shape, widths)
        self.dense = EqualLinear(streams, "encoder.dense", width * SMALLEST**2, width)
        self.codes = EqualLinear(streams, "encoder.codes", width, latents)

    def forward(self, images: Tensor) -> Tensor:
        """Codes."""
        codes: Tensor = self.codes(rectified(self.dense(self.trunk(images).flatten(2))))
        return codes


def deviation_group(images: int) -> int:
    """How many images are compared: the largest divisor of their number up to 4.

    >>> [deviation_group(images) for images in (32, 6, 5)]
    [4, 3, 1]
    """
    return next(size for size in range(DEVIATION_GROUP, 0, -1) if images % size == 0)


def resolutions_of(shape: tuple[int, int, int]) -> list[int]:
    """The sides of the features of an image: 4, 8, ... up to its own.

    >>> resolutions_of((1, 64, 64))
    [4, 8, 16, 32, 64]
    """
    _, height, width = shape
    doublings = math.log2(height / SMALLEST)
    if height != width or doublings < 1 or doublings != int(doublings):
        raise UnweaveError(
            f"images for StyleGAN2 must be squares of 8, 16, 32, 64, ... pixels; got {height} x {width}. "
            "Resize them."
        )
    return [SMALLEST * 2**n for n in range(int(doublings) + 1)]
