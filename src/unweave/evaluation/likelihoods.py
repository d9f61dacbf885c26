"""How unlikely images are under a trained model, in parts that fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.evaluation.posteriors import Posterior, joined
from unweave.streams import Stream

CHUNK = 2048  # images that are made and encoded at once
# images, codes -> -log p(x|z) of each.
Losses: TypeAlias = Callable[[NDArray[np.uint8], NDArray[Any]], NDArray[np.float64]]
# images, and the stream of their noise -> bits per dimension of each.
Bits: TypeAlias = Callable[[NDArray[np.uint8], Stream], NDArray[np.float64]]
# The names of numbers to leave out -> why they mean nothing; see unweave.evaluation.meaningless.
Meaningless: TypeAlias = Mapping[str, str]


def split_factors(factors: NDArray[np.int64], stream: Stream) -> Iterator[tuple[NDArray[np.int64], Stream]]:
    """Factors (n, k) in parts that are encoded at once, and the stream of each part."""
    for start in range(0, len(factors), CHUNK):
        yield factors[start : start + CHUNK], stream.skip(start)


def likelihood_of(
    draw: Callable[[int, Stream], tuple[NDArray[np.uint8], Posterior]],
    losses: Losses,
    n: int,
    stream: Stream,
) -> tuple[NDArray[np.float64], Posterior]:
    """-log p(x|z) and the posteriors of n images; `draw` gives so many images and their posteriors."""
    posteriors, found = [], []
    for start in range(0, n, CHUNK):
        part = stream.skip(start)
        images, posterior = draw(min(CHUNK, n - start), part)
        noise = part.child("noise").normal(*posterior.mean.shape)
        found.append(losses(images, posterior.draw(noise)))
        posteriors.append(posterior)
    return np.concatenate(found), joined(posteriors)
