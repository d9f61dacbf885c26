"""Networks of the very deep VAE: latents at many layers and several resolutions, drawn from the top down.

[1] Child: Very deep VAEs generalize autoregressive models and can outperform them on images, ICLR 2021.
[2] The authors' program: github.com/openai/vdvae.

The encoder halves an image down to 4 x 4 and then pools it to 1 x 1, with residual blocks at each size. The
decoder starts at 1 x 1 and doubles up to the image. Each of its blocks draws latents from a prior given the
features from above, adds them to the features, and applies a residual block. The posterior of the latents
also depends on the encoder's features of the same size.

As in ladder.py, a code is the position of a latent in its prior: z = prior mean + prior deviation x code. The
codes of all layers have a standard normal prior, and the divergence of q from p is that of the codes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.distributions.likelihood import likelihood_named
from unweave.nn.layers import SameConv2d, as_numbers, at_least_float32
from unweave.nn.networks.vae import check_input
from unweave.streams import Stream

SMALLEST_SPATIAL = 4  # below it there is only 1 x 1, as in [2]
SMALLEST_PADDED = 3  # smaller features pass 1 x 1 convolutions only
NARROWING = 4  # bottleneck blocks are so many times narrower inside


@dataclass(frozen=True)
class LatentLayer:
    """A layer of latents: `channels` numbers at each of resolution x resolution places."""

    resolution: int
    number: int  # among the layers of this resolution, from 1, the top one first
    channels: int

    @property
    def name(self) -> str:
        """Such as 8x8/2, the second layer of resolution 8."""
        return f"{self.group}/{self.number}"

    @property
    def group(self) -> str:
        """The name of its resolution, such as 8x8."""
        return f"{self.resolution}x{self.resolution}"

    @property
    def size(self) -> int:
        """The number of its latents."""
        return self.channels * self.resolution**2

    @property
    def shape(self) -> tuple[int, int, int]:
        """(channels, height, width)."""
        return self.channels, self.resolution, self.resolution


@dataclass(frozen=True)
class Inferred:
    """The result of a top-down pass with images."""

    posteriors: list[Gaussian]  # of the codes of each layer, (P, B, size), given the layers above
    features: Tensor  # (P, B, width, h, w): what the likelihood's parameters are computed from


class VeryDeep(nn.Module):
    """Encoder and decoder; `layers` are the layers of latents, the top one first."""

    def __init__(
        self,
        streams: Sequence[Stream],
        shape: tuple[int, int, int],
        width: int,
        zdim: int,
        layers: int,
        plain_blocks: int,
        likelihood: str = "bernoulli",
    ) -> None:
        super().__init__()
        self.shape, resolutions = shape, resolutions_of(shape)
        blocks = spread(max(layers + plain_blocks, len(resolutions)), len(resolutions))
        drawing = spread(layers, len(resolutions))
        self.layers = latent_layers(shape, zdim, layers)
        self.encoder = BottomUp(streams, shape[0], width, dict(zip(resolutions, blocks, strict=True)))
        self.stages = nn.ModuleList(
            Stage(streams, resolution, width, zdim, count, drawn, sum(blocks))
            for resolution, count, drawn in zip(resolutions, blocks, drawing, strict=True)
        )
        runs, outputs = len(streams), likelihood_named(likelihood).outputs * shape[0]
        self.gain = nn.Parameter(torch.ones(runs, width))
        self.bias = nn.Parameter(torch.zeros(runs, width))
        self.last = _convolution(streams, "decoder.last", width, outputs, 1)

    def infer(self, images: Tensor, noise: Tensor) -> Inferred:
        """Draw the latents of images (P, B, c, h, w) layer by layer, with noise (P, B, total latents)."""
        check_input(self, images, self.shape)
        evidence: dict[int, Tensor] = self.encoder(images)
        noises, posteriors = iter(self._layer_codes(noise)), []

        def draw(block: TopDownBlock, x: Tensor, prior: Gaussian) -> Tensor:
            posterior = block.posterior(x, evidence[x.shape[-1]], prior)
            posteriors.append(Gaussian(posterior.mean.flatten(2), posterior.log_var.flatten(2)))
            return posterior.sample(next(noises))

        return Inferred(posteriors, self._top_down(draw))

    def decode(self, codes: Tensor) -> Tensor:
        """The parameters of the likelihood (P, B, k c, h, w) of codes (P, B, total latents)."""
        check_input(self, codes, (sum(layer.size for layer in self.layers),))
        remaining = iter(self._layer_codes(codes))
        return self.output(self._top_down(lambda _block, _x, _prior: next(remaining)))

    def output(self, features: Tensor) -> Tensor:
        """The parameters of the likelihood, in float32 at least."""
        scaled = features * _per_channel(self.gain) + _per_channel(self.bias)
        return at_least_float32(self.last(scaled))

    def _top_down(self, code: Callable[[TopDownBlock, Tensor, Gaussian], Tensor]) -> Tensor:
        """The features of the largest resolution; `code` gives the codes (P, B, z, h, w) of a block."""
        first, *others = self.stages
        x: Tensor = first(None, code)
        for stage in others:
            x = stage(x, code)
        return x

    def _layer_codes(self, codes: Tensor) -> list[Tensor]:
        """(P, B, total latents) -> (P, B, z, h, w) for each layer."""
        parts = codes.split([layer.size for layer in self.layers], dim=-1)
        return [part.unflatten(-1, layer.shape) for part, layer in zip(parts, self.layers, strict=True)]


class BottomUp(nn.Module):
    """Images -> features of each resolution, after all residual blocks of that resolution."""

    def __init__(self, streams: Sequence[Stream], channels: int, width: int, blocks: dict[int, int]) -> None:
        super().__init__()
        self.first = _convolution(streams, "encoder.first", channels, width, 3)
        self.counts = dict(reversed(blocks.items()))  # the largest resolution first
        # One more block at each resolution but the last, whose output is pooled.
        total = sum(blocks.values()) + len(blocks) - 1
        self.blocks = nn.ModuleList(
            _residual(streams, f"encoder.size{resolution}.block{n}", width, resolution, total**-0.5)
            for resolution, count in self.counts.items()
            for n in range(count + (resolution > 1))
        )

    def forward(self, images: Tensor) -> dict[int, Tensor]:
        """(P, B, width, r, r) by resolution r."""
        x: Tensor = self.first(as_numbers(images))
        blocks, features = iter(self.blocks), {}
        for resolution, count in self.counts.items():
            for _ in range(count):
                x = x + next(blocks)(x)
            features[resolution] = x
            if resolution > 1:
                x = _pooled(x + next(blocks)(x), 2 if resolution > SMALLEST_SPATIAL else SMALLEST_SPATIAL)
        return features


class Stage(nn.Module):
    """All blocks of the decoder of one resolution; the first `drawn` of them have latents."""

    def __init__(
        self,
        streams: Sequence[Stream],
        resolution: int,
        width: int,
        zdim: int,
        blocks: int,
        drawn: int,
        total: int,
    ) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.zeros(len(streams), width, resolution, resolution))
        names = [f"decoder.size{resolution}.block{number}" for number in range(blocks)]
        kinds: list[type[TopDownBlock | PlainBlock]] = [TopDownBlock] * drawn
        kinds += [PlainBlock] * (blocks - drawn)
        self.blocks = nn.ModuleList(
            kind(streams, name, resolution, width, zdim, total**-0.5)
            for kind, name in zip(kinds, names, strict=True)
        )

    def forward(
        self, above: Tensor | None, code: Callable[[TopDownBlock, Tensor, Gaussian], Tensor]
    ) -> Tensor:
        """From the features of the resolution above, or none, to those of this one."""
        x = self.start.unsqueeze(1)
        if above is not None:
            x = x + _enlarged(above, x.shape[-1])
        for block in self.blocks:
            x = block(x, code)
        return x


class TopDownBlock(nn.Module):
    """A layer of latents and a residual block, as in [2]."""

    def __init__(
        self, streams: Sequence[Stream], name: str, resolution: int, width: int, zdim: int, scale: float
    ) -> None:
        super().__init__()
        self.zdim, inside = zdim, _narrow(width)
        self.inference = Bottleneck(streams, f"{name}.posterior", (2 * width, inside, 2 * zdim), resolution)
        # Zeros at first: the prior is then N(0, I), and x does not change.
        self.prior = Bottleneck(
            streams, f"{name}.prior", (width, inside, 2 * zdim + width), resolution, scale=0.0
        )
        self.join = _convolution(streams, f"{name}.join", zdim, width, 1, scale)
        self.residual = _residual(streams, f"{name}.residual", width, resolution, scale)

    def posterior(self, x: Tensor, evidence: Tensor, prior: Gaussian) -> Gaussian:
        """Of the codes (P, B, z, h, w), from features x from above and those of the encoder."""
        both = torch.cat([x.expand_as(evidence), evidence], dim=2)
        mean, log_deviation = at_least_float32(self.inference(both)).chunk(2, dim=2)
        shift = (mean - prior.mean) * torch.exp(-0.5 * prior.log_var)
        return Gaussian(shift, 2 * log_deviation - prior.log_var)

    def forward(self, x: Tensor, code: Callable[[TopDownBlock, Tensor, Gaussian], Tensor]) -> Tensor:
        """Features (P, B, width, h, w), or (P, 1, ...) if they are the same for all images."""
        outputs = at_least_float32(self.prior(x))
        mean, log_deviation, change = outputs.split([self.zdim, self.zdim, x.shape[2]], dim=2)
        prior = Gaussian(mean, 2 * log_deviation)
        z = prior.sample(code(self, x, prior))
        joined = x + change + self.join(z)
        changed: Tensor = joined + self.residual(joined)
        return changed


class PlainBlock(nn.Module):
    """A residual block without latents."""

    def __init__(
        self, streams: Sequence[Stream], name: str, resolution: int, width: int, _zdim: int, scale: float
    ) -> None:
        super().__init__()
        self.residual = _residual(streams, f"{name}.residual", width, resolution, scale)

    def forward(self, x: Tensor, _code: object) -> Tensor:
        """Features (P, B, width, h, w)."""
        changed: Tensor = x + self.residual(x)
        return changed


class Bottleneck(nn.Module):
    """Four convolutions, 1 x 1, 3 x 3, 3 x 3 and 1 x 1, with a GELU before each, as in [2].

    The initial weights of the last one are multiplied by `scale`.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        name: str,
        channels: tuple[int, int, int],  # of input, of the middle, of output
        resolution: int,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        kernel = 3 if resolution >= SMALLEST_PADDED else 1
        inputs, inside, outputs = channels
        sizes = (
            (inputs, inside, 1),
            (inside, inside, kernel),
            (inside, inside, kernel),
            (inside, outputs, 1),
        )
        self.convolutions = nn.ModuleList(
            _convolution(streams, f"{name}.conv{number}", *size, scale if number == len(sizes) else 1.0)
            for number, size in enumerate(sizes, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(P, B, inputs, h, w) -> (P, B, outputs, h, w)."""
        for convolution in self.convolutions:
            x = convolution(F.gelu(x))
        return x


def resolutions_of(shape: tuple[int, int, int]) -> list[int]:
    """The heights of the features of an image: 1, 4, 8, ... up to its own.

    >>> resolutions_of((3, 64, 64))
    [1, 4, 8, 16, 32, 64]
    """
    _, height, width = shape
    doublings = math.log2(height / SMALLEST_SPATIAL)
    if height != width or doublings < 1 or doublings != int(doublings):
        raise UnweaveError(
            "images for a very deep VAE must be squares of 8, 16, 32, 64, ... pixels; got "
            f"{height} x {width}. Resize them."
        )
    return [1, *(SMALLEST_SPATIAL * 2**n for n in range(int(doublings) + 1))]


def latent_layers(shape: tuple[int, int, int], zdim: int, layers: int) -> tuple[LatentLayer, ...]:
    """The layers of latents for images of that shape, the top one first."""
    resolutions = resolutions_of(shape)
    return tuple(
        LatentLayer(resolution, number, zdim)
        for resolution, count in zip(resolutions, spread(layers, len(resolutions)), strict=True)
        for number in range(1, count + 1)
    )


def spread(count: int, resolutions: int) -> list[int]:
    """So many blocks over the resolutions: one each from the smallest up, again and again.

    >>> spread(8, 6), spread(2, 6)
    ([2, 2, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0])
    """
    return [(count + resolutions - 1 - place) // resolutions for place in range(resolutions)]


def _residual(streams: Sequence[Stream], name: str, width: int, resolution: int, scale: float) -> Bottleneck:
    """A block whose output is added to its input."""
    return Bottleneck(streams, name, (width, _narrow(width), width), resolution, scale)


def _narrow(width: int) -> int:
    return max(1, width // NARROWING)


def _convolution(
    streams: Sequence[Stream], name: str, inputs: int, outputs: int, kernel: int, scale: float = 1.0
) -> SameConv2d:
    """A convolution whose initial weights have the bound of torch's, 1 / sqrt(fan in), times `scale`."""
    layer = SameConv2d(streams, name, inputs, outputs, kernel)
    with torch.no_grad():
        layer.weight.mul_(scale * math.sqrt((inputs + outputs) / (6 * inputs)))
    return layer


def _pooled(x: Tensor, side: int) -> Tensor:
    """Means over squares of side x side."""
    pooled: Tensor = F.avg_pool2d(x.flatten(0, 1), side).unflatten(0, x.shape[:2])
    return pooled


def _enlarged(x: Tensor, side: int) -> Tensor:
    """(P, B, C, r, r) -> (P, B, C, side, side); every number is repeated."""
    *leading, height, width = x.shape
    times = side // height
    repeated = x[..., :, None, :, None].expand(*leading, height, times, width, times)
    return repeated.reshape(*leading, side, side)


def _per_channel(parameter: Tensor) -> Tensor:
    """(P, C) -> (P, 1, C, 1, 1)."""
    return parameter[:, None, :, None, None]
