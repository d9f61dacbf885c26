"""The Triton kernels of the random streams: the numbers of the streams, from any row on."""

import numpy as np
import pytest
import torch

from nn.triton_device import DEVICE

from unweave.nn.kernels import random as random_kernels  # isort: skip
from unweave.nn.draws import PopulationDraws
from unweave.streams import Stream


@pytest.mark.parametrize(
    ("first", "rows", "columns"), [(0, 3, 4), (1, 5, 7), (2049, 70, 9), (2**31 - 9, 8, 2)]
)
def test_kernels_draw_what_the_streams_draw(first: int, rows: int, columns: int) -> None:
    streams = [Stream.of(seed).at(11).skip(first) for seed in (0, 5)]
    draws = PopulationDraws(streams, torch.tensor(11, device=DEVICE))
    arguments = draws.keys("noise"), draws.step, rows, columns, first
    children = [stream.child("noise") for stream in streams]
    expected = np.stack([child.bits(rows, columns) for child in children])
    np.testing.assert_array_equal(random_kernels.random_bits(*arguments).cpu().numpy(), expected)
    normal = np.stack([child.normal(rows, columns) for child in children])
    np.testing.assert_allclose(random_kernels.random_normal(*arguments).cpu().numpy(), normal, atol=2e-6)
