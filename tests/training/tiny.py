"""A ground truth small enough to train on in tests: a white square of 3 sizes at 4 x 5 places, 32 x 32."""

import numpy as np

from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.streams import Stream

FACTORS = (Factor("size", 3), Factor("x", 4), Factor("y", 5))


def _render(factors: Factors, _stream: Stream) -> Images:
    rows = np.arange(32)
    half = 2 + factors[:, 0, None]
    across = np.abs(rows - (6 + 6 * factors[:, 1, None])) <= half
    along = np.abs(rows - (5 + 5 * factors[:, 2, None])) <= half
    return np.asarray((along[:, :, None] & across[:, None, :])[:, None] * np.uint8(255))


TINY = GroundTruth("tiny", FACTORS, (1, 32, 32), _render, Card("tiny", "none", ""), "made up", binary=True)
