"""What typical codes score: five codes of dSprites' factors, and the scores of every metric on them.

A number such as 0.25 says little without knowing what a perfect code gets and what noise gets. The scores
take minutes to compute, so they lie in a file beside this one; `python -m unweave.metrics.examples` writes
it anew.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.metrics.metric import Metric, compute
from unweave.metrics.representation import Representation
from unweave.metrics.table import METRICS
from unweave.streams import Stream

Codes: TypeAlias = NDArray[np.float64]

SIZES = (3, 6, 40, 32, 32)  # shape, scale, orientation, x and y of dSprites
TRAIN, TEST = 10_000, 5_000
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


def score_of_example(metric: Metric, example: str) -> dict[str, float]:
    """The numbers of a metric on an example: 10,000 points, 5,000 test points, all from fixed seeds."""
    representation = Representation(EXAMPLES[example], SIZES)
    codes, factors = representation.draw(TRAIN, seed=0)
    test = representation.draw(TEST, seed=1)
    # A collapsed or dead code has the posterior of the prior, N(0, 1).
    log_var = np.where(codes.std(axis=0) < 0.1, 0.0, NARROW) * np.ones_like(codes)
    given = {"test": test, "log_var": log_var, "losses": np.zeros(TRAIN), "representation": representation}
    return compute(metric, codes, factors, **given)


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
            table.writerows([[name, *(f"{one[name]:.4f}" for one in found)] for name in found[0]])
            lines.flush()


if __name__ == "__main__":
    write_scores()
