"""Moving means of StyleGAN2: of the path length, and of the codes w with their deviations."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unweave.nn.moving_average import half_squared_distance

SMALLEST_VARIANCE = 1e-6  # of a dimension of w


class StyleMeans(nn.Module):
    """The mean path length, and first and second moments of w; its optimiser is a `MovingAverage`."""

    def __init__(self, runs: int, latents: int) -> None:
        super().__init__()
        self.latents = latents
        self.path_length = nn.Parameter(torch.zeros(runs, 1))
        self.first_moment = nn.Parameter(torch.zeros(runs, latents))
        self.second_moment = nn.Parameter(torch.ones(runs, latents))

    def forward(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of each dimension of w, (P, 1, D) each."""
        variance = self.second_moment - self.first_moment.square()
        deviation = variance.clamp_min(SMALLEST_VARIANCE).sqrt()
        return self.first_moment.unsqueeze(1), deviation.unsqueeze(1)

    def standardised(self, w: Tensor) -> Tensor:
        """Codes of w, (P, B, D) each: with mean 0 and deviation 1."""
        mean, deviation = self()
        codes: Tensor = (w - mean) / deviation
        return codes

    def styles(self, codes: Tensor) -> Tensor:
        """The w of codes, (P, B, D) each."""
        mean, deviation = self()
        w: Tensor = mean + codes * deviation
        return w

    def length(self) -> Tensor:
        """(P,): the mean path length."""
        return self.path_length.squeeze(-1)

    def following(self, lengths: Tensor, w: Tensor) -> Tensor:
        """(P,): the loss whose update follows path lengths (P, B) and w (P, B, D)."""
        targets = [lengths.mean(-1, keepdim=True), w.mean(1), w.square().mean(1)]
        return half_squared_distance(self.parameters(), targets)
