"""Factors of the images of a batch: drawn by NumPy on the host, or the same numbers by torch on a device.

Where all combinations are equally likely, `unweave.data.supervision` finds every pair, group and sequence at
its first attempt. Others are in weighted_factors.py. All inputs of a draw are on the device beforehand:
nothing may be sent to it while a CUDA graph is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from unweave.data import GroundTruth
from unweave.data.grid import Factors
from unweave.data.supervision import groups, pairs, sequences
from unweave.data.supervision.choices import resolve_class
from unweave.data.supervision.trajectories import is_held, speed_limits
from unweave.errors import UnweaveError
from unweave.methods.sampling import Groups, Images, Labels, Pairs, Sampling, Sequences
from unweave.nn.draws import PopulationDraws
from unweave.streams import Stream
from unweave.training.weighted_factors import FactorDraw, Path, weighted_pairs, weighted_points

# (draws, names of a stream, size) -> (P, size, k), or (k) for all rows: a mask of the chosen factors.
Choice: TypeAlias = Callable[[PopulationDraws, Path, int], Tensor]


def host_factors(truth: GroundTruth, size: int, stream: Stream, sampling: Sampling) -> Factors:
    """(images, k): the factors of a batch; images of one pair, group or sequence are neighbours."""
    match sampling:
        case Pairs():
            drawn = pairs(truth, size, stream, sampling.changed)
            factors = np.stack([drawn.first, drawn.second], axis=1)
        case Groups():
            factors = groups(truth, size, sampling.together, _shared(truth, sampling), stream).factors
        case Sequences():
            content = _content(truth, sampling)
            factors = sequences(truth, size, sampling.together, content, stream, sampling.step)
        case _:
            factors = truth.sample_factors(size, stream)
    return factors.reshape(-1, len(truth.factors))


def device_factors(truth: GroundTruth, sampling: Sampling, device: torch.device) -> FactorDraw | None:
    """A function that draws what `host_factors` draws, for all runs of a population; None if only it can."""
    host_factors(truth, 0, Stream.of(0), sampling)  # raises if the data cannot be sampled this way
    if truth.weight is not None:
        return _weighted(truth, sampling, device)
    match sampling:
        case Pairs():
            return _pairs(truth, sampling, device)
        case Groups():
            return _groups(truth, sampling, device)
        case Sequences():
            return _sequences(truth, sampling, device)
    return lambda draws, path, size: draws.integers((*path, "factors"), size, truth.sizes)


def _weighted(truth: GroundTruth, sampling: Sampling, device: torch.device) -> FactorDraw | None:
    match sampling:
        case Pairs():
            return weighted_pairs(truth, _changed(truth, sampling, device), device)
        case Images() | Labels():
            return weighted_points(truth, device)
    return None


def _pairs(truth: GroundTruth, sampling: Pairs, device: torch.device) -> FactorDraw:
    sizes = torch.tensor(truth.sizes, device=device)
    others = [size - 1 for size in truth.sizes]
    choose = _changed(truth, sampling, device)

    def draw(draws: PopulationDraws, path: Path, size: int) -> Tensor:
        path = (*path, "pairs", "round", 0)
        first = draws.integers((*path, "factors"), size, truth.sizes)
        shifted = (first + 1 + draws.integers((*path, "second", 0), size, others)) % sizes
        second = torch.where(choose(draws, (*path, "changed"), size), shifted, first)
        return torch.stack([first, second], dim=2).flatten(1, 2)

    return draw


def _changed(truth: GroundTruth, sampling: Pairs, device: torch.device) -> Choice:
    subsets = _Subsets(truth.varied.tolist(), device)
    most = max(subsets.count - 1, 1)

    def choose(draws: PopulationDraws, path: Path, size: int) -> Tensor:
        if isinstance(sampling.changed, int):
            return subsets(draws, path, size, sampling.changed)
        number = 1 + draws.integers((*path, "number"), size, [most])
        if sampling.changed == "published":
            one = draws.integers((*path, "one"), size, [2]) == 1
            number = number.masked_fill(one, 1)
        return subsets(draws, path, size, number)

    return choose


def _groups(truth: GroundTruth, sampling: Groups, device: torch.device) -> FactorDraw:
    choose = _chosen_shared(truth, _shared(truth, sampling), device)

    def draw(draws: PopulationDraws, path: Path, size: int) -> Tensor:
        path = (*path, "groups")
        is_shared = choose(draws, (*path, "shared"), size)
        first = draws.integers((*path, "factors"), size, truth.sizes)
        members = [
            torch.where(is_shared, first, draws.integers((*path, "factors", "member", i), size, truth.sizes))
            for i in range(1, sampling.together)
        ]
        return torch.stack([first, *members], dim=2).flatten(1, 2)

    return draw


def _chosen_shared(truth: GroundTruth, shared: int | tuple[str, ...], device: torch.device) -> Choice:
    if not isinstance(shared, int):
        always = torch.from_numpy(truth.mask(shared)).to(device)
        return lambda _draws, _path, _size: always
    subsets = _Subsets(truth.varied.tolist(), device)
    return lambda draws, path, size: subsets(draws, path, size, shared)


def _shared(truth: GroundTruth, sampling: Groups) -> int | tuple[str, ...]:
    if not isinstance(sampling.shared, int):
        return resolve_class(sampling.shared, truth.factors)
    if sampling.chosen == "random":
        return sampling.shared
    return _first(truth, sampling.shared, "a group cannot share")


def _content(truth: GroundTruth, sampling: Sequences) -> tuple[str, ...]:
    if not isinstance(sampling.content, int):
        return resolve_class(sampling.content, truth.factors)
    return _first(truth, sampling.content, "a sequence cannot hold")


def _first(truth: GroundTruth, count: int, impossible: str) -> tuple[str, ...]:
    """The names of the first factors."""
    if count > len(truth.factors):
        raise UnweaveError(f"{truth.name} has {len(truth.factors)} factors, of which {impossible} {count}.")
    return tuple(factor.name for factor in truth.factors[:count])


def label_columns(truth: GroundTruth, sampling: Sampling) -> list[int]:
    """The columns of the factors that the method gets as labels."""
    if not isinstance(sampling, Pairs | Groups) or not sampling.labels:
        return []
    if isinstance(sampling, Pairs) or sampling.labels is True:
        return list(range(len(truth.factors)))
    shared = _shared(truth, sampling)
    if isinstance(shared, int):
        raise UnweaveError(
            "each group shares other, random factors, so they cannot be labels. Name the shared factors."
        )
    return [truth.position(name) for name in shared]


def _sequences(truth: GroundTruth, sampling: Sequences, device: torch.device) -> FactorDraw:
    if sampling.step is None:
        held = is_held(truth, _content(truth, sampling))
        names = tuple(factor.name for factor, h in zip(truth.factors, held, strict=True) if h)
        return _groups(truth, Groups(sampling.together, names), device)
    sizes = torch.tensor(truth.sizes, device=device)
    period = torch.clamp(2 * (sizes - 1), min=1)  # from the first value to the last and back
    circular = torch.tensor([factor.kind == "circular" for factor in truth.factors], device=device)
    fastest = speed_limits(truth, _content(truth, sampling), sampling.step)
    speed = torch.from_numpy(fastest).to(device)
    velocities = (2 * fastest + 1).tolist()  # from -speed to speed
    one, times = torch.ones_like(sizes)[:1, None], torch.arange(sampling.together, device=device)[:, None]
    movers = _Subsets((fastest > 0).tolist(), device)

    def travel(start: Tensor, velocity: Tensor, times: Tensor) -> Tensor:
        position = start[:, :, None] + velocity[:, :, None] * times
        phase = position % period
        return torch.where(circular, position % sizes, torch.minimum(phase, period - phase))

    def draw(draws: PopulationDraws, path: Path, size: int) -> Tensor:
        path = (*path, "sequences", "attempt", 0)
        start = draws.integers((*path, "factors"), size, truth.sizes)
        velocity = draws.integers((*path, "velocity"), size, velocities) - speed
        still = (travel(start, velocity, one)[:, :, 0] == start).all(dim=-1, keepdim=True)
        direction = 2 * draws.integers((*path, "direction"), size, [2]) - 1
        velocity = torch.where(still, movers(draws, (*path, "mover"), size, 1) * direction, velocity)
        return travel(start, velocity, times).flatten(1, 2)

    return draw


class _Subsets:
    """Random subsets of some factors, as `unweave.data.supervision.choices.random_subsets`."""

    def __init__(self, allowed: list[bool], device: torch.device) -> None:
        self.count = sum(allowed)
        places = np.cumsum(allowed) - 1  # the rank of each allowed factor among the allowed ones
        self.places = torch.from_numpy(np.maximum(places, 0)).to(device)
        self.allowed = torch.tensor(allowed, device=device)

    def __call__(self, draws: PopulationDraws, path: Path, size: int, count: int | Tensor) -> Tensor:
        """(P, size, k): `count` of the allowed factors are marked in each row."""
        marked = draws.permutations(path, size, self.count) < count
        return marked[..., self.places] & self.allowed
