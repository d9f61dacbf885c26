"""An autoencoder whose codes are quantised to a few numbers, with one codebook per dimension.

Hsu, Dorrell, Whittington, Wu, Finn: Disentanglement via latent quantization, NeurIPS 2023.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.layers import Layer
from unweave.nn.networks.architectures import build_decoder, build_encoder
from unweave.streams import Stream

# Codes are deterministic. This standard deviation, 0.01, is far below the distance of two values.
LOG_VAR = 2 * math.log(0.01)


class Codebook(nn.Module):
    """Codes (P, B, D) -> the nearest of the values that their dimension has; `values` is (P, D, size).

    The values start evenly spread from -1/2 to 1/2, equal in all dimensions and runs.
    """

    def __init__(self, streams: Sequence[Stream], latents: int, size: int) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.linspace(-0.5, 0.5, size).repeat(len(streams), latents, 1))

    def forward(self, z: Tensor) -> Tensor:
        """(P, B, D): the nearest values; gradients flow to the values, not to z."""
        values = self.values.unsqueeze(1)
        nearest = (z.unsqueeze(-1) - values).abs().argmin(dim=-1, keepdim=True)
        return values.expand(-1, z.shape[1], -1, -1).gather(-1, nearest).squeeze(-1)

    def span(self) -> tuple[Tensor, Tensor]:
        """The middle and a quarter of the range of a run's values, over all dimensions, (P, 1, 1) each."""
        low, high = self.values.amin(dim=(1, 2), keepdim=True), self.values.amax(dim=(1, 2), keepdim=True)
        return (low + high) / 2, (high - low) / 4


class QuantisedAutoencoder(nn.Module):
    """The usual encoder and decoder, with a codebook between them; the encoder's log_var is not used."""

    def __init__(
        self,
        streams: Sequence[Stream],
        shape: tuple[int, int, int],
        latents: int,
        architecture: str,
        size: int,
        likelihood: str = "bernoulli",
    ) -> None:
        super().__init__()
        self.encoder = build_encoder(streams, shape, latents, architecture)
        self.codebook = Codebook(streams, latents, size)
        self.decoder = build_decoder(streams, shape, latents, architecture, likelihood)

    def encode(self, images: Tensor) -> Gaussian:
        """The values, shifted and scaled equally in all dimensions so that the codebook spans -2 to 2."""
        middle, unit = self.codebook.span()
        codes = (self.codebook(self.encoder(images).mean) - middle) / unit
        return Gaussian(codes, torch.full_like(codes, LOG_VAR))

    def decode(self, codes: Tensor) -> Tensor:
        """Decoder output for the nearest values; the decoder is trained on no others."""
        middle, unit = self.codebook.span()
        return self.decoder.decode(self.codebook(middle + unit * codes))

    def squared_weights(self) -> Tensor:
        """(P,): the sum of all squared weights of encoder and decoder, without biases and codebook."""
        layers = [part for part in self.modules() if isinstance(part, Layer)]
        squares = [layer.weight.square() for layer in layers]
        return torch.stack([square.sum(dim=tuple(range(1, square.ndim))) for square in squares]).sum(dim=0)
