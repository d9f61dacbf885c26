"""Codes of two parts with skip connections: the decoder also gets feature maps of the first encoder [1].

[1] Denton, Birodkar: Unsupervised learning of disentangled representations from video, NeurIPS 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from unweave.nn.distributions.likelihood import likelihood_named, reconstruction_loss
from unweave.nn.layers import Conv2d, ConvTranspose2d, Linear, as_numbers, at_least_float32
from unweave.nn.networks.architectures import build_encoder
from unweave.nn.networks.sizes import Sizes
from unweave.nn.networks.two_parts import check_parts
from unweave.streams import Stream

CHANNELS = (32, 32, 64, 64)  # of the feature maps, from the largest; each is half as high and wide
SIZES = Sizes(2 ** len(CHANNELS), 2 ** len(CHANNELS))


def map_shapes(shape: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """(C, H, W) of the feature maps of images of this shape, from the largest."""
    SIZES.check(shape, "an autoencoder with skip connections")
    _, height, width = shape
    return [(c, height >> n, width >> n) for n, c in enumerate(CHANNELS, 1)]


class SkipAutoencoder(nn.Module):
    """An encoder for each part of the code; the decoder gets both parts and the first encoder's feature maps.

    Codes do not determine an image: `decode_with` also needs feature maps, of an image or average ones.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        shape: tuple[int, int, int],
        latents: int,
        first: int,
        architecture: str = "released",
        likelihood: str = "bernoulli",
    ) -> None:
        super().__init__()
        check_parts(first, latents)
        self.smallest = map_shapes(shape)[-1]
        channels, height, width = self.smallest
        widths = (shape[0], *CHANNELS)
        self.convolutions = nn.ModuleList(
            Conv2d(streams, f"skip.conv{number}", before, after, activation="leaky_relu")
            for number, (before, after) in enumerate(pairwise(widths), 1)
        )
        self.first = Linear(streams, "skip.first", channels * height * width, first)
        second_streams = [stream.child("second part") for stream in streams]
        self.second = build_encoder(second_streams, shape, latents - first, architecture)
        self.dense = Linear(streams, "skip.dense", latents, channels * height * width, "leaky_relu")
        upwards = (*CHANNELS[::-1], likelihood_named(likelihood).outputs * shape[0])
        last = len(CHANNELS)
        self.deconvolutions = nn.ModuleList(
            ConvTranspose2d(
                streams,
                f"skip.deconv{number}",
                2 * before,
                after,
                activation="none" if number == last else "leaky_relu",
            )
            for number, (before, after) in enumerate(pairwise(upwards), 1)
        )

    def encode_with_maps(self, images: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Codes (P, B, D), and feature maps (P, B, C, H, W) from the largest, of images (P, B, c, h, w)."""
        maps = [as_numbers(images)]
        for convolution in self.convolutions:
            maps.append(convolution(maps[-1]))
        content = at_least_float32(self.first(maps[-1].flatten(2)))
        return torch.cat([content, self.second(images).mean], dim=-1), maps[1:]

    def decode_with(self, codes: Tensor, maps: Sequence[Tensor]) -> Tensor:
        """Decoder output (P, B, k c, h, w) in float32."""
        x: Tensor = self.dense(codes).unflatten(2, self.smallest)
        for deconvolution, feature_map in zip(self.deconvolutions, reversed(maps), strict=True):
            x = deconvolution(torch.cat([x, feature_map.to(x.dtype)], dim=2))
        return at_least_float32(x)

    def reconstruction(
        self, codes: Tensor, maps: Sequence[Tensor], images: Tensor, likelihood: str
    ) -> Tensor:
        """(P,): the loss of the output by the likelihood of that name."""
        return reconstruction_loss(self.decode_with(codes, maps), as_numbers(images), likelihood)
