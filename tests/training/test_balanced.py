"""Balanced batches of labelled images: who may be in them, how often, and the same on every device."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from training.test_batches import DEVICE, SPRITES, draws
from training.tiny import TINY
from unweave.methods.sampling import Balance, Labels, labels_in_turn
from unweave.nn.draws import PopulationDraws
from unweave.streams import Stream
from unweave.training.balanced import BalancedRows
from unweave.training.batches import HostBatches, ResidentBatches


def rows_of(labels: np.ndarray, sizes: list[int], balance: Balance, step: int, seed: int = 0) -> np.ndarray:
    stream = Stream.of(seed).at(step)
    rows = BalancedRows(torch.from_numpy(labels)[None], sizes, balance)
    orders = {name: stream.child(name) for name in ("values", "points", "held out points")}
    drawn = rows.draw(torch.tensor(step), lambda name, n: torch.from_numpy(orders[name].permutations(1, n)))
    return drawn[0].numpy()


@given(st.integers(0, 99), st.integers(1, 40), st.integers(0, 30), st.integers(2, 5), st.integers(2, 6))
@settings(max_examples=40, deadline=None)
def test_places_of_a_value_hold_different_images_of_it(
    seed: int, learned: int, held_out: int, values: int, images: int
) -> None:
    sizes = [4, 1, 7]
    labels = Stream.of(seed).child("labels").integers(learned + held_out, sizes)
    for step in range(3):
        column = [0, 2][step % 2]
        rows = rows_of(labels, sizes, Balance(values, images, held_out), step, seed)
        halves = np.split(rows, 2) if held_out else [rows]
        for half, first, last in zip(halves, (0, learned), (learned, learned + held_out), strict=False):
            counts = np.bincount(labels[first:last, column], minlength=sizes[column])
            groups = [group[group >= 0] for group in half.reshape(-1, images)]
            taken = [group for group in groups if len(group)]
            assert len(taken) == min(values, (counts > 1).sum())
            chosen = [set(labels[group, column]) for group in taken]
            assert all(len(value) == 1 for value in chosen)
            assert len(set.union(set(), *chosen)) == len(taken), "each value once"
            for group, (value,) in zip(taken, chosen, strict=True):
                assert len(set(group)) == len(group) == min(images, counts[value])
                assert ((group >= first) & (group < last)).all()


def test_all_points_and_values_are_drawn_alike() -> None:
    labels = np.arange(40)[:, None] % 4
    rows = np.concatenate([rows_of(labels, [4], Balance(2, 3), step) for step in range(600)])
    assert (np.abs(np.bincount(rows) - 600 * 6 / 40) < 40).all()


def test_labels_of_one_value_take_no_turn() -> None:
    assert labels_in_turn((3, 1, 2)) == (0, 2)
    assert labels_in_turn((1, 1)) == (0, 1)


def test_host_and_device_draw_the_same() -> None:
    for balance in (Balance(12, 5, 20), Balance(3, 2)):
        sampling = Labels(100, balance=balance)
        for step in (0, 3):
            one, other = (
                source(SPRITES, DEVICE).draw(draws(step), step, "batch", 4, sampling)
                for source in (ResidentBatches, HostBatches)
            )
            assert len(one.tensors()) == 4
            for mine, theirs in zip(one.tensors(), other.tensors(), strict=True):
                assert torch.equal(mine, theirs)


def test_images_and_labels_are_those_of_the_points() -> None:
    sampling, stream = Labels(30, balance=Balance(3, 4, 10)), Stream.of(2)
    source = HostBatches(TINY, torch.device("cpu"))
    batch = source.draw(PopulationDraws([stream], torch.tensor(1)), 1, "batch", 5, sampling).labelled
    assert batch is not None
    points, is_taken = source.points(stream, sampling), batch.index[0] >= 0
    index = batch.index[0][is_taken].numpy()
    np.testing.assert_array_equal(batch.labels[0][is_taken].numpy(), points.labels[index])
    np.testing.assert_array_equal(batch.images[0][is_taken].numpy(), TINY.observe(points.factors[index]))
