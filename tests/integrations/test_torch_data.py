"""Data sets as data sets of torch."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from training.tiny import TINY
from unweave.data import from_arrays
from unweave.data.supervision import correlate
from unweave.data.variants import noise
from unweave.errors import UnweaveError
from unweave.integrations import TorchDataset


def test_a_loader_goes_through_the_whole_grid() -> None:
    data = TINY.torch()
    assert isinstance(data, torch.utils.data.Dataset)
    batches = list(DataLoader(data, batch_size=16))
    images, factors = (torch.cat(parts) for parts in zip(*batches, strict=True))
    grid = TINY.factors_at(np.arange(len(TINY)))
    assert factors.dtype == torch.int64
    assert np.array_equal(factors.numpy(), grid)
    assert images.dtype == torch.float32
    assert np.array_equal((images * 255).numpy(), TINY.observe(grid))


def test_items_by_their_number() -> None:
    data = TINY.torch(scale=False)
    image, factors = data[-1]
    assert image.dtype == torch.uint8
    assert factors.tolist() == [2, 3, 4]
    assert torch.equal(image, data[len(TINY) - 1][0])
    assert len(list(data)) == len(TINY)  # iteration ends by an IndexError
    with pytest.raises(IndexError):
        data[len(TINY)]


def test_draws_are_those_of_the_seed() -> None:
    data = TINY.torch(points=50, seed=3)
    assert len(data) == 50
    factors = np.stack([values.numpy() for _, values in data])
    assert np.array_equal(factors, TINY.sample_factors(50, 3))


def test_stochastic_images_belong_to_their_items() -> None:
    noisy = noise(TINY, "noisy")
    data = noisy.torch(points=6, seed=1, scale=False)
    images = torch.stack([image for image, _ in data.__getitems__([5, 0, 3])])
    assert np.array_equal(images.numpy(), noisy.sample_images(6, 1)[[5, 0, 3]])
    assert torch.equal(data[3][0], images[2])


def test_a_collection_keeps_its_values() -> None:
    images = TINY.sample_images(4, 0)
    collection = from_arrays(images, {"size": [0.5, 1.5, np.nan, 2.25]})
    data = TorchDataset(collection, scale=False)
    items = [data[i] for i in range(4)]
    stored = torch.stack([image for image, _ in items]).numpy()
    assert np.array_equal(stored, images)
    values = torch.stack([row for _, row in items])[:, 0]
    assert values.dtype == torch.float32
    assert values[[0, 1, 3]].tolist() == [0.5, 1.5, 2.25]
    assert values[2].isnan()


def test_what_has_no_view_is_said() -> None:
    with pytest.raises(UnweaveError, match=r"points must be a whole number >= 1; got 0"):
        TINY.torch(points=0)
    with pytest.raises(UnweaveError, match=r"Give the number of draws: points=10_000"):
        correlate(TINY, "x", "y", 0.2).torch()
    assert len(correlate(TINY, "x", "y", 0.2).torch(points=7)) == 7
