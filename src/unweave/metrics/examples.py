"""What typical codes score: five codes of dSprites' factors, and the scores of every metric on them.

A number such as 0.25 says little without knowing what a perfect code gets and what noise gets. The scores
take minutes to compute, so they are stored in a file next to this one; `python -m unweave.metrics.examples`
writes it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.metrics.checks import scaled
from unweave.metrics.metric import Metric, compute
from unweave.metrics.representation import Representation
from unweave.metrics.table import METRICS
from unweave.streams import Stream

Codes: TypeAlias = NDArray[np.float64]

SIZES = (3, 6, 40, 32, 32)  # shape, scale, orientation, x and y of dSprites
TRAIN, TEST = 10_000, 5_000
# The codes of shape in the first examples, and all others; shape is the factor of the first block.
BLOCKS = {"content": (0, 5), "style": (1, 2, 3, 4, 6, 7, 8, 9)}
BLOCK_FACTORS = {"content": (0,)}
# Orientation is circular, and shape is categorical.
KINDS = {
    "circular": {2: 39},
    "periods": {2: 39.0},
    "categorical": (0,),
    "factor_names": ("shape", "scale", "orientation", "x", "y"),
}
FILE = Path(__file__).with_name("examples.csv")
# Of the posteriors: what a VAE is unsure about in a code that it uses.
NARROW = 2 * np.log(0.1)


def _standardised(factors: NDArray[np.int64]) -> Codes:
    sizes = np.array(SIZES)
    return np.asarray((factors - (sizes - 1) / 2) / np.sqrt((sizes**2 - 1) / 12))


def _mixing() -> Codes:
    """An orthogonal matrix (the cosine transform) in which no factor keeps a code of its own."""
    k = len(SIZES)
    angles = np.pi * np.outer(np.arange(k) + 0.5, np.arange(k)) / k
    return np.asarray(np.cos(angles) * np.where(np.arange(k) == 0, np.sqrt(1 / k), np.sqrt(2 / k)))


def _with_collapsed(codes: Codes, stream: Stream) -> Codes:
    return np.hstack([codes, 0.01 * stream.normal(len(codes), len(SIZES))])


# Ten codes of (n, 5) factors each.
EXAMPLES: dict[str, Callable[[NDArray[np.int64], Stream], Codes]] = {
    "perfect": lambda factors, stream: _with_collapsed(_standardised(factors), stream),
    "rotated": lambda factors, stream: _with_collapsed(_standardised(factors) @ _mixing(), stream),
    "duplicated": lambda factors, stream: np.tile(_standardised(factors), 2),  # noqa: ARG005
    "dead": lambda factors, stream: np.pad(_standardised(factors), ((0, 0), (0, 5))),  # noqa: ARG005
    "noise": lambda factors, stream: stream.normal(len(factors), 10),
}
MEANING = {
    "perfect": "five codes are the factors, scaled to variance 1; five are noise of standard deviation 0.01",
    "rotated": "the five factors mixed by a rotation, and the five codes of small noise",
    "duplicated": "the five factors, each in two codes",
    "dead": "the five factors, and five codes that are always 0",
    "noise": "ten codes that know nothing of the factors",
}


class LinearJudge:
    """Stands for a decoder and a judge of its images: reads factors off codes by least squares."""

    def __init__(self, codes: Codes, factors: NDArray[np.int64]) -> None:
        self.accuracy = np.ones(factors.shape[1])
        small, self._exponents = scaled(codes, axis=0)
        self._centre, spread = small.mean(axis=0), small.std(axis=0)
        self._spread = np.where(spread > 0, spread, 1.0)
        self._least, self._largest = factors.min(axis=0), factors.max(axis=0)
        self._weights = np.linalg.lstsq(self._inputs(codes), factors, rcond=1e-9)[0]

    def __call__(self, codes: Codes) -> NDArray[np.int64]:
        """The nearest values of all factors, (n, k)."""
        read = np.rint(self._inputs(codes) @ self._weights)
        return np.clip(read, self._least, self._largest).astype(np.int64)

    def _inputs(self, codes: Codes) -> Codes:
        standardised = (np.ldexp(codes, -self._exponents) - self._centre) / self._spread
        return np.hstack([standardised, np.ones((len(codes), 1))])


def score_of_example(metric: Metric, example: str) -> dict[str, float]:
    """The numbers of a metric on an example: 10,000 points, 5,000 test points, all from fixed seeds."""
    representation = Representation(EXAMPLES[example], SIZES)
    codes, factors = representation.draw(TRAIN, seed=0)
    test = representation.draw(TEST, seed=1)
    # A collapsed or dead code has the posterior of the prior, N(0, 1).
    log_var = np.where(codes.std(axis=0) < 0.1, 0.0, NARROW) * np.ones_like(codes)
    given = {"test": test, "log_var": log_var, "losses": np.zeros(TRAIN), "representation": representation}
    in_blocks = {"blocks": BLOCKS, "block_factors": BLOCK_FACTORS, "judge": LinearJudge(codes, factors)}
    return compute(metric, codes, factors, **given, **in_blocks, **KINDS)


def stored_scores() -> dict[str, dict[str, float]]:
    """Flat name of a score -> example -> value, for all metrics."""
    with FILE.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    return {row.pop("score"): {example: float(value) for example, value in row.items()} for row in rows}


def write_scores() -> None:
    """Compute all scores, which takes minutes, and write them into the file."""
    with FILE.open("w", newline="") as lines:
        table = csv.writer(lines, lineterminator="\n")
        table.writerow(["score", *EXAMPLES])
        for metric in METRICS:
            found = [score_of_example(metric, example) for example in EXAMPLES]
            # Accuracies of single factors would make long tables.
            names = [name for name in found[0] if not name.endswith(".accuracy")]
            table.writerows([[name, *(f"{one[name]:.4f}" for one in found)] for name in names])
            lines.flush()


if __name__ == "__main__":
    write_scores()
