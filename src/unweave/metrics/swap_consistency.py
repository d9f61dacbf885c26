"""Swap consistency: whether decoded images take each factor from the image whose block of codes holds it.

Swaps of content and style are the figures of Mathieu et al., "Disentangling Factors of Variation in Deep
Representations Using Adversarial Training", NeurIPS 2016, and of Gabbay and Hoshen, "Demystifying Inter-Class
Disentanglement", ICLR 2020 [1]. Here a classifier of factors looks at them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.metrics.block_knowledge import checked_blocks
from unweave.metrics.block_separation import factors_of_blocks
from unweave.metrics.checks import check_codes_factors
from unweave.streams import Stream

Floats = NDArray[np.float64]

PAIRS = 2000
# A factor counts if the judge's accuracy on images of the data set is at least so much above chance.
LEAST_GAIN = 0.1


class Judge(Protocol):
    """Decodes codes and reads the factors off the images."""

    @property
    def accuracy(self) -> Floats:
        """Its accuracy on images of the data set, (k,)."""

    def __call__(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """The factors (n, k) that images decoded from codes (n, d) show."""


class SwapConsistency(NamedTuple):
    """The score, the same for codes that are not swapped, and the accuracies behind them.

    `details` has, for each factor, `swapped.FACTOR.accuracy`, `reconstructed.FACTOR.accuracy` and
    `judge.FACTOR.accuracy` on images of the data set.
    """

    score: float
    reconstructed: float
    details: dict[str, float]


def swap_consistency(
    codes: ArrayLike,
    factors: ArrayLike,
    blocks: Mapping[str, Sequence[int]],
    block_factors: Mapping[str, Sequence[int]],
    judge: Judge,
    *,
    factor_names: Sequence[str] | None = None,
    seed: int | Stream = 0,
) -> SwapConsistency:
    """Return how often images of swapped codes show the factors that they should.

    Points are paired at random. For each block b, an image is decoded from block b of the first point of a
    pair and all other codes of the second. It should show the factors F_b of the first and all others of
    the second. s_j is the share of images in which the judge reads factor j as it should; g_j is its
    accuracy on images of the data set, and c_j the share of the most frequent value.

    score = mean_b mean_{j in F_b} min(1, max(0, (s_j - c_j) / (g_j - c_j))). From 0 to 1, higher is better.
    `reconstructed` is the same for codes that are not swapped: what decoder and judge can reach. With two
    blocks it does not matter which of them is swapped. Factors that the judge reads less than 0.1 better
    than chance do not count.

    `blocks` and `block_factors` are lists of column numbers by name, as for `block_separation`. At most 2,000
    pairs are used. The seed pairs the points.

    Differs from [1]: a classifier looks at the images, and factors other than the class count too.

    >>> factors = Stream.of(0).integers(900, [2, 3])
    >>> blocks, own = {"content": [0], "style": [1]}, {"content": [0]}
    >>> class Reads:
    ...     accuracy = np.ones(2)
    ...     def __call__(self, codes):
    ...         return codes.astype(int)
    >>> swap_consistency(factors, factors, blocks, own, Reads()).score
    1.0
    """
    table, labels = check_codes_factors(codes, factors)
    columns = checked_blocks(blocks, table.shape[1])
    own = factors_of_blocks(blocks, block_factors, labels.shape[1])
    order = Stream.of(seed).child("swap_consistency").permutations(1, len(table))[0]
    first, second = np.roll(order, 1)[:PAIRS], order[:PAIRS]
    # With two blocks, to swap the one is to swap the other.
    moved = list(columns) if len(columns) > 2 else list(columns)[:1]
    right = []
    for name in moved:
        mixed, expected = table[second].copy(), labels[second].copy()
        mixed[:, columns[name]] = table[first][:, columns[name]]
        expected[:, own[name]] = labels[first][:, own[name]]
        right.append((judge(mixed) == expected).mean(axis=0))
    kept = (judge(table[second]) == labels[second]).mean(axis=0)
    rows = {"swapped": np.mean(right, axis=0), "reconstructed": kept, "judge": judge.accuracy}
    chance = np.array([np.unique(column, return_counts=True)[1].max() for column in labels.T]) / len(labels)
    held = list(own.values())
    names = factor_names or [f"v{j}" for j in range(len(chance))]
    return SwapConsistency(
        _score(rows["swapped"], chance, judge.accuracy, held),
        _score(rows["reconstructed"], chance, judge.accuracy, held),
        _details(rows, names),
    )


def _score(accuracy: Floats, chance: Floats, best: Floats, held: Sequence[Sequence[int]]) -> float:
    """The mean over blocks of the mean over the factors that they hold and that the judge can read."""
    is_read = best >= chance + LEAST_GAIN
    share = np.clip((accuracy - chance) / np.maximum(best - chance, LEAST_GAIN), 0, 1)
    counted = [[j for j in factors if is_read[j]] for factors in held]
    means = [share[factors].mean() for factors in counted if factors]
    if not means:
        raise UnweaveError(
            "the judge of images cannot read any factor of these data, so swaps cannot be judged. Leave out "
            "swap_consistency."
        )
    return float(np.mean(means))


def _details(rows: Mapping[str, Floats], factors: Sequence[str]) -> dict[str, float]:
    return {
        f"{what}.{name}.accuracy": float(value)
        for what, row in rows.items()
        for name, value in zip(factors, row, strict=True)
    }
