"""A tiny data set whose codes are known: one bright dot of 8 x 8 pixels, at one of 5 x 5 places."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.data import GroundTruth, from_arrays

SIZE, PLACES = 8, 5
FACTORS = np.stack(np.meshgrid(np.arange(PLACES), np.arange(PLACES), indexing="ij"), axis=-1).reshape(-1, 2)


def dot_images() -> NDArray[np.uint8]:
    """One image of each combination of x and y, (25, 1, 8, 8)."""
    images = np.zeros((len(FACTORS), 1, SIZE, SIZE), np.uint8)
    images[np.arange(len(FACTORS)), 0, FACTORS[:, 1], FACTORS[:, 0]] = 255
    return images


def dots() -> GroundTruth:
    """The grid of x and y."""
    data = from_arrays(dot_images(), {"x": FACTORS[:, 0], "y": FACTORS[:, 1]}, name="dots")
    assert isinstance(data, GroundTruth)
    return data


def encode(images: Any) -> Any:
    """The place of the dot, (x, y), from 0 to 4; of arrays and of tensors."""
    places = np.arange(SIZE)
    x = (np.asarray(images).sum(axis=(1, 2)) * places).sum(axis=1)
    y = (np.asarray(images).sum(axis=(1, 3)) * places).sum(axis=1)
    return np.stack([x, y], axis=1).astype(np.float32)


def decode(codes: Any) -> Any:
    """The dot at the nearest place."""
    places = np.asarray(codes).round().astype(int).clip(0, SIZE - 1)
    images = np.zeros((len(places), 1, SIZE, SIZE), np.float32)
    images[np.arange(len(places)), 0, places[:, 1], places[:, 0]] = 1
    return images
