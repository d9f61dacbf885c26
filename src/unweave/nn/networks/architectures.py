"""Architectures by name: which encoder and decoder are built for images of a shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from unweave.nn.distributions.likelihood import likelihood_named
from unweave.nn.networks.published import CONVOLUTIONAL_SIZES, PLANS, PublishedDecoder, PublishedEncoder
from unweave.nn.networks.resnet import SIZES as RESNET_SIZES
from unweave.nn.networks.resnet import ResNetDecoder, ResNetEncoder
from unweave.nn.networks.sizes import Sizes, check_shape
from unweave.nn.networks.vae import Decoder, Encoder, check_positive
from unweave.plugins.loading import record_named
from unweave.streams import Stream

DEFAULT = "released"


@dataclass(frozen=True)
class Architecture:
    """A pair of networks.

    `build_encoder` and `build_decoder` take one stream of initial weights for each run of a population, the
    shape (channels, height, width) of an image, and the number of latents. They return an `Encoder` and a
    `Decoder` of `unweave.nn.networks.vae`. The shape that `build_decoder` gets has as many channels as the
    decoder must make.
    """

    name: str
    description: str
    build_encoder: Callable[[Sequence[Stream], tuple[int, int, int], int], Encoder]
    build_decoder: Callable[[Sequence[Stream], tuple[int, int, int], int], Decoder]
    sizes: Sizes = field(default_factory=Sizes)  # heights and widths that it takes

    def encoder(self, streams: Sequence[Stream], shape: tuple[int, int, int], latents: int) -> Encoder:
        """Build the encoder for images of that shape."""
        self.check(shape, latents)
        return self.build_encoder(streams, shape, latents)

    def decoder(
        self, streams: Sequence[Stream], shape: tuple[int, int, int], latents: int, likelihood: str
    ) -> Decoder:
        """Build the decoder for images of that shape, with the outputs that the likelihood needs."""
        self.check(shape, latents)
        channels, height, width = shape
        outputs = likelihood_named(likelihood).outputs
        return self.build_decoder(streams, (outputs * channels, height, width), latents)

    def check(self, shape: tuple[int, int, int], latents: int) -> None:
        """Refuse images or codes that the networks cannot be built for."""
        check_positive("latents", latents)
        check_shape(shape)
        others = [f'"{other.name}"' for other in ARCHITECTURES.values() if other.sizes.accepts(shape)]
        advice = f"Resize them, or use architecture {' or '.join(others)}."
        self.sizes.check(shape, f'architecture "{self.name}"', advice)


def architecture_named(name: str) -> Architecture:
    """The architecture of that name, built in or of a plug-in; every lookup goes through this function."""
    return record_named("architecture", name, Architecture, ARCHITECTURES)


def build_encoder(
    streams: Sequence[Stream], shape: tuple[int, int, int], latents: int, architecture: str = DEFAULT
) -> Encoder:
    """The encoder of an architecture."""
    return architecture_named(architecture).encoder(streams, shape, latents)


def build_decoder(
    streams: Sequence[Stream],
    shape: tuple[int, int, int],
    latents: int,
    architecture: str = DEFAULT,
    likelihood: str = "bernoulli",
) -> Decoder:
    """The decoder of an architecture, for a likelihood."""
    return architecture_named(architecture).decoder(streams, shape, latents, likelihood)


def _published(name: str, description: str, sizes: Sizes) -> Architecture:
    plan = PLANS[name]
    builders = partial(PublishedEncoder, plan=plan), partial(PublishedDecoder, plan=plan)
    return Architecture(name, description, *builders, sizes)


_BUILT_IN = (
    _published("released", "convolutions of the published models", CONVOLUTIONAL_SIZES),
    _published("table2", "convolutions as the study's paper prints them", CONVOLUTIONAL_SIZES),
    _published("mlp", "dense layers only, for images of any size", Sizes()),
    Architecture(
        "resnet",
        "residual blocks, for images of any size from 16 to 256",
        ResNetEncoder,
        ResNetDecoder,
        RESNET_SIZES,
    ),
)
ARCHITECTURES: Mapping[str, Architecture] = {entry.name: entry for entry in _BUILT_IN}
