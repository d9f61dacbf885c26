"""The encoders, decoders and discriminators of the literature, for a population of runs.

`released` are the networks of the code behind the published study, `table2` those of its paper's Table 2,
and `mlp` its fully connected pair. Images are flattened in the order height, width, channels, as that code
does; layers keep the channels-last layout in memory, in which this needs no copy.

Locatello, Bauer, Lucic, Rätsch, Gelly, Schölkopf, Bachem: Challenging common assumptions in the unsupervised
learning of disentangled representations, ICML 2019.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from torch import Tensor, nn

from unweave.errors import UnweaveError, did_you_mean
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.distributions.likelihood import Likelihood
from unweave.nn.layers import (
    Activation,
    Conv2d,
    ConvTranspose2d,
    Linear,
    at_least_float32,
    heads,
    num_runs,
    through,
    through_to_likelihood,
)
from unweave.streams import Stream


@dataclass(frozen=True)
class _Plan:
    """The hidden layers of an encoder and its decoder."""

    convolutions: tuple[tuple[int, int, int], ...]  # channels, kernel, padding
    encoder: tuple[int, ...]  # widths of the dense layers
    decoder: tuple[int, ...]
    decoder_activation: Activation
    transposed: tuple[int, ...]  # channels; the image's own channels follow


_PLANS = {
    "released": _Plan(
        convolutions=((32, 4, 1), (32, 4, 1), (64, 2, 0), (64, 2, 0)),
        encoder=(256,),
        decoder=(256,),
        decoder_activation="relu",
        transposed=(64, 32, 32),
    ),
    "table2": _Plan(
        convolutions=((32, 4, 1), (32, 4, 1), (64, 4, 1), (64, 4, 1)),
        encoder=(256,),
        decoder=(256,),
        decoder_activation="relu",
        transposed=(64, 32, 32),
    ),
    "mlp": _Plan(
        convolutions=(),
        encoder=(1200, 1200),
        decoder=(1200, 1200, 1200),
        decoder_activation="tanh",
        transposed=(),
    ),
}
ARCHITECTURES = tuple(_PLANS)
Architecture: TypeAlias = Literal["released", "table2", "mlp"]

SMALLEST, MULTIPLE = 32, 16  # sizes of an image that can be halved four times
FIRST_CHANNELS = 64  # of the small image that the decoder's convolutions start from


class Encoder(nn.Module):
    """Images (P, B, C, H, W) -> the posterior of each, N(mean, diag(exp(log_var))), in float32."""

    def __init__(
        self,
        streams: Sequence[Stream],
        shape: tuple[int, int, int],
        latents: int,
        architecture: str = "released",
    ) -> None:
        super().__init__()
        plan = _plan(shape, latents, architecture)
        self.shape = shape
        channels, height, width = shape
        self.convolutions = nn.ModuleList()
        for number, (outputs, kernel, padding) in enumerate(plan.convolutions, 1):
            name = f"encoder.conv{number}"
            self.convolutions.append(Conv2d(streams, name, channels, outputs, kernel, padding, "relu"))
            channels, height, width = outputs, height // 2, width // 2
        widths = (height * width * channels, *plan.encoder)
        self.dense = _dense(streams, "encoder", widths, "relu")
        self.heads = heads(streams, ("encoder.mean", "encoder.log_var"), widths[-1], latents)

    def forward(self, x: Tensor) -> Gaussian:
        """q(z|x), mean and log_var (P, B, D)."""
        _check_input(self, x, self.shape)
        features = through(self.convolutions, x).permute(0, 1, 3, 4, 2).flatten(2)
        mean, log_var = at_least_float32(self.heads(self.dense(features))).chunk(2, dim=-1)
        return Gaussian(mean, log_var)


class Decoder(nn.Module):
    """Codes (P, B, D) -> logits of images (P, B, C, H, W), in float32."""

    def __init__(
        self,
        streams: Sequence[Stream],
        shape: tuple[int, int, int],
        latents: int,
        architecture: str = "released",
    ) -> None:
        super().__init__()
        plan = _plan(shape, latents, architecture)
        self.latents = latents
        channels, height, width = shape
        self.first_image = (height, width, channels)
        if plan.transposed:
            self.first_image = (height // 16, width // 16, FIRST_CHANNELS)
        self.dense = _dense(streams, "decoder", (latents, *plan.decoder), plan.decoder_activation)
        activation: Activation = "relu" if plan.transposed else "none"
        size = math.prod(self.first_image)
        self.to_image = Linear(streams, "decoder.image", plan.decoder[-1], size, activation)
        self.convolutions = nn.ModuleList()
        inputs = FIRST_CHANNELS
        for number, outputs in enumerate((*plan.transposed, channels) if plan.transposed else (), 1):
            activation = "relu" if number <= len(plan.transposed) else "none"
            name = f"decoder.deconv{number}"
            self.convolutions.append(ConvTranspose2d(streams, name, inputs, outputs, activation=activation))
            inputs = outputs

    def forward(self, z: Tensor) -> Tensor:
        """Logits (P, B, C, H, W)."""
        return at_least_float32(through(self.convolutions, self._small_image(z)))

    def reconstruction(self, z: Tensor, images: Tensor, likelihood: Likelihood) -> Tensor:
        """(P,): what `reconstruction_loss` says of the logits, in one go where that is faster."""
        return through_to_likelihood(self.convolutions, self._small_image(z), images, likelihood)

    def _small_image(self, z: Tensor) -> Tensor:
        _check_input(self, z, (self.latents,))
        image: Tensor = self.to_image(self.dense(z)).unflatten(2, self.first_image)
        return image.permute(0, 1, 4, 2, 3)


class Discriminator(nn.Module):
    """Codes (P, B, D) -> two logits (P, B, 2), in float32; FactorVAE's has 6 layers of 1000.

    Kim, Mnih: Disentangling by factorising, ICML 2018.
    """

    def __init__(self, streams: Sequence[Stream], latents: int, width: int = 1000, depth: int = 6) -> None:
        super().__init__()
        for name, number in (("latents", latents), ("width", width), ("depth", depth)):
            _check_positive(name, number)
        self.latents = latents
        self.dense = _dense(streams, "discriminator", (latents, *[width] * depth), "leaky_relu")
        self.logits = Linear(streams, "discriminator.logits", width, 2)

    def forward(self, z: Tensor) -> Tensor:
        """Logits (P, B, 2)."""
        _check_input(self, z, (self.latents,))
        return at_least_float32(self.logits(self.dense(z)))


def _dense(
    streams: Sequence[Stream], network: str, widths: Sequence[int], activation: Activation
) -> nn.Sequential:
    """Dense layers from one width to the next."""
    return nn.Sequential(
        *(
            Linear(streams, f"{network}.dense{number}", inputs, outputs, activation)
            for number, (inputs, outputs) in enumerate(pairwise(widths), 1)
        )
    )


def _plan(shape: tuple[int, int, int], latents: int, architecture: str) -> _Plan:
    if architecture not in _PLANS:
        raise UnweaveError(
            f'Unknown architecture "{architecture}". {did_you_mean(architecture, ARCHITECTURES)}'
        )
    _check_positive("latents", latents)
    if len(shape) != 3 or min(shape) < 1:
        raise UnweaveError(f"The shape of an image must be (channels, height, width), all >= 1; got {shape}.")
    plan = _PLANS[architecture]
    if plan.convolutions and any(size < SMALLEST or size % MULTIPLE for size in shape[1:]):
        raise UnweaveError(
            f'Images for architecture "{architecture}" must have height and width of at least {SMALLEST}, in '
            f'multiples of {MULTIPLE}; got {shape[1]} x {shape[2]}. Resize them, or take architecture "mlp".'
        )
    return plan


def _check_positive(name: str, number: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise UnweaveError(f"{name} must be a whole number >= 1; got {number!r}.")


def _check_input(network: nn.Module, x: Tensor, shape: tuple[int, ...]) -> None:
    if x.ndim != 2 + len(shape) or len(x) != num_runs(network) or x.shape[2:] != shape:
        expected = ", ".join(map(str, (num_runs(network), "batch", *shape)))
        kind = type(network).__name__.lower()
        raise UnweaveError(f"This {kind} takes tensors of shape ({expected}); got {tuple(x.shape)}.")
