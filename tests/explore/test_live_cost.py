"""The benchmark of what a live page costs: its statistics on made-up speeds."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.live import LIMIT, ratio_of, speeds
from benchmarks.live_page import watched_segments

PAIRS, SECONDS = 60, 4.0


def measured(cost: float, noise: float) -> np.ndarray:
    """Speeds of a training that slows down over time, by a share more while it is watched."""
    rng = np.random.default_rng(0)
    watched = np.array(watched_segments(PAIRS))
    rates = (
        np.linspace(200, 150, 2 * PAIRS) * (1 - cost * watched) * np.exp(noise * rng.normal(size=2 * PAIRS))
    )
    times = 100 + SECONDS * np.arange(2 * PAIRS + 1)
    steps = np.concatenate([[0], np.cumsum(rates * SECONDS)])
    fine = np.linspace(100, times[-1], 2000)
    marks = list(zip(fine.tolist(), np.interp(fine, times, steps).tolist(), strict=True))
    return speeds(100.0, SECONDS, PAIRS, marks)


def test_one_segment_of_each_pair_is_watched_in_changing_order() -> None:
    order = np.array(watched_segments(PAIRS)).reshape(-1, 2)
    assert (order.sum(1) == 1).all()
    assert 0.3 < order[:, 0].mean() < 0.7


@pytest.mark.parametrize("cost", [0.0, 0.05])
def test_the_interval_holds_the_true_cost(cost: float) -> None:
    ratio = ratio_of(measured(cost, noise=0.01))
    assert ratio.low < 1 - cost < ratio.high
    assert ratio.high - ratio.low < 0.02
    assert (ratio.low > LIMIT) == (cost == 0.0)
