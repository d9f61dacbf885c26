"""The networks of the published study.

`released` are those of the code behind the study, `table2` those of its paper's Table 2, and `mlp` its fully
connected pair. Images are flattened in the order height, width, channels, as that code does; layers keep the
channels-last layout in memory, in which this needs no copy.

Locatello, Bauer, Lucic, Rätsch, Gelly, Schölkopf, Bachem: Challenging common assumptions in the unsupervised
learning of disentangled representations, ICML 2019.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from unweave.nn.layers import (
    Activation,
    Conv2d,
    ConvTranspose2d,
    Linear,
    heads,
    through,
    through_to_likelihood,
)
from unweave.nn.networks.sizes import Sizes
from unweave.nn.networks.vae import Decoder, Encoder, check_input, dense_layers
from unweave.streams import Stream


@dataclass(frozen=True)
class Plan:
    """The hidden layers of an encoder and its decoder."""

    convolutions: tuple[tuple[int, int, int], ...]  # channels, kernel, padding
    encoder: tuple[int, ...]  # widths of the dense layers
    decoder: tuple[int, ...]
    decoder_activation: Activation
    transposed: tuple[int, ...]  # channels; the image's own channels follow


PLANS = {
    "released": Plan(
        convolutions=((32, 4, 1), (32, 4, 1), (64, 2, 0), (64, 2, 0)),
        encoder=(256,),
        decoder=(256,),
        decoder_activation="relu",
        transposed=(64, 32, 32),
    ),
    "table2": Plan(
        convolutions=((32, 4, 1), (32, 4, 1), (64, 4, 1), (64, 4, 1)),
        encoder=(256,),
        decoder=(256,),
        decoder_activation="relu",
        transposed=(64, 32, 32),
    ),
    "mlp": Plan(
        convolutions=(),
        encoder=(1200, 1200),
        decoder=(1200, 1200, 1200),
        decoder_activation="tanh",
        transposed=(),
    ),
}

SMALLEST, MULTIPLE = 32, 16  # sizes of an image that can be halved four times
CONVOLUTIONAL_SIZES = Sizes(SMALLEST, MULTIPLE)
FIRST_CHANNELS = 64  # of the small image that the decoder's convolutions start from


class PublishedEncoder(Encoder):
    """Convolutions that halve the image, if the plan has any, and dense layers."""

    def __init__(
        self, streams: Sequence[Stream], shape: tuple[int, int, int], latents: int, plan: Plan
    ) -> None:
        super().__init__(shape)
        channels, height, width = shape
        self.convolutions = nn.ModuleList()
        for number, (outputs, kernel, padding) in enumerate(plan.convolutions, 1):
            name = f"encoder.conv{number}"
            self.convolutions.append(Conv2d(streams, name, channels, outputs, kernel, padding, "relu"))
            channels, height, width = outputs, height // 2, width // 2
        widths = (height * width * channels, *plan.encoder)
        self.dense = dense_layers(streams, "encoder", widths, "relu")
        self.heads = heads(streams, ("encoder.mean", "encoder.log_var"), widths[-1], latents, last=True)

    def features(self, images: Tensor) -> Tensor:
        """The output of the last dense layer."""
        features: Tensor = self.dense(through(self.convolutions, images).permute(0, 1, 3, 4, 2).flatten(2))
        return features


class PublishedDecoder(Decoder):
    """Dense layers, and transposed convolutions that double the image, if the plan has any."""

    def __init__(
        self, streams: Sequence[Stream], shape: tuple[int, int, int], latents: int, plan: Plan
    ) -> None:
        super().__init__(latents)
        channels, height, width = shape
        self.first_image = (height, width, channels)
        if plan.transposed:
            self.first_image = (height // 16, width // 16, FIRST_CHANNELS)
        self.dense = dense_layers(streams, "decoder", (latents, *plan.decoder), plan.decoder_activation)
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

    def output(self, z: Tensor) -> Tensor:
        """Through all layers."""
        return through(self.convolutions, self._small_image(z))

    def reconstruction(self, z: Tensor, images: Tensor, likelihood: str) -> Tensor:
        """(P,): the loss of the output, in one pass where the kernels can do that."""
        check_input(self, z, (self.latents,))
        return through_to_likelihood(self.convolutions, self._small_image(z), images, likelihood)

    def _small_image(self, z: Tensor) -> Tensor:
        image: Tensor = self.to_image(self.dense(z)).unflatten(2, self.first_image)
        return image.permute(0, 1, 4, 2, 3)
