"""Factors of a batch on a device where combinations are not equally likely: correlated or held out.

The host draws until a combination is accepted; see `GroundTruth.sample_factors` and
`unweave.data.supervision.pairs`. A device makes a fixed number of attempts at once, so that they can be part
of a CUDA graph, and takes the first one that is accepted: the same numbers. All attempts fail with a
probability below 1e-18 for a point and about 1e-15 for a pair. Where few draws are accepted, both look points
up in a table of probabilities. Pairs that need too many attempts are left to the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unweave.data import GroundTruth
from unweave.data.grid import Weight
from unweave.data.supervision.pairing import TRIES
from unweave.data.weight_table import WeightTable, rare_table
from unweave.nn.draws import PopulationDraws
from unweave.streams import Stream

Path: TypeAlias = tuple[str | int, ...]
# (draws, names of the batch's stream, size) -> (P, images, k); images of one pair or group are neighbours.
FactorDraw: TypeAlias = Callable[[PopulationDraws, Path, int], Tensor]

POINT_FAILS, PAIR_FAILS = 1e-18, 1e-15
MOST_ATTEMPTS, MOST_ROUNDS = 400, 16
TRIAL_PAIRS = 4096
CHUNK = 1 << 16
LARGEST_GRID = 1 << 24  # combinations, whose weights are a table on the device


class WeightedFactors:
    """The probabilities with which combinations of a ground truth are accepted, as a table on a device."""

    def __init__(self, truth: GroundTruth, device: torch.device) -> None:
        weights = np.ones(len(truth)) if truth.weight is None else _weights(truth, truth.weight)
        strides = np.cumprod([1, *truth.sizes[:0:-1]])[::-1].copy()
        self.sizes, self.attempts = truth.sizes, _attempts(float(weights.mean()))
        self._size, self._weights, self._strides = (
            torch.from_numpy(array).to(device) for array in (np.asarray(truth.sizes), weights, strides)
        )
        rare = None if truth.weight is None else rare_table(truth.sizes, truth.weight)
        self._rare = None if rare is None else _DeviceTable(rare, device)

    @property
    def can_draw(self) -> bool:
        """Whether points do not need too many attempts."""
        return self._rare is not None or self.attempts <= MOST_ATTEMPTS

    def points(self, draws: PopulationDraws, path: Path, size: int) -> Tensor:
        """(P, size, k): independent draws, as `GroundTruth.sample_factors`."""
        if self._rare is not None:
            index = self._rare.draw(draws, (*path, "factors", "table"), size)
            return index.unsqueeze(-1) // self._strides % self._size
        attempts = [(*path, "factors", "attempt", i) for i in range(self.attempts)]
        tried = draws.integers_of(attempts, size, self.sizes)
        return _first_of(tried, self._accepted(draws, attempts, tried))[0]

    def second_points(
        self, draws: PopulationDraws, path: Path, first: Tensor, changed: Tensor
    ) -> tuple[Tensor, Tensor]:
        """(P, size, k) points that differ in the changed factors, and (P, size): whether one was accepted."""
        attempts = [(*path, "second", i) for i in range(TRIES)]
        others = [size - 1 for size in self.sizes]
        shifted = (first + 1 + draws.integers_of(attempts, first.shape[1], others)) % self._size
        tried = torch.where(changed, shifted, first)
        return _first_of(tried, self._accepted(draws, attempts, tried))

    def _accepted(self, draws: PopulationDraws, attempts: Sequence[Path], tried: Tensor) -> Tensor:
        """(attempts, P, size): which of the points are accepted."""
        uniform = draws.uniform_of([(*path, "keep") for path in attempts], tried.shape[2], 1)[..., 0]
        return uniform.double() < self._weights[(tried * self._strides).sum(-1)]


class _DeviceTable:
    """A table of probabilities on a device, which draws what `WeightTable.draw` draws."""

    def __init__(self, table: WeightTable, device: torch.device) -> None:
        self.ends = torch.from_numpy(table.ends).to(device)
        self.total = float(table.ends[-1])
        self.most = float(np.nextafter(self.total, 0))

    def draw(self, draws: PopulationDraws, path: Path, size: int) -> Tensor:
        """(P, size): positions in the grid."""
        words = draws.bits(path, size, 2)
        uniform = (words[..., 0] << 21 | words[..., 1] >> 11).double() * 2.0**-53
        return torch.searchsorted(self.ends, (uniform * self.total).clamp(max=self.most), right=True)


def weighted_points(truth: GroundTruth, device: torch.device) -> FactorDraw | None:
    """A function that draws single points; None if they need too many attempts."""
    if not _has_table(truth):
        return None
    weighted = WeightedFactors(truth, device)
    return weighted.points if weighted.can_draw else None


def weighted_pairs(truth: GroundTruth, choose: FactorDraw, device: torch.device) -> FactorDraw | None:
    """A function that draws pairs, whose changed factors `choose` draws; None if too many attempts fail."""
    if not _has_table(truth):
        return None
    weighted = WeightedFactors(truth, device)
    if not weighted.can_draw:
        return None

    def once(draws: PopulationDraws, path: Path, size: int) -> tuple[Tensor, Tensor, Tensor]:
        first = weighted.points(draws, path, size)
        second, found = weighted.second_points(draws, path, first, choose(draws, (*path, "changed"), size))
        return first, second, found

    trial = PopulationDraws([Stream.of(0)], torch.zeros((), dtype=torch.int64, device=device))
    lost = int((~once(trial, ("pairs", "trial"), TRIAL_PAIRS)[2]).sum())
    rounds = math.ceil(math.log(PAIR_FAILS) / math.log(min((lost + 10) / TRIAL_PAIRS, 0.99)))
    if rounds > MOST_ROUNDS:
        return None

    def draw(draws: PopulationDraws, path: Path, size: int) -> Tensor:
        found = [once(draws, (*path, "pairs", "round", i), size) for i in range(rounds)]
        points = torch.stack([torch.cat([first, second], dim=-1) for first, second, _ in found])
        pairs = _first_of(points, torch.stack([is_found for _, _, is_found in found]))[0]
        return torch.stack(pairs.chunk(2, dim=-1), dim=2).flatten(1, 2)

    return draw


def _has_table(truth: GroundTruth) -> bool:
    return truth.weight is not None and truth.members is None and len(truth) <= LARGEST_GRID


def _weights(truth: GroundTruth, weight: Weight) -> NDArray[np.float64]:
    """(combinations,), in the order of the grid."""
    starts = range(0, len(truth), CHUNK)
    parts = [weight(truth.factors_at(np.arange(start, min(start + CHUNK, len(truth))))) for start in starts]
    return np.concatenate(parts)


def _attempts(accepted: float) -> int:
    """How many attempts make a failure of all of them less likely than POINT_FAILS.

    >>> _attempts(0.5), _attempts(1.0)
    (60, 1)
    """
    return 1 if accepted >= 1 else math.ceil(math.log(POINT_FAILS) / math.log1p(-accepted))


def _first_of(tried: Tensor, accepted: Tensor) -> tuple[Tensor, Tensor]:
    """Of attempts (n, P, size, k) the first that was accepted, (P, size, k), and whether there was one."""
    order = torch.arange(len(tried), device=tried.device)[:, None, None]
    first = torch.where(accepted, order, len(tried) - 1).amin(dim=0)
    chosen = tried.gather(0, first[None, :, :, None].expand(1, *tried.shape[1:]))
    return chosen[0], accepted.any(dim=0)
