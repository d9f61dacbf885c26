"""A small U-Net that separates an image from its noise, given the time and tokens.

The U-Net of [1], with group normalisation, residual blocks that the time scales and shifts, residual blocks
that halve and double the image, and attention to tokens after each block. Its input are patches of pixels:
a patch of 4 x 4 pixels is one place with 16 times as many channels.

[1] Yang, Lan, Lu, Zheng: Diffusion model with cross attention as an inductive bias for disentanglement,
NeurIPS 2024; its program has that of latent diffusion models.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.nn.layers import Linear, SameConv2d, at_least_float32
from unweave.nn.networks.attention import AttentionBlock, GroupNorm, zeroed
from unweave.nn.networks.sizes import Sizes
from unweave.streams import Stream

MULTIPLES = (1, 2, 4, 4)  # of the channels, level by level
WITH_ATTENTION = 3  # levels, from the largest images; the middle of the network has attention too
TIME_WIDENING = 4  # the embedding of the time has so many times `channels` numbers
LONGEST_PERIOD = 10_000

Resizing: TypeAlias = Literal["none", "half", "double"]


class Denoiser(nn.Module):
    """Noisy images (P, B, c, h, w), times (P, B) and tokens (P, B, k, d) -> velocities, in float32."""

    def __init__(
        self,
        streams: Sequence[Stream],
        shape: tuple[int, int, int],
        token_width: int,
        channels: int,
        levels: int,
        blocks: int,
        patch: int,
    ) -> None:
        super().__init__()
        multiple = patch * 2 ** (levels - 1)
        Sizes(multiple, multiple).check(
            shape, "this U-Net", "Resize them, or use fewer levels or smaller patches."
        )
        self.channels, self.patch, patched = channels, patch, shape[0] * patch**2
        wide = TIME_WIDENING * channels
        self.time = nn.ModuleList(
            Linear(streams, f"unet.time{number}", *size)
            for number, size in enumerate(((channels, wide), (wide, wide)), 1)
        )
        self.first = SameConv2d(streams, "unet.first", patched, channels)
        widths = [channels * multiple for multiple in MULTIPLES[:levels]]

        def stage(name: str, inputs: int, level: int, resizing: Resizing = "none") -> Stage:
            looks = resizing == "none" and level < WITH_ATTENTION
            return Stage(streams, name, inputs, widths[level], wide, token_width if looks else 0, resizing)

        self.down, self.up, skipped = nn.ModuleList(), nn.ModuleList(), [channels]
        for level in range(levels):
            for number in range(1, blocks + 1):
                self.down.append(stage(f"unet.down{level}.block{number}", skipped[-1], level))
                skipped.append(widths[level])
            if level < levels - 1:
                self.down.append(stage(f"unet.down{level}.half", widths[level], level, "half"))
                skipped.append(widths[level])
        last = widths[-1]
        self.middle = nn.ModuleList(
            Stage(streams, f"unet.middle{number}", last, last, wide, token_width if number == 1 else 0)
            for number in (1, 2)
        )
        inputs = last
        for level in reversed(range(levels)):
            for number in range(1, blocks + 2):
                self.up.append(stage(f"unet.up{level}.block{number}", inputs + skipped.pop(), level))
                inputs = widths[level]
            if level > 0:
                self.up.append(stage(f"unet.up{level}.double", inputs, level, "double"))
        self.norm = GroupNorm(len(streams), channels)
        self.last = zeroed(SameConv2d(streams, "unet.last", channels, patched))

    def forward(self, x: Tensor, times: Tensor, tokens: Tensor) -> Tensor:
        """The predicted velocity, (P, B, c, h, w); see unweave.nn.diffusion."""
        first, second = self.time
        embedded = F.silu(second(F.silu(first(time_embedding(times, self.channels)))))
        y = self.first(in_patches(x, self.patch))
        skipped = [y]
        for stage in self.down:
            y = stage(y, embedded, tokens)
            skipped.append(y)
        for stage in self.middle:
            y = stage(y, embedded, tokens)
        for stage in self.up:
            if stage.resizing == "none":
                y = torch.cat([y, skipped.pop()], dim=2)
            y = stage(y, embedded, tokens)
        patches: Tensor = at_least_float32(self.last(F.silu(self.norm(y))))
        return of_patches(patches, self.patch)


class Stage(nn.Module):
    """A residual block that the time modulates, and attention to tokens if it has a `token_width`."""

    def __init__(
        self,
        streams: Sequence[Stream],
        name: str,
        inputs: int,
        outputs: int,
        time_width: int,
        token_width: int = 0,
        resizing: Resizing = "none",
    ) -> None:
        super().__init__()
        runs = len(streams)
        self.resizing: Resizing = resizing
        self.norms = nn.ModuleList([GroupNorm(runs, inputs), GroupNorm(runs, outputs)])
        self.first = SameConv2d(streams, f"{name}.conv1", inputs, outputs)
        self.change = Linear(streams, f"{name}.time", time_width, 2 * outputs)
        self.second = zeroed(SameConv2d(streams, f"{name}.conv2", outputs, outputs))
        self.skip = SameConv2d(streams, f"{name}.skip", inputs, outputs, 1) if inputs != outputs else None
        self.attention = (
            AttentionBlock(streams, f"{name}.attention", outputs, token_width) if token_width else None
        )

    def forward(self, x: Tensor, time: Tensor, tokens: Tensor) -> Tensor:
        """Features (P, B, inputs, h, w), the embedded time (P, B, time_width) and tokens (P, B, k, d)."""
        y = self.first(resized(F.silu(self.norms[0](x)), self.resizing))
        y = self.second(F.silu(self.norms[1](y, self.change(time))))
        x = resized(x, self.resizing)
        x = y + (x if self.skip is None else self.skip(x))
        return x if self.attention is None else self.attention(x, tokens)


def time_embedding(times: Tensor, width: int) -> Tensor:
    """cos(t f) and sin(t f) of times t (P, B) for width / 2 frequencies f from 1 down to 1 / 10,000."""
    half = width // 2
    powers = torch.arange(half, device=times.device) / half
    angles = times.unsqueeze(-1) * torch.exp(-math.log(LONGEST_PERIOD) * powers)
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


def in_patches(x: Tensor, side: int) -> Tensor:
    """(P, B, c, h, w) -> (P, B, c side^2, h / side, w / side), as `F.pixel_unshuffle`, also for B = 0."""
    blocks: Tensor = x.unflatten(-1, (-1, side)).unflatten(-3, (-1, side))
    return blocks.permute(0, 1, 2, 4, 6, 3, 5).flatten(2, 4)


def of_patches(x: Tensor, side: int) -> Tensor:
    """(P, B, c side^2, h, w) -> (P, B, c, h side, w side): the inverse of `in_patches`."""
    blocks: Tensor = x.unflatten(2, (-1, side, side)).permute(0, 1, 2, 5, 3, 6, 4)
    return blocks.flatten(5, 6).flatten(3, 4)


def resized(x: Tensor, resizing: Resizing) -> Tensor:
    """(P, B, C, H, W) with sides that are halved by averages, doubled by copies, or the same."""
    if resizing == "none":
        return x
    images = x.flatten(0, 1)
    images = F.avg_pool2d(images, 2) if resizing == "half" else F.interpolate(images, scale_factor=2.0)
    of_runs: Tensor = images.unflatten(0, x.shape[:2])
    return of_runs
