"""Learned maps between labels and codes for supervised losses: a scale, and positions on a line."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unweave.nn.layers import glorot_uniform
from unweave.streams import Stream


class Scale(nn.Module):
    """One factor for all codes of a run, (P, B, k) -> (P, B, k); it starts at 1."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.ones(len(streams), 1))

    def forward(self, codes: Tensor) -> Tensor:
        """The codes times the factor."""
        return codes * self.factor.unsqueeze(-1)


class Places(nn.Module):
    """A position on the line for each value of each label; they start Glorot-uniform."""

    def __init__(self, streams: Sequence[Stream], sizes: Sequence[int]) -> None:
        super().__init__()
        self.places = nn.ParameterList(
            glorot_uniform(streams, f"places.label{label}", (1, size), 2 * size).squeeze(1)
            for label, size in enumerate(sizes, 1)
        )

    def forward(self, codes: Tensor) -> list[Tensor]:
        """For each label: squared distances (P, B, size) of codes (P, B, k) to the positions of values."""
        return [
            (codes[..., label, None] - places.unsqueeze(-2)).square()
            for label, places in enumerate(self.places)
        ]
