"""Glow [1]: an invertible network between images and latents, trained by its exact likelihood.

[1] Kingma, Dhariwal: Glow: generative flow with invertible 1x1 convolutions, NeurIPS 2018.
[2] Its authors' program: github.com/openai/glow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.methods.method import Blueprint, Losses, Method, Player, StepContext
from unweave.methods.step import network_of
from unweave.nn.distributions.gaussian import Gaussian, certain
from unweave.nn.distributions.likelihood import likelihood_named
from unweave.nn.layers import as_numbers
from unweave.nn.moving_average import MovingAverage
from unweave.nn.networks.flow import Flow
from unweave.nn.networks.principal_components import PrincipalComponents

FLOW, READ_OUT = "flow", "read_out"
# The share of a batch in the moving averages of the read-out, which then cover the last 50 batches or so.
READ_OUT_SHARE = 0.02
MIDDLE = 0.5  # of the interval of a grey level
# Decoded images stay this far from black and white, so that their logits are finite; bytes round it away.
MARGIN = 1 / 1024


@dataclass(frozen=True)
class Glow(Method):
    """Glow: an invertible network that gives the exact likelihood of images.

    -mean log2 p(x) / D + n_bits_x: bits per dimension of images of D pixels times channels; [1], equation 2.

    p is the density that an invertible network makes of independent standard normal latents. The network has
    `n_levels` levels of `depth` steps, each a normalisation, an invertible 1 x 1 convolution and an affine
    coupling whose network has `width` channels. Grey levels become continuous by uniform noise of the width
    of one level. Of the 8 bits of a pixel, the first `n_bits_x` are used.

    There are as many latents as pixels times channels. The codes are a read-out of them: the first principal
    components of the latents of images in the middle of their grey levels, each divided by its deviation.
    Moving averages follow the components while the flow learns, which they have no effect on. Decoding sets
    all other components to 0.

    [1] has n_levels 3 to 6, depth 32 to 64 and width 512. The defaults here are smaller, for populations of
    runs on images of 64 x 64.

    Differs from [2]: Adam instead of Adamax; the first batch initialises normalisations, not 256 images;
    W = P L U, of which [2] has both versions; no labels. See docs/methods/glow.md.
    """

    n_levels: int = 3
    """Levels; height and width of images must be multiples of 2 to this power."""
    depth: int = 4
    """Steps of each level (K in the paper)."""
    width: int = 64
    """Channels of the hidden layers of couplings."""
    n_bits_x: int = 8
    """How many bits of each grey level are modelled, 1 to 8."""

    name: ClassVar[str] = "glow"
    has_prior: ClassVar[bool] = False
    own_networks: ClassVar[bool] = True
    run_defaults: ClassVar[Mapping[str, Any]] = {"learning_rate": 1e-3, "warmup": 0.025}
    least: ClassVar[Mapping[str, int]] = {"n_levels": 1, "depth": 1, "width": 1, "n_bits_x": 1}
    citation: ClassVar[str] = """@inproceedings{kingma2018glow,
  author = {Diederik P. Kingma and Prafulla Dhariwal},
  title = {Glow: Generative Flow with Invertible 1x1 Convolutions},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2018}
}"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_bits_x > 8:
            raise UnweaveError(
                f"n_bits_x of glow must be at most 8, the bits of a pixel; got {self.n_bits_x}."
            )

    @property
    def players(self) -> tuple[Player, ...]:
        """The flow, and the read-out, which follows it."""
        return (
            Player(FLOW, self._flow),
            Player(READ_OUT, self._read_out, MovingAverage(READ_OUT_SHARE), precise=True),
        )

    @property
    def stochastic(self) -> bool:
        """False: the latents of an image are a function of it."""
        return False

    @property
    def exact_weights(self) -> bool:
        """True: with numbers in bfloat16, the flow is not invertible and its density not exact."""
        return True

    def initialise(self, step: StepContext) -> None:
        """Normalise all channels over the first batch."""
        step.network(FLOW, Flow).fit(self._noisy(step))

    def losses(self, step: StepContext) -> Losses:
        """Bits per dimension, and the moving averages of the read-out."""
        flow, read_out = step.network(FLOW, Flow), step.network(READ_OUT, PrincipalComponents)
        output = flow(self._noisy(step))
        bits = self.bits_per_dimension(output.log_density, step.batch.images).mean(-1)
        with torch.no_grad():
            latents = flow(continuous(step.batch.images, self.n_bits_x)).latents
        following, share = read_out.following(latents)
        terms = {
            "bits_per_dimension": bits,
            "latent_variance": output.latents.square().mean((-2, -1)),
            "read_out_share": share,
        }
        return Losses({FLOW: bits, READ_OUT: following}, terms)

    def encode(self, networks: Mapping[str, nn.Module], images: Tensor) -> Gaussian:
        """The standardised principal components of the latents."""
        mean, directions, deviations = network_of(networks, READ_OUT, PrincipalComponents)()
        latents = network_of(networks, FLOW, Flow)(continuous(images, self.n_bits_x)).latents
        return certain((latents - mean.unsqueeze(1)) @ directions / deviations.unsqueeze(1))

    def decode(self, networks: Mapping[str, nn.Module], codes: Tensor) -> Tensor:
        """Logits of the images whose other principal components are 0."""
        mean, directions, deviations = network_of(networks, READ_OUT, PrincipalComponents)()
        latents = mean.unsqueeze(1) + (codes * deviations.unsqueeze(1)) @ directions.transpose(1, 2)
        return self._logits(networks, latents)

    def has_samples(self, latents: int) -> bool:  # noqa: ARG002
        """The latents have a prior, though codes, which are components of them, have none."""
        return True

    def prior_size(self, networks: Mapping[str, nn.Module], latents: int) -> int:  # noqa: ARG002
        """As many numbers as an image has pixels times channels: samples are of all latents."""
        return network_of(networks, READ_OUT, PrincipalComponents).products.shape[1]

    def from_prior(self, networks: Mapping[str, nn.Module], numbers: Tensor) -> Tensor:
        """Logits of the images of latents (P, B, D): samples of the model if these are standard normal."""
        return self._logits(networks, numbers)

    def _logits(self, networks: Mapping[str, nn.Module], latents: Tensor) -> Tensor:
        images = self.images_of(network_of(networks, FLOW, Flow), latents).clamp(MARGIN, 1 - MARGIN)
        return torch.log(images / (1 - images))

    def images_of(self, flow: Flow, latents: Tensor) -> Tensor:
        """Images (P, B, c, h, w) in [0, 1] of latents (P, B, D)."""
        return discrete(flow.inverse(flow.in_levels(latents)), self.n_bits_x)

    def code_notes(self, networks: Mapping[str, nn.Module]) -> tuple[str, ...]:
        """Which part of the latents the codes are."""
        latents, codes = network_of(networks, READ_OUT, PrincipalComponents).products.shape[1:]
        return (
            f"The codes are the first {codes} principal components of the {latents:,} latents of the flow.",
        )

    def bits_per_dimension(self, log_density: Tensor, images: Tensor) -> Tensor:
        """(P, B): from log-densities (P, B), in nats, of images (P, B, c, h, w) with noise."""
        return -log_density / (math.prod(images.shape[-3:]) * math.log(2)) + self.n_bits_x

    def _noisy(self, step: StepContext) -> Tensor:
        images = step.batch.images
        noise = step.draws.uniform("dequantisation", images.shape[-4], math.prod(images.shape[-3:]))
        return continuous(images, self.n_bits_x, noise.view(images.shape))

    def _flow(self, plan: Blueprint) -> Flow:
        if plan.architecture != "released":
            raise UnweaveError(
                f'Glow has networks of its own and no architecture "{plan.architecture}". Leave architecture '
                "at its default."
            )
        if likelihood_named(plan.likelihood).mean is not torch.sigmoid:
            raise UnweaveError(
                f'Glow has a likelihood of its own and no likelihood "{plan.likelihood}". Leave likelihood '
                "at its default."
            )
        return Flow(plan.streams, plan.shape, self.n_levels, self.depth, self.width)

    def _read_out(self, plan: Blueprint) -> PrincipalComponents:
        size = math.prod(plan.shape)
        if plan.latents > size:
            raise UnweaveError(
                f"images of shape {plan.shape} have {size} latents in a flow, which is less than latents "
                f"{plan.latents}. Use fewer."
            )
        return PrincipalComponents(plan.streams, "read_out", size, plan.latents)


def continuous(images: Tensor, bits: int, noise: Tensor | float = MIDDLE) -> Tensor:
    """Images, bytes or numbers in [0, 1], as numbers from -1/2 to 1/2; noise in [0, 1] is within a level."""
    grey, values = 255 * as_numbers(images), float(2**bits)
    if bits < 8:
        grey = torch.floor(grey.round() * (values / 256))
    return (grey + noise) / values - 0.5


def discrete(x: Tensor, bits: int) -> Tensor:
    """Images from 0 to 1 of numbers from -1/2 to 1/2; the middle of a grey level becomes that level."""
    values = float(2**bits)
    return (((x + 0.5) * values - MIDDLE) / (values - 1)).clamp(0, 1)
