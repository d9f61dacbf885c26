"""Batches of data with a condition: a device draws what the host draws, also inside a CUDA graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from training.test_batches import DEVICE, SEEDS, SPRITES, TRUTHS, draws
from unweave.data import GroundTruth
from unweave.data.supervision.restrict import correlate, held_out_part, hold_out, only, reweight
from unweave.data.weight_table import rare_table
from unweave.methods.sampling import Groups, Labels, Pairs, Sampling
from unweave.methods.sampling import Images as SingleImages
from unweave.streams import Stream
from unweave.training.batches import HostBatches, ResidentBatches
from unweave.training.factors import device_factors, host_factors

HELD = hold_out(SPRITES, [{"shape": 2, "x": range(2, 4)}])
CONDITIONS: dict[str, GroundTruth] = {
    "correlated": correlate(SPRITES, "x", "y", 0.2),
    "correlated, colour": correlate(TRUTHS["colour"], "orientation", "x", 0.4),
    "held out": HELD,
    "some pairs are given up": hold_out(SPRITES, [{"shape": 0, "orientation": range(1, 4)}]),
    "a factor is constant": only(SPRITES, [{"shape": 1}]),
    "rare and held out": reweight(HELD, {"scale": 0}, 0.1),
}
THREE_PAIRS = correlate(
    correlate(correlate(SPRITES, "orientation", "x", 0.2), "shape", "y", 0.2), "scale", "x", 0.5
)
FEW = reweight(only(SPRITES, [{"shape": 1, "x": [1, 2]}]), {"scale": 0}, 0.01)
SAMPLINGS: dict[str, Sampling] = {
    "images": SingleImages(),
    "pairs": Pairs("published", labels=True),
    "labels": Labels(7),
}


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=list(SAMPLINGS))
@pytest.mark.parametrize("name", CONDITIONS)
def test_the_device_draws_what_the_host_draws(name: str, sampling: Sampling) -> None:
    truth = CONDITIONS[name]
    resident, host = ResidentBatches(truth, DEVICE), HostBatches(truth, DEVICE)
    assert resident.on_device(sampling)
    for step, size in ((0, 3), (299_999, 20)):
        one = resident.draw(draws(step), step, "batch", size, sampling)
        other = host.draw(draws(step), step, "batch", size, sampling)
        for mine, theirs in zip(one.tensors(), other.tensors(), strict=True):
            assert mine.dtype == theirs.dtype
            assert torch.equal(mine, theirs)


def test_many_rows_agree_with_the_host() -> None:
    truth = CONDITIONS["some pairs are given up"]
    for sampling in (SingleImages(), Pairs(1)):
        draw = device_factors(truth, sampling, DEVICE)
        assert draw is not None
        factors = draw(draws(5), ("batch",), 400).cpu().numpy()
        for run, seed in enumerate(SEEDS):
            stream = Stream.of(seed).child("batch").at(5)
            np.testing.assert_array_equal(factors[run], host_factors(truth, 400, stream, sampling))


@pytest.mark.parametrize("sampling", [SingleImages(), Labels(7), Pairs(1)], ids=["images", "labels", "pairs"])
def test_where_few_draws_are_accepted_both_use_a_table(sampling: Sampling) -> None:
    truth = THREE_PAIRS if isinstance(sampling, Pairs) else FEW  # of which many pairs are given up
    assert truth.weight is not None
    assert rare_table(truth.sizes, truth.weight) is not None
    draw = device_factors(truth, sampling, DEVICE)
    assert draw is not None
    factors = draw(draws(5), ("batch",), 400).cpu().numpy()
    for run, seed in enumerate(SEEDS):
        stream = Stream.of(seed).child("batch").at(5)
        np.testing.assert_array_equal(factors[run], host_factors(truth, 400, stream, sampling))


@pytest.mark.parametrize(
    ("truth", "sampling"),
    [
        (HELD, Groups(2, 1)),
        (correlate(SPRITES, "x", "y", 0.01), Pairs(1)),
        (held_out_part(HELD), SingleImages()),
    ],
    ids=["groups", "many pairs are given up", "members"],
)
def test_what_the_device_cannot_draw_is_left_to_the_host(truth: GroundTruth, sampling: Sampling) -> None:
    resident = ResidentBatches(truth, DEVICE)
    assert not resident.on_device(sampling)
    images = resident.draw(draws(1), 1, "batch", 4, sampling).images
    assert torch.equal(images, HostBatches(truth, DEVICE).draw(draws(1), 1, "batch", 4, sampling).images)
