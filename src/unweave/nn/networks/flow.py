"""The network of Glow [1]: an invertible map from images to latents of the same size, in several levels.

Each level makes one pixel of 2 x 2, applies some steps, and then half of the channels leave: they are
standardised given the other half, which goes on to the next level. In the last level, all channels leave. The
latents of all levels together are standard normal under the model, so the log-density of an image x is

    log p(x) = sum_i log N(z_i; 0, 1) + log |det dz/dx|.

[1] Kingma, Dhariwal: Glow: generative flow with invertible 1x1 convolutions, NeurIPS 2018.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unweave.nn.distributions.gaussian import LOG_2_PI
from unweave.nn.networks.flow_layers import (
    ActNorm,
    FlowStep,
    Prior,
    ScaledConvolution,
    squeezed,
    unsqueezed,
)
from unweave.nn.networks.sizes import Sizes
from unweave.streams import Stream


@dataclass(frozen=True)
class FlowOutput:
    """The latents of images, (P, B, C, H, W) for each level, the top one last, and the log-determinant."""

    levels: list[Tensor]
    log_determinant: Tensor  # (P, B)

    @property
    def latents(self) -> Tensor:
        """(P, B, D): the latents of all levels in one row."""
        return torch.cat([level.flatten(2) for level in self.levels], dim=-1)

    @property
    def log_density(self) -> Tensor:
        """(P, B): log p(x), in nats."""
        normal = [-0.5 * (level.square() + LOG_2_PI).sum((-3, -2, -1)) for level in self.levels]
        return torch.stack(normal).sum(0) + self.log_determinant


class FlowLevel(nn.Module):
    """Steps on images of 4 times the channels and half the sides, after which some channels leave."""

    def __init__(
        self, streams: Sequence[Stream], name: str, channels: int, kept: int, depth: int, width: int
    ) -> None:
        super().__init__()
        self.kept = kept
        self.steps = nn.ModuleList(
            [FlowStep(streams, f"{name}.step{step + 1}", channels, width) for step in range(depth)]
        )
        self.prior = Prior(streams, f"{name}.prior", kept, channels - kept)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The channels that stay, the latents of those that leave, and the log-determinant, (P, B)."""
        x = squeezed(x)
        log_determinant = x.new_zeros(x.shape[:2])
        for step in self.steps:
            x, of_step = step(x)
            log_determinant = log_determinant + of_step
        x, leaving = x[:, :, : self.kept], x[:, :, self.kept :]
        latents, of_prior = self.prior(leaving, x)
        return x, latents, log_determinant + of_prior

    def inverse(self, x: Tensor, latents: Tensor) -> Tensor:
        """The images from the channels that stayed and the latents of those that left."""
        x = torch.cat([x, self.prior.inverse(latents, x)], dim=2)
        for step in reversed([part for part in self.steps if isinstance(part, FlowStep)]):
            x = step.inverse(x)
        return unsqueezed(x)


class Flow(nn.Module):
    """Images (P, B, c, h, w) to latents and back, for images of shape (c, h, w)."""

    def __init__(
        self, streams: Sequence[Stream], shape: tuple[int, int, int], levels: int, depth: int, width: int
    ) -> None:
        super().__init__()
        sizes = Sizes(2**levels, 2**levels)
        sizes.check(shape, f"a flow of {levels} levels", "Resize them, or use fewer levels.")
        self.shapes: list[tuple[int, int, int]] = []  # of the latents of each level
        self.levels = nn.ModuleList()
        stayed = shape[0]
        for level in range(levels):
            channels = 4 * stayed
            stayed = channels // 2 if level < levels - 1 else 0
            name = f"flow.level{level + 1}"
            self.levels.append(FlowLevel(streams, name, channels, stayed, depth, width))
            self.shapes.append(
                (channels - stayed, shape[1] // 2 ** (level + 1), shape[2] // 2 ** (level + 1))
            )

    def forward(self, x: Tensor) -> FlowOutput:
        """The latents of images."""
        latents, log_determinant = [], x.new_zeros(x.shape[:2])
        for level in self.levels:
            x, leaving, of_level = level(x)
            latents.append(leaving)
            log_determinant = log_determinant + of_level
        return FlowOutput(latents, log_determinant)

    def inverse(self, latents: Sequence[Tensor]) -> Tensor:
        """The images of latents, one tensor (P, B, C, H, W) for each level."""
        x = latents[-1][:, :, :0]
        levels = [part for part in self.levels if isinstance(part, FlowLevel)]
        for level, leaving in zip(reversed(levels), reversed(latents), strict=True):
            x = level.inverse(x, leaving)
        return x

    def in_levels(self, latents: Tensor) -> list[Tensor]:
        """Latents (P, B, D) of all levels in one row, as one tensor for each level."""
        sizes = [math.prod(shape) for shape in self.shapes]
        parts = latents.split(sizes, dim=-1)
        return [part.unflatten(-1, shape) for part, shape in zip(parts, self.shapes, strict=True)]

    @torch.no_grad()
    def fit(self, x: Tensor) -> None:
        """Set shifts and scales so that normalised channels have mean 0 and variance 1 over these images.

        This is the data-dependent initialisation of [1], section 3.1.
        """
        fitted = [
            part
            for part in self.modules()
            if isinstance(part, ActNorm) or (isinstance(part, ScaledConvolution) and not part.starts_at_zero)
        ]
        for part in fitted:
            part.is_fitting = True
        try:
            self(x)
        finally:
            for part in fitted:
                part.is_fitting = False
