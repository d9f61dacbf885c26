"""Block-R^2: how well blocks of factors can be predicted from the blocks of codes matched to them.

Block-identifiability: von Kügelgen et al., "Self-Supervised Learning with Data Augmentations Provably
Isolates Content from Style", NeurIPS 2021 [1]; Lachapelle et al., "Additive Decoders for Latent Variables
Identification and Cartesian-Product Extrapolation", NeurIPS 2023 [2], who match blocks by their scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.metrics.mcc import best_matching
from unweave.metrics.r2 import RegressionModel, predicted_variance
from unweave.metrics.real_factors import Floats, split_real, standardised
from unweave.streams import Stream

# Rows that a model of one block is fitted on, so that hundreds of blocks stay affordable.
ROWS = 500


class BlockR2(NamedTuple):
    """The score, R^2 of each pair of blocks, and the block of codes matched to each block of factors."""

    score: float
    r2: Floats  # (blocks of codes, blocks of factors)
    matches: NDArray[np.int64]  # (blocks of factors,); -1 where blocks of codes are lacking


def block_r2(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    code_blocks: Sequence[Sequence[int]] | None = None,
    factor_blocks: Sequence[Sequence[int]] | None = None,
    model: RegressionModel = "kernel",
    seed: int | Stream = 0,
) -> BlockR2:
    """Return the mean over blocks of factors of R^2 from the block of codes matched to each, on test data.

    R2_ab is the mean over the factors of block b of R^2 when a model predicts them from block a of the codes;
    see `r2` for the models, which are fitted on at most 500 rows. Each block of factors is matched to a
    different block of codes so that the sum of R2_ab, negative values taken as 0, is largest; the score is
    the mean of these. A block of factors without a block of codes counts as 0. From 0 to 1, higher is better.

    Blocks are lists of column numbers, `code_blocks=[[0, 1], [2]]`. By default each code and each factor is a
    block of its own: identifiability up to permutation and an invertible function of each code.

    The entries of `r2` off the matching show whether a block of codes also holds other factors.

    Differs from [1]: there the blocks are known and there is no matching.

    >>> factors = Stream.of(0).normal(300, 3)
    >>> turned = np.hstack([factors[:, 2:] ** 3, factors[:, :2] @ [[1.0, 2.0], [-1.0, 1.0]]])
    >>> blocks = {"code_blocks": [[0], [1, 2]], "factor_blocks": [[0, 1], [2]]}
    >>> found = block_r2(turned, factors, **blocks, model="linear")
    >>> found.matches.tolist(), round(float(found.r2[1, 0]), 3)
    ([1, 0], 1.0)
    """
    data = split_real(codes, factors, test)
    train, held_out = standardised(data.codes[:ROWS], data.test_codes)
    targets, truth = standardised(data.factors[:ROWS], data.test_factors)
    own = _checked_blocks(code_blocks, train.shape[1], "code_blocks")
    wanted = _checked_blocks(factor_blocks, targets.shape[1], "factor_blocks")
    stream = Stream.of(seed).child("block_r2")
    table = np.zeros((len(own), len(wanted)))
    for a, columns in enumerate(own):
        found = predicted_variance(
            train[:, columns], targets, held_out[:, columns], truth, model, stream.child("block", a)
        )
        table[a] = [found[block].mean() for block in wanted]
    matches = best_matching(table.clip(0))
    matched = table.clip(0)[matches, np.arange(len(wanted))] * (matches >= 0)
    return BlockR2(float(matched.mean()), table, matches)


def _checked_blocks(blocks: Sequence[Sequence[int]] | None, columns: int, name: str) -> list[list[int]]:
    if blocks is None:
        return [[column] for column in range(columns)]
    checked = [[int(column) for column in block] for block in blocks]
    flat = [column for block in checked for column in block]
    if not flat or not all(checked) or len(set(flat)) < len(flat) or not set(flat) <= set(range(columns)):
        raise UnweaveError(
            f"`{name}` must be lists of different column numbers from 0 to {columns - 1}, none empty; "
            f"got {blocks!r}."
        )
    return checked
