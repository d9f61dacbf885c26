"""An autoencoder whose code is a style and a class, and classes as numbers and back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unweave.nn.layers import glorot_uniform
from unweave.nn.networks.architectures import build_decoder, build_encoder
from unweave.streams import Stream


class ClassAutoencoder(nn.Module):
    """An encoder to a style z (P, B, S) and to logits of K classes, and a decoder of z and probabilities y.

    With `heads` W (P, K, S), the decoder sees z + y W; without, z and y beside each other.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        shape: tuple[int, int, int],
        style: int,
        classes: int,
        architecture: str = "released",
        heads: bool = False,
        likelihood: str = "bernoulli",
    ) -> None:
        super().__init__()
        self.style, self.classes = style, classes
        self.encoder = build_encoder(streams, shape, style + classes, architecture)
        seen = style if heads else style + classes
        self.decoder = build_decoder(streams, shape, seen, architecture, likelihood)
        first = glorot_uniform(streams, "heads", (classes, style), classes + style)
        self.heads = nn.Parameter(first) if heads else None

    def split(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Style and logits; the encoder's variances are not used."""
        style, logits = self.encoder(images).mean.split([self.style, self.classes], dim=-1)
        return style, logits

    def joined(self, style: Tensor, classes: Tensor) -> Tensor:
        """What the decoder sees."""
        if self.heads is None:
            return torch.cat([style, classes], dim=-1)
        return style + classes @ self.heads


def class_place(classes: Tensor, count: int) -> Tensor:
    """Classes 0 .. count - 1 as numbers that, over all of them, have mean 0 and variance 1."""
    return (classes - (count - 1) / 2) / math.sqrt((count**2 - 1) / 12)


def nearest_class(places: Tensor, count: int) -> Tensor:
    """The class, 0 .. count - 1, whose place is nearest."""
    return (places * math.sqrt((count**2 - 1) / 12) + (count - 1) / 2).round().clamp(0, count - 1)


def one_hot(classes: Tensor, count: int, dtype: torch.dtype) -> Tensor:
    """(..., count): 1 at the class, of classes (..., 1)."""
    return (classes == torch.arange(count, device=classes.device)).to(dtype)
