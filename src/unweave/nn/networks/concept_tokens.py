"""A diffusion autoencoder whose code is a few numbers, each with a token of its own, as EncDiff [1].

The architecture's encoder makes a code of each image. A small network per dimension of the code, which no
other dimension shares, turns its number into a token. A U-Net removes noise from images, and looks at the
tokens.

[1] Yang, Lan, Lu, Zheng: Diffusion model with cross attention as an inductive bias for disentanglement,
NeurIPS 2024.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.nn.diffusion import ddim, noise_of_velocity, signal_shares, velocity, with_noise
from unweave.nn.distributions.gaussian import Gaussian, certain
from unweave.nn.layers import as_numbers, at_least_float32, glorot_uniform
from unweave.nn.networks.architectures import build_encoder
from unweave.nn.networks.denoiser import Denoiser
from unweave.nn.networks.vae import check_input
from unweave.streams import Stream

WIDTHS = (64, 128)  # of the hidden layers between a number and its token
# Decoded images stay this far from black and white, so that their logits are finite; bytes round it away.
MARGIN = 1 / 1024


class ConceptTokens(nn.Module):
    """Codes (P, B, k) -> tokens (P, B, k, d); token i is a function of code i alone, different for each i."""

    def __init__(self, streams: Sequence[Stream], count: int, width: int) -> None:
        super().__init__()
        sizes = list(pairwise((1, *WIDTHS, width)))
        self.weights = nn.ParameterList(
            glorot_uniform(streams, f"tokens.dense{number}", (count, *size), sum(size))
            for number, size in enumerate(sizes, 1)
        )
        self.biases = nn.ParameterList(torch.zeros(len(streams), count, 1, size[1]) for size in sizes)

    def forward(self, codes: Tensor) -> Tensor:
        """Dense layers with an ELU between two of them."""
        x = at_least_float32(codes).transpose(1, 2).unsqueeze(-1)
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = (F.elu(x) if number else x) @ weight + bias
        return x.transpose(1, 2)


class DiffusionAutoencoder(nn.Module):
    """Encoder, tokens and U-Net; images are numbers from -1 to 1 where noise is added."""

    shares: Tensor  # (times,): of the image in the variance of a noisy image
    start: Tensor  # (c, h, w): the noise that every image is decoded from

    def __init__(
        self,
        streams: Sequence[Stream],
        shape: tuple[int, int, int],
        latents: int,
        architecture: str,
        denoiser: Denoiser,
        token_width: int,
        ddim_steps: int,
    ) -> None:
        super().__init__()
        self.shape, self.latents, self.ddim_steps = shape, latents, ddim_steps
        self.encoder = build_encoder(streams, shape, latents, architecture)
        self.concepts = ConceptTokens(streams, latents, token_width)
        self.denoiser = denoiser
        # The same for all runs, so it is no part of their weights.
        start = Stream.of(0).child("start of decoding").normal(1, math.prod(shape))
        self.register_buffer("start", torch.from_numpy(start).float().view(shape), persistent=False)
        shares = torch.from_numpy(signal_shares().copy()).float()
        self.register_buffer("shares", shares, persistent=False)

    def encode(self, images: Tensor) -> Gaussian:
        """The codes (P, B, k) of images (P, B, c, h, w), without noise."""
        return certain(self.encoder(images).mean)

    def tokens(self, codes: Tensor) -> Tensor:
        """(P, B, k) -> (P, B, k, d)."""
        check_input(self, codes, (self.latents,))
        tokens: Tensor = self.concepts(codes)
        return tokens

    def noisy(self, images: Tensor, noise: Tensor, times: Tensor) -> Tensor:
        """Images (P, B, c, h, w), bytes or numbers from 0 to 1, with noise, at times (P, B)."""
        return with_noise(_centred(images), noise, self._shares(times))

    def velocity(self, images: Tensor, noise: Tensor, times: Tensor) -> Tensor:
        """What `predicted_velocity` should be, for images and noise (P, B, c, h, w)."""
        return velocity(_centred(images), noise, self._shares(times))

    def predicted_velocity(self, x: Tensor, times: Tensor, tokens: Tensor) -> Tensor:
        """Of noisy images (P, B, c, h, w) at times (P, B)."""
        v: Tensor = self.denoiser(x, times, tokens)
        return v

    def predicted_noise(self, x: Tensor, times: Tensor, tokens: Tensor) -> Tensor:
        """The noise in such images."""
        return noise_of_velocity(x, self.predicted_velocity(x, times, tokens), self._shares(times))

    def decode(self, codes: Tensor) -> Tensor:
        """Logits (P, B, c, h, w) of the images that DDIM makes of codes, from the same noise for all."""
        tokens, (runs, rows) = self.tokens(codes), codes.shape[:2]

        def predicted(x: Tensor, time: int) -> Tensor:
            times = torch.full((runs, rows), time, device=x.device)
            return self.predicted_noise(x, times, tokens)

        start = self.start.expand(runs, rows, *self.shape)
        images = (ddim(predicted, start, self.ddim_steps, limit=1.0) + 1) / 2
        images = images.clamp(MARGIN, 1 - MARGIN)
        return torch.log(images / (1 - images))

    def _shares(self, times: Tensor) -> Tensor:
        """(P, B) -> (P, B, 1, 1, 1)."""
        return self.shares[times][..., None, None, None]


def _centred(images: Tensor) -> Tensor:
    """Bytes, or numbers from 0 to 1, as numbers from -1 to 1."""
    return 2 * as_numbers(images) - 1
