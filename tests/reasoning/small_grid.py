"""Small ground truths with known factors."""

import numpy as np
from numpy.typing import NDArray

from unweave.data import Card, Factor, GroundTruth
from unweave.streams import Stream

SIDE = 4  # of an image


def small_truth(sizes: tuple[int, ...], name: str = "small", *, stochastic: bool = False) -> GroundTruth:
    """A grid whose images have the values of the factors as their first pixels."""

    def render(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.uint8]:
        images = np.zeros((len(factors), 1, SIDE, SIDE), np.uint8)
        images.reshape(len(factors), -1)[:, : len(sizes)] = 50 * factors
        if stochastic:
            images[:, 0, -1, -1] = stream.integers(len(factors), [256])[:, 0]
        return images

    factors = tuple(Factor(f"f{j}", size) for j, size in enumerate(sizes))
    return GroundTruth(
        name, factors, (1, SIDE, SIDE), render, Card(name, "", ""), "made up", stochastic=stochastic
    )


def perfect_codes(truth: GroundTruth) -> NDArray[np.float64]:
    """The factors of all images, from -0.5 to 0.5."""
    factors = truth.factors_at(np.arange(len(truth)))
    return np.asarray(factors / (np.array(truth.sizes) - 1) - 0.5, np.float64)
