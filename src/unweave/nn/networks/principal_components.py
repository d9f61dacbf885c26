"""Principal components of numbers that change while a network learns, followed batch by batch.

The columns of `products`, (P, D, k), are a moving average of C Q, where C is the covariance of a batch and Q
are the orthonormalised columns of the average before. Without noise this is orthogonal iteration [1]: the
columns of Q become the eigenvectors of C in the order of their eigenvalues.

[1] Golub, Van Loan: Matrix computations, section 7.3.2 (3rd edition).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from unweave.nn.moving_average import half_squared_distance
from unweave.streams import Stream

# Added to C: directions in which nothing varies stay as they are, instead of following rounding errors.
RIDGE = 1e-3
SMALLEST_NORM = 1e-12


class PrincipalComponents(nn.Module):
    """The first k principal components of numbers (P, B, D); its optimiser is a `MovingAverage`."""

    def __init__(self, streams: Sequence[Stream], name: str, size: int, components: int) -> None:
        super().__init__()
        drawn = [stream.child("weights", name).normal(size, components) for stream in streams]
        self.mean = nn.Parameter(torch.zeros(len(streams), size))
        self.products = nn.Parameter(torch.from_numpy(np.stack(drawn)).float())

    def forward(self) -> tuple[Tensor, Tensor, Tensor]:
        """Mean (P, D), orthonormal directions (P, D, k) and the deviation along each of them, (P, k)."""
        directions, sizes = orthonormalised(self.products)
        return self.mean, directions, (sizes - RIDGE).clamp(min=RIDGE).sqrt()

    def following(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(P,) each: the loss whose update follows x (P, B, D), and the share of variance that is kept."""
        _, directions, _ = self()
        mean = x.mean(1)
        centred = x - mean.unsqueeze(1)
        components = centred @ directions
        products = centred.transpose(1, 2) @ components / max(x.shape[1] - 1, 1) + RIDGE * directions
        total = centred.square().sum((1, 2))
        share = components.square().sum((1, 2)) / total.clamp(min=SMALLEST_NORM)
        return half_squared_distance(self.parameters(), [mean, products]), share.detach()


def orthonormalised(columns: Tensor) -> tuple[Tensor, Tensor]:
    """Orthonormal columns that span the same space, (P, D, k), and how long each was without those before it.

    Gram-Schmidt, twice for each column against rounding errors: unlike factorisations, products can be
    recorded as a CUDA graph on all devices.
    """
    directions: list[Tensor] = []
    sizes: list[Tensor] = []
    for column in columns.unbind(-1):
        if directions:
            before = torch.stack(directions, dim=-1)
            for _ in range(2):
                column = column - (before @ (before.transpose(1, 2) @ column.unsqueeze(-1))).squeeze(-1)
        size = torch.linalg.vector_norm(column, dim=-1, keepdim=True)
        directions.append(column / size.clamp(min=SMALLEST_NORM))
        sizes.append(size)
    return torch.stack(directions, dim=-1), torch.cat(sizes, dim=-1)
