"""Small parts for tests of training: white squares of 3 sizes at 4 x 5 places, and narrow discriminators."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.nn.networks.vae import Discriminator
from unweave.streams import Stream

FACTORS = (Factor("size", 3), Factor("x", 4), Factor("y", 5))


def _render(factors: Factors, _stream: Stream) -> Images:
    rows = np.arange(32)
    half = 2 + factors[:, 0, None]
    across = np.abs(rows - (6 + 6 * factors[:, 1, None])) <= half
    along = np.abs(rows - (5 + 5 * factors[:, 2, None])) <= half
    return np.asarray((along[:, :, None] & across[:, None, :])[:, None] * np.uint8(255))


TINY = GroundTruth("tiny", FACTORS, (1, 32, 32), _render, Card("tiny", "none", ""), "made up", binary=True)


@contextmanager
def narrow_discriminators(units: int = 40) -> Iterator[None]:
    """Build narrow discriminators of codes. Layers of 1,000 units take most of the time of a step."""
    build = Discriminator.__init__

    def build_narrow(
        network: Discriminator, streams: Sequence[Stream], latents: int, width: int = units, depth: int = 6
    ) -> None:
        build(network, streams, latents, min(width, units), depth)

    with patch.object(Discriminator, "__init__", build_narrow):
        yield
