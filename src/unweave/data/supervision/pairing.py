"""Pairs: two points that differ in a few factors, as Ada-GVAE and Ada-ML-VAE learn from.

Locatello et al., "Weakly-supervised disentanglement without compromises" (ICML 2020, arXiv 2002.02886).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.data.grid import Factors, GroundTruth
from unweave.data.supervision.choices import is_whole, random_subsets, whole_number
from unweave.errors import UnweaveError
from unweave.streams import Stream

Changed: TypeAlias = int | Literal["random", "published"] | Sequence[str]
# (stream, n) -> (n, k): which factors change in each pair.
Choice: TypeAlias = Callable[[Stream, int], NDArray[np.bool_]]

# Under a weight: how often a second point is tried before the first one and the choice of factors are
# given up, and how many first points are tried.
TRIES = 100
ROUNDS = 100


@dataclass(frozen=True, eq=False)
class Pairs:
    """first and second (n, k); changed (n, k) marks where they differ, at least one factor in each row."""

    first: Factors
    second: Factors
    changed: NDArray[np.bool_]


def pairs(ground_truth: GroundTruth, n: int, seed: int | Stream, changed: Changed = 1) -> Pairs:
    """n pairs that differ in exactly the chosen factors.

    With K the number of factors of which more than one value is drawn, `changed` is

    - a whole number m in 1 .. K: m factors, drawn uniformly for each pair;
    - "random": as before with m uniform in 1 .. K - 1 (1 if K = 1), the paper's k = Rnd;
    - "published": as "random", but half of the pairs change one factor only, as in disentanglement_lib;
    - a list of factor names: these.

    A factor that changes gets any of its *other* values, all alike. Differs from disentanglement_lib, which
    may draw the old value again: 6 to 11 % of its pairs of dSprites do not differ at all.

    Under a weight, the first point follows the ground truth's distribution and the second one the same
    distribution given the first: the factors that stay, and new values of those that change. A choice for
    which 100 draws find no allowed second point is given up, with its first point, and made again.
    """
    whole_number(n, "the number of pairs", 0)
    choose = _choice(ground_truth, changed)
    stream = Stream.of(seed).child("pairs")
    first = np.empty((n, len(ground_truth.factors)), np.int64)
    second = np.empty_like(first)
    open_rows = np.arange(n)
    for attempt in range(ROUNDS):
        if not len(open_rows):
            break
        draws, rows = stream.child("round", attempt), int(open_rows[-1]) + 1
        first[open_rows] = ground_truth.sample_factors(rows, draws)[open_rows]
        chosen = choose(draws.child("changed"), rows)[open_rows]
        open_rows = _find_second(ground_truth, draws, first, second, chosen, open_rows)
    if len(open_rows):
        raise UnweaveError(
            f"{ground_truth.name}: {len(open_rows)} of {n} pairs found no allowed second point that differs "
            f"as changed={changed!r} asks. Hold out less, or change other factors."
        )
    return Pairs(first, second, first != second)


def _find_second(
    ground_truth: GroundTruth,
    stream: Stream,
    first: Factors,
    second: Factors,
    chosen: NDArray[np.bool_],
    open_rows: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Fill in the second points of the open rows; return the rows that found none."""
    sizes = np.asarray(ground_truth.sizes)
    for attempt in range(TRIES):
        draws, n = stream.child("second", attempt), int(open_rows[-1]) + 1
        shift = 1 + draws.integers(n, (sizes - 1).tolist())[open_rows]
        tried = np.where(chosen, (first[open_rows] + shift) % sizes, first[open_rows])
        second[open_rows] = tried
        if ground_truth.weight is None:
            return open_rows[:0]
        lost = draws.child("keep").uniform(n, 1)[open_rows, 0] >= ground_truth.weight(tried)
        open_rows, chosen = open_rows[lost], chosen[lost]
        if not len(open_rows):
            break
    return open_rows


def _choice(ground_truth: GroundTruth, changed: Changed) -> Choice:
    possible = ground_truth.varied
    count = int(possible.sum())
    if not count:
        raise UnweaveError(
            f"no factor of {ground_truth.name} has more than one value, so nothing can change."
        )
    if isinstance(changed, str):
        if changed not in ("random", "published"):
            raise UnweaveError(
                'changed must be a whole number, "random", "published" or a list of factor names; '
                f'got "{changed}".'
            )
        return _random_number(possible, half_of_one=changed == "published")
    if is_whole(changed):
        if not 1 <= changed <= count:
            raise UnweaveError(
                f"{ground_truth.name} has {count} factors with more than one value, so 1 to {count} factors "
                f"can change; got changed={changed}."
            )
        return lambda stream, n: random_subsets(stream, np.full(n, changed), possible)
    return _always(ground_truth, changed)


def _random_number(possible: NDArray[np.bool_], half_of_one: bool) -> Choice:
    most = max(int(possible.sum()) - 1, 1)

    def choose(stream: Stream, n: int) -> NDArray[np.bool_]:
        numbers = 1 + stream.child("number").integers(n, [most])[:, 0]
        if half_of_one:
            numbers = np.where(stream.child("one").integers(n, [2])[:, 0] == 1, 1, numbers)
        return random_subsets(stream, numbers, possible)

    return choose


def _always(ground_truth: GroundTruth, names: Changed) -> Choice:
    mask = ground_truth.mask(names)
    if mask.ndim != 1 or not mask.any():
        raise UnweaveError(f"changed must name at least one factor; got {names!r}.")
    for factor, asked, varies in zip(ground_truth.factors, mask, ground_truth.varied, strict=True):
        if asked and not varies:
            raise UnweaveError(f'factor "{factor.name}" has only one value, so it cannot change.')
    return lambda _stream, n: np.broadcast_to(mask, (n, len(mask)))
