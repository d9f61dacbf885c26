"""Codes of two parts: first what the images of a class or scene have in common, then what differs.

Each part has its own encoder; the decoder gets both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.nn.distributions.gaussian import Gaussian, certain
from unweave.nn.layers import Linear
from unweave.nn.networks.architectures import build_decoder, build_encoder
from unweave.nn.networks.modulated import ModulatedDecoder
from unweave.nn.networks.vae import Decoder
from unweave.streams import Stream

# How many dimensions the first part has.
Part: TypeAlias = int | Literal["half"]

FEATURES = 128  # the discriminator uses means and log variances of an encoder with this many latents


def part_size(part: Part, latents: int) -> int:
    """Dimensions of the first part."""
    return latents // 2 if part == "half" else part


def check_parts(first: int, latents: int) -> None:
    """Refuse a size of the first part that leaves no dimension for one of the parts."""
    if not 0 < first < latents:
        raise UnweaveError(
            f"a code of two parts needs at least one dimension for each: of {latents} latents the first "
            f"part would get {first}. Take more latents, or another size of the first part."
        )


def concatenated(first: Gaussian, second: Gaussian) -> Gaussian:
    """Two posteriors (..., B, D1) and (..., B, D2) as one, (..., B, D1 + D2)."""
    return Gaussian(
        torch.cat([first.mean, second.mean], dim=-1), torch.cat([first.log_var, second.log_var], dim=-1)
    )


class TwoPartAutoencoder(nn.Module):
    """An encoder for each part of the code, and a decoder of both; `first` is the size of the first part.

    The first part is deterministic; the second too, unless `second_is_drawn`. With `modulated`, the first
    part modulates the layers of the decoder, whose input is the second part; see `modulated.py`.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        shape: tuple[int, int, int],
        latents: int,
        first: int,
        architecture: str = "released",
        likelihood: str = "bernoulli",
        second_is_drawn: bool = False,
        modulated: bool = False,
    ) -> None:
        super().__init__()
        self.second_is_drawn = second_is_drawn
        check_parts(first, latents)
        # Initial weights depend on layer names, which the two encoders share: each gets separate streams.
        first_streams, second_streams = (
            [stream.child(f"{name} part") for stream in streams] for name in ("first", "second")
        )
        self.first = build_encoder(first_streams, shape, first, architecture)
        self.second = build_encoder(second_streams, shape, latents - first, architecture)
        self.decoder: Decoder = (
            ModulatedDecoder(streams, shape, latents, first, likelihood)
            if modulated
            else build_decoder(streams, shape, latents, architecture, likelihood)
        )

    def encode_parts(self, images: Tensor) -> tuple[Gaussian, Gaussian]:
        """Both parts, (P, B, D1) and (P, B, D2), of images (P, B, c, h, w)."""
        return self.first(images), self.second(images)

    def encode(self, images: Tensor) -> Gaussian:
        """Both parts as one code."""
        first, second = self.encode_parts(images)
        return concatenated(certain(first.mean), second if self.second_is_drawn else certain(second.mean))

    def decode(self, codes: Tensor) -> Tensor:
        """Decoder output for both parts."""
        return self.decoder.decode(codes)

    def takes_codes(self) -> str:
        """The decoder."""
        return "decoder"


class LabelledDiscriminator(nn.Module):
    """Images (P, B, c, h, w) and their labels (P, B, k) -> logits (P, B) that the images are real.

    `sizes` are the numbers of values of the k labels.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        shape: tuple[int, int, int],
        sizes: Sequence[int],
        architecture: str = "released",
    ) -> None:
        super().__init__()
        self.sizes = tuple(sizes)
        discriminator_streams = [stream.child("discriminator") for stream in streams]
        self.features = build_encoder(discriminator_streams, shape, FEATURES, architecture)
        inputs = 2 * FEATURES + sum(self.sizes)
        self.dense = Linear(discriminator_streams, "discriminator.dense", inputs, 2 * FEATURES, "leaky_relu")
        self.logit = Linear(discriminator_streams, "discriminator.logit", 2 * FEATURES, 1)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """Logits (P, B)."""
        features = self.features(images)
        one_hot_labels = [_one_hot(labels[..., j], size) for j, size in enumerate(self.sizes)]
        inputs = torch.cat([features.mean, features.log_var, *one_hot_labels], dim=-1)
        logits: Tensor = self.logit(self.dense(inputs))
        return logits.squeeze(-1).to(features.mean.dtype)


def _one_hot(labels: Tensor, size: int) -> Tensor:
    """(..., size): 1 where the label is, else 0."""
    return (labels.unsqueeze(-1) == torch.arange(size, device=labels.device)).float()
