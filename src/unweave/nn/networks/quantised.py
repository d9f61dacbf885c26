"""An autoencoder with codes quantised to a few numbers: a codebook per dimension [1], or one for all [2].

[1] Hsu, Dorrell, Whittington, Wu, Finn: Disentanglement via latent quantization, NeurIPS 2023.
[2] Baykal, Kandemir, Unal: Disentanglement with factor quantized variational autoencoders, 2024.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from unweave.nn.distributions.categorical import Categorical
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.layers import Layer
from unweave.nn.networks.architectures import build_decoder, build_encoder
from unweave.streams import Stream

# Codes are deterministic. This standard deviation, 0.01, is far below the distance of two values.
LOG_VAR = 2 * math.log(0.01)


class Codebook(nn.Module):
    """Codes (P, B, D) -> the nearest of the values that their dimension has; `values` is (P, D, size).

    With `values` of (P, 1, size) all dimensions have the same ones. See `separate_codebooks` and
    `shared_codebook`.
    """

    def __init__(self, values: Tensor) -> None:
        super().__init__()
        self.values = nn.Parameter(values)

    def forward(self, z: Tensor) -> Tensor:
        """(P, B, D): the nearest values; gradients flow to the values, not to z."""
        values = self.values.unsqueeze(1)
        nearest = (z.unsqueeze(-1) - values).abs().argmin(dim=-1, keepdim=True)
        return values.expand(-1, *z.shape[1:], -1).gather(-1, nearest).squeeze(-1)

    def posterior(self, z: Tensor) -> Categorical:
        """(P, B, D, size): probabilities proportional to exp(-(z - value)^2), as in [2]."""
        distances = (z.unsqueeze(-1) - self.values.unsqueeze(1)).square()
        return Categorical(torch.log_softmax(-distances, dim=-1))

    def mixed(self, weights: Tensor) -> Tensor:
        """(P, B, D): means of the values with weights (P, B, D, size)."""
        return (weights * self.values.unsqueeze(1)).sum(-1)

    def span(self) -> tuple[Tensor, Tensor]:
        """The middle and a quarter of the range of a run's values, over all dimensions, (P, 1, 1) each."""
        low, high = self.values.amin(dim=(1, 2), keepdim=True), self.values.amax(dim=(1, 2), keepdim=True)
        return (low + high) / 2, (high - low) / 4


def separate_codebooks(runs: int, latents: int, size: int) -> Codebook:
    """Values of each dimension, evenly spread from -1/2 to 1/2 at first [1]."""
    return Codebook(torch.linspace(-0.5, 0.5, size).repeat(runs, latents, 1))


def shared_codebook(streams: Sequence[Stream], size: int) -> Codebook:
    """Values of all dimensions, standard normal at first [2]."""
    values = np.stack([stream.child("weights", "codebook").normal(1, size) for stream in streams])
    return Codebook(torch.from_numpy(values).float())


class QuantisedAutoencoder(nn.Module):
    """The usual encoder and decoder, with a codebook between them; the encoder's log_var is not used."""

    def __init__(
        self,
        streams: Sequence[Stream],
        shape: tuple[int, int, int],
        latents: int,
        architecture: str,
        codebook: Codebook,
        likelihood: str = "bernoulli",
    ) -> None:
        super().__init__()
        self.encoder = build_encoder(streams, shape, latents, architecture)
        self.codebook = codebook
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

    def takes_codes(self) -> str:
        """The decoder."""
        return "decoder"

    def squared_weights(self) -> Tensor:
        """(P,): the sum of all squared weights of encoder and decoder, without biases and codebook."""
        layers = [part for part in self.modules() if isinstance(part, Layer)]
        squares = [layer.weight.square() for layer in layers]
        return torch.stack([square.sum(dim=tuple(range(1, square.ndim))) for square in squares]).sum(dim=0)
