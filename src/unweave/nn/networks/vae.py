"""The common part of encoders and decoders of all architectures, and the discriminator of codes.

Encoders and decoders are built by `unweave.nn.networks.architectures`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.distributions.likelihood import reconstruction_loss
from unweave.nn.layers import Activation, Linear, as_numbers, at_least_float32, num_runs
from unweave.streams import Stream


class Encoder(nn.Module, ABC):
    """Images (P, B, C, H, W) -> the posterior of each, N(mean, diag(exp(log_var))), in float32.

    An architecture computes the features of images and builds `heads`, the last layer: means, then log
    variances. `unweave.nn.layers.heads` makes such a layer.
    """

    heads: Linear

    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.shape = shape

    @abstractmethod
    def features(self, images: Tensor) -> Tensor:
        """(P, B, width): the input of the last layer. Images are bytes, or numbers in [0, 1]."""

    @property
    def width(self) -> int:
        """How many features there are."""
        return self.heads.weight.shape[1]

    def forward(self, x: Tensor) -> Gaussian:
        """q(z|x), mean and log_var (P, B, D)."""
        check_input(self, x, self.shape)
        mean, log_var = at_least_float32(self.heads(self.features(x))).chunk(2, dim=-1)
        return Gaussian(mean, log_var)

    def encode(self, images: Tensor) -> Gaussian:
        """q(z|x)."""
        posterior: Gaussian = self(images)
        return posterior


class Decoder(nn.Module, ABC):
    """Codes (P, B, D) -> (P, B, k C, H, W) in float32, the parameters of a likelihood; mostly logits.

    k is the number of outputs that the likelihood needs for each channel: 1, or 2 with a learned variance.
    """

    def __init__(self, latents: int) -> None:
        super().__init__()
        self.latents = latents

    @abstractmethod
    def output(self, z: Tensor) -> Tensor:
        """(P, B, k C, H, W), in any precision."""

    def forward(self, z: Tensor) -> Tensor:
        """The output in float32."""
        check_input(self, z, (self.latents,))
        return at_least_float32(self.output(z))

    def decode(self, codes: Tensor) -> Tensor:
        """The output for codes."""
        output: Tensor = self(codes)
        return output

    def reconstruction(self, z: Tensor, images: Tensor, likelihood: str) -> Tensor:
        """(P,): the loss of the output by the likelihood of that name."""
        return reconstruction_loss(self(z), as_numbers(images), likelihood)


class Discriminator(nn.Module):
    """Codes (P, B, D) -> two logits (P, B, 2), in float32; FactorVAE's has 6 layers of 1000.

    Kim, Mnih: Disentangling by factorising, ICML 2018.
    """

    def __init__(self, streams: Sequence[Stream], latents: int, width: int = 1000, depth: int = 6) -> None:
        super().__init__()
        for name, number in (("latents", latents), ("width", width), ("depth", depth)):
            check_positive(name, number)
        self.latents = latents
        self.dense = dense_layers(streams, "discriminator", (latents, *[width] * depth), "leaky_relu")
        self.logits = Linear(streams, "discriminator.logits", width, 2)

    def forward(self, z: Tensor) -> Tensor:
        """Logits (P, B, 2)."""
        check_input(self, z, (self.latents,))
        return at_least_float32(self.logits(self.dense(z)))


def dense_layers(
    streams: Sequence[Stream], network: str, widths: Sequence[int], activation: Activation
) -> nn.Sequential:
    """Dense layers from one width to the next, called network.dense1, network.dense2, ..."""
    return nn.Sequential(
        *(
            Linear(streams, f"{network}.dense{number}", inputs, outputs, activation)
            for number, (inputs, outputs) in enumerate(pairwise(widths), 1)
        )
    )


def check_positive(name: str, number: int) -> None:
    """Refuse a value that is not a whole number of at least 1."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise UnweaveError(f"{name} must be a whole number >= 1; got {number!r}.")


def check_input(network: nn.Module, x: Tensor, shape: tuple[int, ...]) -> None:
    """Refuse a batch whose runs or features do not fit the network."""
    if x.ndim != 2 + len(shape) or len(x) != num_runs(network) or x.shape[2:] != shape:
        expected = ", ".join(map(str, (num_runs(network), "batch", *shape)))
        kind = next(k.__name__ for k in (Encoder, Decoder, type(network)) if isinstance(network, k)).lower()
        raise UnweaveError(f"This {kind} takes tensors of shape ({expected}); got {tuple(x.shape)}.")
