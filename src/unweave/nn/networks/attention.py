"""Attention of a population: images look at themselves and at tokens.

Features are (P, B, N, C): N places, or tokens, of C numbers for each image. In the form of the latent
diffusion models [1]: normalisation, self-attention, attention to tokens, and a gated dense layer, each added
to its input.

[1] Rombach, Blattmann, Lorenz, Esser, Ommer: High-resolution image synthesis with latent diffusion models,
CVPR 2022.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from unweave.nn.layers import Layer, Linear, heads
from unweave.streams import Stream

GROUPS = 32  # of channels that are normalised together
HEADS, SMALLEST_HEAD = 8, 8  # heads of attention, fewer where each would have less than 8 numbers
WIDENING = 4  # the dense layer of a block is so many times wider inside
EPSILON = 1e-5


class Attention(nn.Module):
    """softmax(Q K^T / sqrt(d)) V in heads of d numbers: queries are from x, keys and values from tokens."""

    def __init__(self, streams: Sequence[Stream], name: str, width: int, token_width: int) -> None:
        super().__init__()
        self.heads = max(1, min(HEADS, width // SMALLEST_HEAD))
        self.query = Linear(streams, f"{name}.query", width, width)
        self.key_and_value = heads(streams, (f"{name}.key", f"{name}.value"), token_width, width)
        self.output = Linear(streams, f"{name}.output", width, width)

    def forward(self, x: Tensor, tokens: Tensor) -> Tensor:
        """(P, B, N, C) and (P, B, M, D) -> (P, B, N, C); the order of the M tokens does not matter."""
        query = self._in_heads(_each_row(self.query, x))
        key, value = map(self._in_heads, _each_row(self.key_and_value, tokens).chunk(2, dim=-1))
        with sdpa_kernel(SDPBackend.MATH):  # gradients of the faster ones are summed in any order on a GPU
            read = F.scaled_dot_product_attention(query, key, value)
        return _each_row(self.output, read.transpose(1, 2).reshape(x.shape))

    def _in_heads(self, x: Tensor) -> Tensor:
        """(P, B, N, C) -> (P B, heads, N, d)."""
        heads: Tensor = x.flatten(0, 1).unflatten(-1, (self.heads, -1))
        return heads.transpose(1, 2)


class GroupNorm(nn.Module):
    """Groups of channels of each image with mean 0 and variance 1, then a gain and a shift per channel."""

    def __init__(self, runs: int, channels: int) -> None:
        super().__init__()
        self.groups = math.gcd(GROUPS, channels)
        self.gain = nn.Parameter(torch.ones(runs, channels))
        self.shift = nn.Parameter(torch.zeros(runs, channels))

    def forward(self, x: Tensor, change: Tensor | None = None) -> Tensor:
        """(P, B, C, H, W); `change`, (P, B, 2 C), has numbers g and s: the result y becomes (1 + g) y + s."""
        y = F.group_norm(x.flatten(0, 1), self.groups, eps=EPSILON).unflatten(0, x.shape[:2])
        gain, shift = self.gain.unsqueeze(1), self.shift.unsqueeze(1)
        if change is not None:
            more, further = change.to(gain.dtype).chunk(2, dim=-1)
            gain, shift = gain * (1 + more), shift * (1 + more) + further
        return torch.addcmul(_per_channel(shift, y), y, _per_channel(gain, y))


class LayerNorm(nn.Module):
    """The C numbers of each place with mean 0 and variance 1, then a gain and a shift for each of them."""

    def __init__(self, runs: int, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(runs, width))
        self.shift = nn.Parameter(torch.zeros(runs, width))

    def forward(self, x: Tensor) -> Tensor:
        """(P, B, N, C)."""
        y = F.layer_norm(x, x.shape[-1:], eps=EPSILON)
        gain, shift = (part.to(y.dtype)[:, None, None] for part in (self.gain, self.shift))
        return torch.addcmul(shift, y, gain)


class AttentionBlock(nn.Module):
    """Features (P, B, C, H, W) that look at themselves and at tokens; it starts as the identity."""

    def __init__(self, streams: Sequence[Stream], name: str, channels: int, token_width: int) -> None:
        super().__init__()
        runs, inside = len(streams), WIDENING * channels
        self.norm = GroupNorm(runs, channels)
        self.first = Linear(streams, f"{name}.first", channels, channels)
        self.norms = nn.ModuleList(LayerNorm(runs, channels) for _ in range(3))
        self.to_itself = Attention(streams, f"{name}.to_itself", channels, channels)
        self.to_tokens = Attention(streams, f"{name}.to_tokens", channels, token_width)
        self.gated = Linear(streams, f"{name}.gated", channels, 2 * inside)
        self.narrow = Linear(streams, f"{name}.narrow", inside, channels)
        self.last = zeroed(Linear(streams, f"{name}.last", channels, channels))

    def forward(self, x: Tensor, tokens: Tensor) -> Tensor:
        """Images (P, B, C, H, W) and tokens (P, B, k, d) -> (P, B, C, H, W)."""
        y = _each_row(self.first, self.norm(x).flatten(3).transpose(2, 3))
        normed = self.norms[0](y)
        y = y + self.to_itself(normed, normed)
        y = y + self.to_tokens(self.norms[1](y), tokens)
        values, gate = _each_row(self.gated, self.norms[2](y)).chunk(2, dim=-1)
        y = y + _each_row(self.narrow, values * F.gelu(gate))
        changed: Tensor = _each_row(self.last, y).transpose(2, 3).reshape(x.shape)
        return x + changed


def zeroed(layer: Layer) -> Layer:
    """The layer with initial weights of 0."""
    with torch.no_grad():
        layer.weight.zero_()
    return layer


def _each_row(layer: nn.Module, x: Tensor) -> Tensor:
    """A dense layer on (P, B, N, C)."""
    rows: Tensor = layer(x.flatten(1, 2)).unflatten(1, x.shape[1:3])
    return rows


def _per_channel(values: Tensor, x: Tensor) -> Tensor:
    """(P, B, C) or (P, 1, C), in the type of images x, with two more axes."""
    return values.to(x.dtype)[..., None, None]
