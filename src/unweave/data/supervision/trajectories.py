"""Sequences: frames of one scene in which content is constant and pose changes, as DrNet learns from.

Denton and Birodkar, "Unsupervised learning of disentangled representations from video" (NeurIPS 2017,
arXiv 1705.10915).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unweave.data.grid import Factor, Factors, GroundTruth
from unweave.data.supervision.choices import random_subsets, whole_number
from unweave.data.supervision.grouping import groups
from unweave.errors import UnweaveError
from unweave.streams import Stream

# How often a sequence is drawn before it is clear that the weight leaves no way through.
MOST_ATTEMPTS = 1_000


def sequences(
    ground_truth: GroundTruth,
    n: int,
    length: int,
    content: Sequence[str],
    seed: int | Stream,
    step: int | None = 1,
) -> Factors:
    """n sequences of `length` frames, (n, length, k).

    Content factors, and categorical ones, which have no order to move along, keep the value of the first
    frame. If `step` is None, every frame draws all other factors independently: frames of one sequence are
    then as different in pose as frames of two sequences.

    Otherwise every other factor moves at its own constant velocity, a whole number drawn uniformly from
    -step .. step: position_t = start + velocity t. Ordinal factors are reflected at their ends, circular
    ones wrap around, so consecutive frames differ by at most `step` values. Speeds are cut to size - 1
    (ordinal) and size // 2 (circular). Where this leaves the second frame equal to the first, one factor
    chosen at random moves at speed 1 instead: something always moves.

    Under a weight, the first frame is drawn from the ground truth's distribution. A sequence that enters a
    combination of weight 0 is drawn again with another first frame, so first frames with few allowed ways on
    are rarer. Other weights do not change later frames.
    """
    whole_number(n, "the number of sequences", 0)
    whole_number(length, "the length of a sequence", 1)
    if step is None:
        return groups(ground_truth, n, length, is_held(ground_truth, content), seed).factors
    fastest = speed_limits(ground_truth, content, whole_number(step, "step", 1))
    stream = Stream.of(seed).child("sequences")
    out = np.empty((n, length, len(fastest)), np.int64)
    open_rows = np.arange(n)
    for attempt in range(MOST_ATTEMPTS):
        if not len(open_rows):
            break
        rows = int(open_rows[-1]) + 1
        start, velocity = _set_off(ground_truth, rows, fastest, stream.child("attempt", attempt))
        frames = _travel(ground_truth, start[open_rows], velocity[open_rows], length)
        out[open_rows] = frames
        open_rows = open_rows[~_allowed(ground_truth, frames)]
    if len(open_rows):
        raise UnweaveError(
            f"{ground_truth.name}: {len(open_rows)} of {n} sequences of length {length} found no way through "
            f"allowed combinations in {MOST_ATTEMPTS} attempts. Make them shorter, or hold out less."
        )
    return out


def speed_limits(ground_truth: GroundTruth, content: Sequence[str], step: int) -> NDArray[np.int64]:
    """(k,): the highest speed of each factor, 0 for those that are held."""
    held = ground_truth.mask(content)
    if held.ndim != 1:
        raise UnweaveError(f"content must be a list of factor names; got {content!r}.")
    limits = [_speed_limit(factor) for factor in ground_truth.factors]
    fastest = np.where(held, 0, np.minimum(limits, step))
    if not fastest.any():
        raise UnweaveError(
            f"nothing of {ground_truth.name} can move: content must leave out at least one ordinal or "
            f"circular factor with more than one value; got {list(content)}."
        )
    return fastest


def is_held(ground_truth: GroundTruth, content: Sequence[str]) -> NDArray[np.bool_]:
    """(k,): whether a factor is constant in a sequence: as content, as categorical, or with one value."""
    held: NDArray[np.bool_] = speed_limits(ground_truth, content, 1) == 0
    return held


def _speed_limit(factor: Factor) -> int:
    return {"categorical": 0, "ordinal": factor.size - 1, "circular": factor.size // 2}[factor.kind]


def _set_off(
    ground_truth: GroundTruth, n: int, fastest: NDArray[np.int64], stream: Stream
) -> tuple[Factors, NDArray[np.int64]]:
    """First frames (n, k) and velocities (n, k), such that the second frame differs from the first."""
    start = ground_truth.sample_factors(n, stream)
    velocity = stream.child("velocity").integers(n, (2 * fastest + 1).tolist()) - fastest
    # Not only velocity 0 stands still: 1 of 0 .. 2 at speed 2 is reflected onto itself. Speed 1 never is.
    still = (_travel(ground_truth, start, velocity, 2)[:, 1] == start).all(axis=1, keepdims=True)
    mover = random_subsets(stream.child("mover"), np.ones(n), fastest > 0)
    direction = 2 * stream.child("direction").integers(n, [2]) - 1
    return start, np.where(still, mover * direction, velocity)


def _travel(ground_truth: GroundTruth, start: Factors, velocity: NDArray[np.int64], length: int) -> Factors:
    """(n, length, k) values at times 0 .. length - 1."""
    sizes = np.asarray(ground_truth.sizes)
    circular = np.asarray([factor.kind == "circular" for factor in ground_truth.factors])
    position = start[:, None] + velocity[:, None] * np.arange(length)[:, None]
    period = np.maximum(2 * (sizes - 1), 1)  # there and back again
    phase = position % period
    values: Factors = np.where(circular, position % sizes, np.minimum(phase, period - phase))
    return values


def _allowed(ground_truth: GroundTruth, frames: Factors) -> NDArray[np.bool_]:
    """(n,): whether no frame of a sequence has weight 0."""
    if ground_truth.weight is None:
        return np.ones(len(frames), np.bool_)
    weights = ground_truth.weight(frames.reshape(-1, frames.shape[-1]))
    return np.asarray((weights > 0).reshape(frames.shape[:2]).all(axis=1))
