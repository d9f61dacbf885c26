"""An autoencoder whose code is a style and a class, and conversions between classes and numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.nn.distributions.gaussian import Gaussian, certain
from unweave.nn.layers import glorot_uniform
from unweave.nn.networks.architectures import build_decoder, build_encoder
from unweave.streams import Stream

HEAD_DISTANCE = 6.0  # root mean square distance of two heads before training


class ClassAutoencoder(nn.Module):
    """An encoder to a style z (P, B, S) and to logits of K classes, and a decoder of z and probabilities y.

    With `heads` W (P, K, S), the decoder gets z + y W; without, z and y concatenated.
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
        inputs = style if heads else style + classes
        self.decoder = build_decoder(streams, shape, inputs, architecture, likelihood)
        self.heads = nn.Parameter(_first_heads(streams, classes, style)) if heads else None

    def encode(self, images: Tensor) -> Gaussian:
        """z + y W with heads; without, the style, and the likeliest class as a number."""
        style, logits = self.split(images)
        if self.heads is not None:
            return certain(self.joined(style, logits.softmax(-1)))
        place = class_place(logits.argmax(-1, keepdim=True).to(style.dtype), self.classes)
        return certain(torch.cat([style, place], dim=-1))

    def decode(self, codes: Tensor) -> Tensor:
        """Decoder output for z + y W with heads; without, for the style and the nearest class."""
        if self.heads is not None:
            return self.decoder.decode(codes)
        style, place = codes.split([self.style, 1], dim=-1)
        classes = one_hot(nearest_class(place, self.classes), self.classes, codes.dtype)
        return self.decoder.decode(self.joined(style, classes))

    def crowding(self, eta: float | Tensor) -> Tensor:
        """(...): how much closer than eta the heads are, summed over all pairs of them."""
        if self.heads is None:
            raise UnweaveError("this autoencoder has no heads; build it with heads=True.")
        return heads_crowding(self.heads, eta)

    def split(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Style and logits; the encoder's variances are not used."""
        style, logits = self.encoder(images).mean.split([self.style, self.classes], dim=-1)
        return style, logits

    def joined(self, style: Tensor, classes: Tensor) -> Tensor:
        """The input of the decoder."""
        if self.heads is None:
            return torch.cat([style, classes], dim=-1)
        return style + classes @ self.heads


def class_blocks(latents: int) -> dict[str, range]:
    """The dimensions of the codes of `ClassAutoencoder` by block: the class, called content, and style."""
    return {"content": range(latents - 1, latents), "style": range(latents - 1)}


def heads_crowding(heads: Tensor, eta: float | Tensor) -> Tensor:
    """(...): how much closer than eta the heads (..., K, D) are, summed over all pairs of them."""
    first, second = torch.triu_indices(heads.shape[-2], heads.shape[-2], 1, device=heads.device)
    squares = (heads[..., first, :] - heads[..., second, :]).square().sum(-1)
    limit = eta[..., None] if isinstance(eta, Tensor) else eta
    # The slope of a root at zero is infinite: heads that coincide get no gradient.
    return (limit - squares.clamp_min(1e-12).sqrt()).clamp_min(0).sum(-1)


def _first_heads(streams: Sequence[Stream], classes: int, style: int) -> Tensor:
    """(P, K, S): random heads; two of them have the mean squared distance HEAD_DISTANCE^2 = 2 S variance."""
    unscaled = glorot_uniform(streams, "heads", (classes, style), classes + style)
    variance = 2 / (classes + style)
    return unscaled * math.sqrt(HEAD_DISTANCE**2 / (2 * style * variance))


def class_place(classes: Tensor, count: int) -> Tensor:
    """Classes 0 .. count - 1 as numbers that, over all of them, have mean 0 and variance 1."""
    return (classes - (count - 1) / 2) / math.sqrt((count**2 - 1) / 12)


def nearest_class(places: Tensor, count: int) -> Tensor:
    """The class, 0 .. count - 1, whose place is nearest."""
    return (places * math.sqrt((count**2 - 1) / 12) + (count - 1) / 2).round().clamp(0, count - 1)


def one_hot(classes: Tensor, count: int, dtype: torch.dtype) -> Tensor:
    """(..., count): 1 at the class, of classes (..., 1)."""
    return (classes == torch.arange(count, device=classes.device)).to(dtype)
