"""Networks of a variational autoencoder with several layers of latents, each with a prior given those above.

[1] Sønderby, Raiko, Maaløe, Sønderby, Winther: Ladder variational autoencoders, NeurIPS 2016.
[2] Child: Very deep VAEs generalize autoregressive models and can outperform them on images, ICLR 2021.

Layers are counted from the images, z_1 .. z_L; in tensors and lists the top layer comes first, in the order
in which latents are drawn. A layer's code is the position of its latents in their prior: z_l = prior mean +
prior deviation x code. So the codes of all layers have a standard normal prior, independent of the layers
above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from unweave.errors import UnweaveError
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.layers import Linear, at_least_float32, heads
from unweave.nn.networks.architectures import build_decoder, build_encoder
from unweave.streams import Stream

WIDTH = 256  # features of the dense layers between two layers of latents


@dataclass(frozen=True)
class Inferred:
    """The result of a top-down pass."""

    posteriors: list[Gaussian]  # of the codes of each layer, given the layers above
    latents: Tensor  # (P, B, D): z of all layers

    @property
    def posterior(self) -> Gaussian:
        """Of the codes of all layers, (P, B, D), given the latents above that were drawn."""
        means, log_vars = zip(*((layer.mean, layer.log_var) for layer in self.posteriors), strict=True)
        return Gaussian(torch.cat(means, dim=-1), torch.cat(log_vars, dim=-1))


class Ladder(nn.Module):
    """The encoder, the priors of all layers but the top one, and the decoder."""

    def __init__(
        self,
        streams: Sequence[Stream],
        shape: tuple[int, int, int],
        latents: int,
        architecture: str,
        layers: int,
        likelihood: str = "bernoulli",
    ) -> None:
        super().__init__()
        self.sizes = layer_sizes(latents, layers)
        self.bottom_up = BottomUp(streams, shape, self.sizes, architecture)
        self.priors = nn.ModuleList()
        above = self.sizes[0]
        for layer, size in zip(range(layers - 1, 0, -1), self.sizes[1:], strict=True):
            self.priors.append(Prior(streams, layer, above, size))
            above += size
        self.decoder = build_decoder(streams, shape, latents, architecture, likelihood)

    def infer(self, images: Tensor, noise: Tensor) -> Inferred:
        """Draw the latents of images (P, B, c, h, w) layer by layer, with noise (P, B, D)."""
        evidence, noises = self.bottom_up(images), noise.split(self.sizes, dim=-1)
        posteriors = [evidence[0]]
        z = evidence[0].sample(noises[0])
        for prior_of, layer_evidence, layer_noise in zip(self.priors, evidence[1:], noises[1:], strict=True):
            prior = prior_of(z)
            posteriors.append(precision_weighted(layer_evidence, prior))
            z = torch.cat([z, prior.sample(posteriors[-1].sample(layer_noise))], dim=-1)
        return Inferred(posteriors, z)

    def encode(self, images: Tensor) -> Gaussian:
        """q of each layer's codes given the means of the layers above, all layers concatenated."""
        no_noise = torch.zeros(*images.shape[:2], sum(self.sizes), device=images.device)
        return self.infer(images, no_noise).posterior

    def decode(self, codes: Tensor) -> Tensor:
        """Decoder output; the codes of a layer also move the latents of all layers below."""
        return self.decoder.decode(self.latents(codes))

    def latents(self, codes: Tensor) -> Tensor:
        """z of all layers, (P, B, D), from codes (P, B, D)."""
        parts: Sequence[Tensor] = codes.split(self.sizes, dim=-1)
        z = parts[0]
        for prior_of, code in zip(self.priors, parts[1:], strict=True):
            z = torch.cat([z, prior_of(z).sample(code)], dim=-1)
        return z


class BottomUp(nn.Module):
    """Images (P, B, c, h, w) -> a Gaussian likelihood of each layer's latents, the top layer first.

    The bottom layer uses the features of the usual encoder; each further one is a dense layer later.
    """

    def __init__(
        self, streams: Sequence[Stream], shape: tuple[int, int, int], sizes: Sequence[int], architecture: str
    ) -> None:
        super().__init__()
        self.encoder = build_encoder(streams, shape, sizes[-1], architecture)
        self.dense, self.heads = nn.ModuleList(), nn.ModuleList()
        inputs = self.encoder.width
        for layer, size in enumerate(reversed(sizes[:-1]), 2):
            names = f"ladder.mean{layer}", f"ladder.log_var{layer}"
            self.dense.append(Linear(streams, f"ladder.dense{layer}", inputs, WIDTH, "relu"))
            self.heads.append(heads(streams, names, WIDTH, size, last=True))
            inputs = WIDTH

    def forward(self, images: Tensor) -> list[Gaussian]:
        """One Gaussian per layer."""
        features = self.encoder.features(images)
        gaussians = [_gaussian(self.encoder.heads(features))]
        for dense, head in zip(self.dense, self.heads, strict=True):
            features = dense(features)
            gaussians.append(_gaussian(head(features)))
        return gaussians[::-1]


class Prior(nn.Module):
    """The latents of all layers above (P, B, above) -> the Gaussian that a layer's latents are drawn from."""

    def __init__(self, streams: Sequence[Stream], layer: int, above: int, size: int) -> None:
        super().__init__()
        self.dense = Linear(streams, f"prior{layer}.dense", above, WIDTH, "relu")
        self.heads = heads(streams, (f"prior{layer}.mean", f"prior{layer}.log_var"), WIDTH, size, last=True)

    def forward(self, z: Tensor) -> Gaussian:
        """p(z_l | z_l+1, ..., z_L)."""
        return _gaussian(self.heads(self.dense(z)))


def precision_weighted(evidence: Gaussian, prior: Gaussian) -> Gaussian:
    """The normalised product of both densities, in units of the prior; the inference of [1].

    The precision of the product is the sum of both precisions, its mean the mean of both weighted by them.
    What is returned is the distribution of (z - prior mean) / prior deviation. So its KL divergence from
    N(0, I) is that of the product from the prior. It is never wider than the prior.
    """
    surprise = (evidence.mean - prior.mean) * torch.exp(-0.5 * prior.log_var)
    log_ratio = prior.log_var - evidence.log_var  # of the precisions of evidence and prior
    return Gaussian(torch.sigmoid(log_ratio) * surprise, -softplus(log_ratio))


def layer_sizes(latents: int, layers: int) -> list[int]:
    """How many latents each layer has, the top one first: as equal as possible, the rest further down.

    >>> layer_sizes(10, 3)
    [3, 3, 4]
    """
    if latents < layers:
        raise UnweaveError(f"a ladder of {layers} layers needs at least {layers} latents; got {latents}.")
    return [latents * (n + 1) // layers - latents * n // layers for n in range(layers)]


def _gaussian(heads_out: Tensor) -> Gaussian:
    """Mean and log_var, in float32 at least."""
    full = at_least_float32(heads_out)
    return Gaussian(*full.chunk(2, dim=-1))
