"""Block separation: how much blocks of codes know about their own factors, and other blocks do not.

The probes of content and style in Mathieu et al., "Disentangling Factors of Variation in Deep Representations
Using Adversarial Training", NeurIPS 2016, and Gabbay and Hoshen, "Demystifying Inter-Class Disentanglement",
ICLR 2020 [1], for any blocks and all factors, in one number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unweave.errors import UnweaveError
from unweave.metrics.block_knowledge import BlockKnowledge, block_knowledge, checked_blocks
from unweave.metrics.checks import split
from unweave.metrics.estimators.probes import UPDATES
from unweave.streams import Stream


class BlockSeparation(NamedTuple):
    """The score, how much blocks know about their own factors, and the accuracy of each probe.

    `details` has `BLOCK.FACTOR.accuracy` for each block and factor, `all.FACTOR.accuracy` of a probe of all
    codes, the ceiling, and `chance.FACTOR.accuracy` of guessing the most frequent value.
    """

    score: float
    known: float
    details: dict[str, float]


def block_separation(
    codes: ArrayLike,
    factors: ArrayLike,
    blocks: Mapping[str, Sequence[int]],
    block_factors: Mapping[str, Sequence[int]],
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    factor_names: Sequence[str] | None = None,
    updates: int = UPDATES,
    seed: int | Stream = 0,
) -> BlockSeparation:
    """Return how much more each block knows about its own factors than any other block does.

    score = mean_b mean_{j in F_b} (K_bj - max_{a != b} K_aj), where F_b are the factors of block b, and
    K_bj = max(0, 1 - CE_bj / H_j) is what block b knows about factor j: the share of the uncertainty about
    it that a probe removes on test rows. See `block_mig` for the probe. `known` is mean_b mean_{j in F_b}
    K_bj, so known - score is the leak. From -1 to 1, higher is better; 0 if all blocks know the same, or
    nothing.

    `blocks` and `block_factors` are lists of column numbers by name: {"content": [0, 1], "style": [2, 3]}
    and {"content": [0]}. A block that has no list gets all factors that no other block has. Blocks without
    factors do not count. Without `test`, the last third of the rows is held out. The seed draws the weights
    and batches of the probes.

    Differs from [1]: information instead of accuracy, so that a value close to the right one counts, and all
    factors instead of the class alone. `details` has the accuracies.

    >>> factors = Stream.of(0).integers(900, [2, 3])
    >>> blocks, own = {"content": [0], "style": [1]}, {"content": [0]}
    >>> found = block_separation(factors, factors, blocks, own, factor_names=["shape", "size"], updates=200)
    >>> round(found.score, 2), found.details["content.shape.accuracy"]
    (1.0, 1.0)
    >>> round(block_separation(factors[:, ::-1], factors, blocks, own, updates=200).score, 2)
    -1.0
    """
    data = split(codes, factors, test)
    d, k = data.codes.shape[1], data.factors.shape[1]
    columns, own = checked_blocks(blocks, d), factors_of_blocks(blocks, block_factors, k)
    stream = Stream.of(seed).child("block_separation")
    knowledge = block_knowledge(data, [*columns.values(), range(d)], updates, stream)
    information = knowledge.information[:-1]
    known, gaps = [], []
    for number, held in enumerate(own.values()):
        if held:
            others = np.delete(information, number, axis=0)[:, held].max(axis=0, initial=0)
            known.append(information[number, held].mean())
            gaps.append((information[number, held] - others).mean())
    names = factor_names or [f"v{j}" for j in range(k)]
    details = _details(knowledge, [*columns, "all"], names)
    return BlockSeparation(float(np.mean(gaps)), float(np.mean(known)), details)


def factors_of_blocks(
    blocks: Mapping[str, Sequence[int]], block_factors: Mapping[str, Sequence[int]], factors: int
) -> dict[str, list[int]]:
    """The columns of the factors of each block; a block that is not named gets those that are left."""
    own = {str(name): [int(column) for column in columns] for name, columns in block_factors.items()}
    flat = [column for columns in own.values() for column in columns]
    unknown = [name for name in own if name not in blocks]
    others = [name for name in blocks if name not in own]
    distinct = 0 < len(set(flat)) == len(flat) and set(flat) <= set(range(factors))
    if unknown or len(others) > 1 or not distinct:
        raise UnweaveError(
            "block_factors must name different factors of all blocks, or of all blocks but one, such as "
            f'{{"content": [0]}} for blocks named content and style; got {dict(block_factors)!r} for blocks '
            f"named {', '.join(map(str, blocks))}."
        )
    return {name: own.get(name, [j for j in range(factors) if j not in flat]) for name in blocks}


def _details(knowledge: BlockKnowledge, blocks: Sequence[str], factors: Sequence[str]) -> dict[str, float]:
    rows = [*zip(blocks, knowledge.accuracy, strict=True), ("chance", knowledge.chance)]
    return {
        f"{block}.{factor}.accuracy": float(accuracy)
        for block, row in rows
        for factor, accuracy in zip(factors, row, strict=True)
    }
