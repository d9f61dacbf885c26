"""Block-MIG: how much of each factor one block of codes holds alone.

The mutual information gap of Chen et al., "Isolating Sources of Disentanglement in Variational Autoencoders",
NeurIPS 2018 [1], with blocks of codes in place of single codes. Information is that which a probe can use:
Barber and Agakov, "The IM Algorithm: A Variational Approach to Information Maximization", NeurIPS 2003 [2].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from unweave.metrics.block_knowledge import block_knowledge, checked_blocks
from unweave.metrics.checks import split
from unweave.metrics.estimators.probes import UPDATES
from unweave.streams import Stream


def block_mig(
    codes: ArrayLike,
    factors: ArrayLike,
    blocks: Mapping[str, Sequence[int]],
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    updates: int = UPDATES,
    seed: int | Stream = 0,
) -> float:
    """Return the mean over factors of the gap between the two blocks that know most about a factor.

    score = mean_j (K_1j - K_2j), where K_bj = max(0, 1 - CE_bj / H_j) is what block b knows about factor j,
    and K_1j and K_2j are the largest two of the blocks; K_2j is 0 if there is one block. CE_bj is the
    cross-entropy on test rows of a probe that predicts factor j from the codes of block b: a perceptron
    with two hidden layers of 128 units, trained by Adam for 2,000 updates, with early stopping on a fifth
    of the rows. H_j is the cross-entropy of the frequencies of the factor. H_j - CE_bj is a lower bound of
    the mutual information of factor and block [2]. From 0 to 1, higher is better.

    `blocks` are lists of column numbers by name, {"content": [0, 1], "style": [2, 3]}. It does not matter
    which block holds which factor; see `block_separation` for blocks with factors of their own. A code with
    at most 64 different values is a category for the probe. Without `test`, the last third of the rows is
    held out. The seed draws the weights and batches of the probes.

    Differs from [1]: blocks instead of codes, and a fitted bound instead of counts in bins.

    >>> factors = Stream.of(0).integers(900, [2, 3])
    >>> blocks = {"content": [0], "style": [1]}
    >>> round(block_mig(factors, factors, blocks, updates=200), 2)
    1.0
    >>> round(block_mig(np.tile(factors, 2), factors, {"content": [0, 1], "style": [2, 3]}, updates=200), 2)
    0.0
    """
    stream = Stream.of(seed).child("block_mig")
    data = split(codes, factors, test)
    columns = checked_blocks(blocks, data.codes.shape[1])
    known = block_knowledge(data, list(columns.values()), updates, stream).information
    first, second = np.sort(np.pad(known, ((1, 0), (0, 0))), axis=0)[:-3:-1]
    return float((first - second).mean())
