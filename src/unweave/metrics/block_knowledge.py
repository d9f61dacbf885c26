"""What each block of codes knows about each factor, as a probe finds out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unweave.errors import UnweaveError
from unweave.metrics.checks import Split
from unweave.metrics.estimators.probes import Rows, guess, probe
from unweave.streams import Stream

Floats = NDArray[np.float64]


class BlockKnowledge(NamedTuple):
    """Rows are blocks of codes, columns are factors.

    `information` is the share of the uncertainty about a factor that a probe removes, 1 - its cross-entropy
    / that of the factor's frequencies, at least 0. `chance` is the accuracy of always guessing the most
    frequent value.
    """

    information: Floats  # (blocks, k)
    accuracy: Floats  # (blocks, k)
    chance: Floats  # (k,)


def block_knowledge(
    data: Split, blocks: Sequence[Sequence[int]], updates: int, stream: Stream
) -> BlockKnowledge:
    """Fit a probe to each block of codes and test it on other rows."""
    values = [np.unique(column) for column in np.concatenate([data.factors, data.test_factors]).T]
    labels, test_labels = (
        np.stack([np.searchsorted(v, column) for v, column in zip(values, table.T, strict=True)], axis=1)
        for table in (data.factors, data.test_factors)
    )
    sizes = tuple(len(v) for v in values)
    chance = guess(labels, test_labels, sizes)
    found = [
        probe(
            Rows(data.codes[:, block], labels),
            Rows(data.test_codes[:, block], test_labels),
            sizes,
            updates,
            stream.child("probe", number),
        )
        for number, block in enumerate(blocks)
    ]
    losses = np.stack([one.cross_entropy for one in found])
    information = np.clip(1 - losses / chance.cross_entropy, 0, 1)
    return BlockKnowledge(information, np.stack([one.accuracy for one in found]), chance.accuracy)


def checked_blocks(blocks: Mapping[str, Sequence[int]], codes: int) -> dict[str, list[int]]:
    """Blocks as lists of column numbers; refuses blocks that are empty, overlap or name other columns."""
    checked = {str(name): [int(column) for column in columns] for name, columns in blocks.items()}
    flat = [column for columns in checked.values() for column in columns]
    distinct = 0 < len(set(flat)) == len(flat) and set(flat) <= set(range(codes))
    if not distinct or not all(checked.values()):
        raise UnweaveError(
            f"blocks must name different codes from 0 to {codes - 1}, such as "
            f'{{"content": [0], "style": [1, 2]}}, and none may be empty; got {blocks!r}.'
        )
    return checked
