"""Balanced batches of labelled images: the same number of images of each value of one label."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from unweave.methods.sampling import Balance, labels_in_turn

# (purpose, length) -> (P, length): a random order of 0 .. length - 1 for each run.
Permutations = Callable[[str, int], Tensor]


class BalancedRows:
    """Rows of the labelled points of some runs, drawn as `Balance` describes; labels are (P, n, k)."""

    def __init__(self, labels: Tensor, sizes: Sequence[int], balance: Balance) -> None:
        turn = labels_in_turn(sizes)
        self.labels, self.balance = labels[..., list(turn)], balance
        self.size = max(int(sizes[column]) for column in turn)

    def draw(self, step: Tensor, permutations: Permutations) -> Tensor:
        """(P, places): rows of the points of a batch, -1 for empty places."""
        column = (step % self.labels.shape[2]).view(1)
        labels = self.labels.index_select(2, column).squeeze(2)
        ranks = permutations("values", self.size)
        first = labels.shape[1] - self.balance.held_out
        halves = [self._rows(labels[:, :first], permutations("points", first), ranks)]
        if self.balance.held_out:
            held_out = permutations("held out points", self.balance.held_out)
            rows = self._rows(labels[:, first:], held_out, ranks)
            halves.append(torch.where(rows < 0, rows, rows + first))
        return torch.cat(halves, dim=1)

    def _rows(self, labels: Tensor, order: Tensor, ranks: Tensor) -> Tensor:
        """(P, values x images) rows of points with these labels (P, n).

        `order` (P, n) and `ranks` (P, size) are random orders of the points and of the values.
        """
        shuffled = labels.gather(1, order)
        by_value = order.gather(1, torch.argsort(shuffled, dim=1, stable=True))
        counts = (shuffled.unsqueeze(-1) == torch.arange(self.size, device=labels.device)).sum(1)
        counts_of_pairs = counts * (counts > 1)
        values = torch.argsort(ranks + self.size * (counts < 2), dim=1)[:, : self.balance.values]
        first = (counts.cumsum(1) - counts).gather(1, values).unsqueeze(-1)
        place = torch.arange(self.balance.images, device=labels.device)
        is_taken = place < counts_of_pairs.gather(1, values).unsqueeze(-1)
        rows = by_value.gather(1, (first + place).clamp(max=labels.shape[1] - 1).flatten(1))
        return torch.where(is_taken.flatten(1), rows, -1)
