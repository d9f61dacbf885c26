"""Networks of the variational ladder autoencoder: flat latents that enter and leave at different depths.

[1] Zhao, Song, Ermon: Learning hierarchical features from deep generative models, ICML 2017.
[2] The authors' program: github.com/ermongroup/Variational-Ladder-Autoencoder.

Images pass three stages: two convolutions, two convolutions, two dense layers. The latents of a depth are
inferred from the features of their stage, and enter the decoder at the mirrored stage. In tensors the top,
which is the deepest, comes first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.distributions.likelihood import likelihood_named
from unweave.nn.layers import (
    Activation,
    Conv2d,
    ConvTranspose2d,
    Linear,
    at_least_float32,
    heads,
    through,
    through_to_likelihood,
)
from unweave.nn.networks.ladder import layer_sizes
from unweave.nn.networks.sizes import Sizes
from unweave.nn.networks.vae import check_input, dense_layers
from unweave.streams import Stream

DEPTHS = 3
SIZES = Sizes(32, 16)  # images that can be halved four times
WIDTH = 256  # of dense layers
NARROW, WIDE = 32, 64  # channels of the lower and of the upper stage of convolutions


class VariationalLadder(nn.Module):
    """Encoder and decoder; `sizes` are the numbers of latents of the depths, the top first."""

    def __init__(
        self, streams: Sequence[Stream], shape: tuple[int, int, int], latents: int, likelihood: str
    ) -> None:
        super().__init__()
        SIZES.check(shape, "a variational ladder autoencoder")
        self.shape, self.sizes = shape, layer_sizes(latents, DEPTHS)
        self.encoder = LadderEncoder(streams, shape, self.sizes)
        outputs = likelihood_named(likelihood).outputs * shape[0]
        self.decoder = LadderDecoder(streams, (outputs, *shape[1:]), self.sizes)

    def encode(self, images: Tensor) -> Gaussian:
        """q(z|x) of all depths, (P, B, D)."""
        check_input(self, images, self.shape)
        posterior: Gaussian = self.encoder(images)
        return posterior

    def decode(self, codes: Tensor) -> Tensor:
        """Decoder output (P, B, k C, H, W)."""
        check_input(self, codes, (sum(self.sizes),))
        output: Tensor = self.decoder(codes)
        return output

    def reconstruction(self, z: Tensor, images: Tensor, likelihood: str) -> Tensor:
        """(P,): -log p(x|z), summed over pixels, mean over the batch."""
        features = self.decoder.features(z)
        return through_to_likelihood(self.decoder.lower, features, images, likelihood)


class LadderEncoder(nn.Module):
    """Images (P, B, C, H, W) -> q(z|x): h_l = g_l(h_l-1), q(z_l|x) = N(mu_l(h_l), sigma_l(h_l)); [1]."""

    def __init__(self, streams: Sequence[Stream], shape: tuple[int, int, int], sizes: Sequence[int]) -> None:
        super().__init__()
        channels, height, width = shape
        self.lower = _convolutions(streams, 1, (channels, NARROW, NARROW))
        self.upper = _convolutions(streams, 3, (NARROW, WIDE, WIDE))
        features = (height // 16) * (width // 16) * WIDE
        self.top = dense_layers(streams, "encoder.top", (features, WIDTH, WIDTH), "relu")
        inputs = (WIDTH, features, (height // 4) * (width // 4) * NARROW)
        self.readers = nn.ModuleList(
            Reader(streams, f"encoder.depth{depth}", before, size)
            for depth, before, size in zip(range(DEPTHS, 0, -1), inputs, sizes, strict=True)
        )

    def forward(self, images: Tensor) -> Gaussian:
        """Mean and log_var of all depths, the top first."""
        lower = through(self.lower, images)
        upper = through(self.upper, lower)
        features = [self.top(_flat(upper)), _flat(upper), _flat(lower)]
        read = [reader(part) for reader, part in zip(self.readers, features, strict=True)]
        means, log_vars = zip(*(output.chunk(2, dim=-1) for output in read), strict=True)
        return Gaussian(torch.cat(means, dim=-1), torch.cat(log_vars, dim=-1))


class LadderDecoder(nn.Module):
    """z of all depths (P, B, D) -> images: t_l = f_l(t_l+1, z_l), p(x|t_1); [1].

    The latents of a depth are mapped to features of the size of those above, and both are concatenated.
    """

    def __init__(self, streams: Sequence[Stream], shape: tuple[int, int, int], sizes: Sequence[int]) -> None:
        super().__init__()
        channels, height, width = shape
        self.sizes = tuple(sizes)
        self.small, self.middle = (height // 16, width // 16, WIDE), (height // 4, width // 4, NARROW)
        self.top = dense_layers(streams, "decoder.top", (sizes[0], WIDTH, WIDTH), "relu")
        self.writers = nn.ModuleList(
            [
                Linear(streams, "decoder.depth2", sizes[1], WIDTH, "relu"),
                Linear(streams, "decoder.depth1", sizes[2], math.prod(self.middle), "relu"),
            ]
        )
        self.to_image = Linear(streams, "decoder.image", 2 * WIDTH, math.prod(self.small), "relu")
        self.upper = _transposed(streams, 1, (WIDE, WIDE, NARROW), "relu")
        self.lower = _transposed(streams, 3, (2 * NARROW, NARROW, channels), "none")

    def forward(self, z: Tensor) -> Tensor:
        """The parameters of the likelihood, in float32."""
        return at_least_float32(through(self.lower, self.features(z)))

    def features(self, z: Tensor) -> Tensor:
        """The input of the last two transposed convolutions, at a quarter of the image's height and width."""
        top, middle, bottom = z.split(self.sizes, dim=-1)
        joined = torch.cat([self.top(top), self.writers[0](middle)], dim=-1)
        above = through(self.upper, _image(self.to_image(joined), self.small))
        return torch.cat([above, _image(self.writers[1](bottom), self.middle)], dim=2)


class Reader(nn.Module):
    """Features (P, B, width) -> means and log variances of the latents of a depth, (P, B, 2 size)."""

    def __init__(self, streams: Sequence[Stream], name: str, inputs: int, size: int) -> None:
        super().__init__()
        self.dense = Linear(streams, f"{name}.dense", inputs, WIDTH, "relu")
        self.heads = heads(streams, (f"{name}.mean", f"{name}.log_var"), WIDTH, size, last=True)

    def forward(self, features: Tensor) -> Tensor:
        """Means, then log variances, in float32 at least."""
        return at_least_float32(self.heads(self.dense(features)))


def _convolutions(streams: Sequence[Stream], first: int, channels: Sequence[int]) -> nn.ModuleList:
    return nn.ModuleList(
        Conv2d(streams, f"encoder.conv{first + n}", channels[n], channels[n + 1], activation="relu")
        for n in range(len(channels) - 1)
    )


def _transposed(
    streams: Sequence[Stream], first: int, channels: Sequence[int], last: Activation
) -> nn.ModuleList:
    hidden: list[Activation] = ["relu"] * (len(channels) - 2)
    return nn.ModuleList(
        ConvTranspose2d(
            streams, f"decoder.deconv{first + n}", channels[n], channels[n + 1], activation=activation
        )
        for n, activation in enumerate([*hidden, last])
    )


def _flat(images: Tensor) -> Tensor:
    return images.permute(0, 1, 3, 4, 2).flatten(2)


def _image(features: Tensor, size: tuple[int, int, int]) -> Tensor:
    image: Tensor = features.unflatten(2, size)
    return image.permute(0, 1, 4, 2, 3)
