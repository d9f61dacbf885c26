"""How many, and which ones: counts given by the user, and random subsets of the factors."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from unweave.data.grid import GroundTruth
from unweave.errors import UnweaveError
from unweave.streams import Stream


def is_whole(value: object) -> TypeGuard[int]:
    """Whether value is a whole number; True and False are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def whole_number(value: object, what: str, least: int) -> int:
    """Value as int, or an error that says what it must be."""
    if not is_whole(value) or value < least:
        raise UnweaveError(f"{what} must be a whole number >= {least}; got {value!r}.")
    return int(value)


def varying(ground_truth: GroundTruth) -> NDArray[np.bool_]:
    """(k,): the factors that have more than one value."""
    return np.asarray(ground_truth.sizes) > 1


def random_subsets(stream: Stream, counts: NDArray[Any], allowed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n, k): row i marks counts[i] of the allowed columns, drawn uniformly."""
    columns = np.flatnonzero(allowed)
    subsets = np.zeros((len(counts), len(allowed)), np.bool_)
    # The columns whose rank in a random order is below m are a uniform choice of m columns.
    subsets[:, columns] = stream.permutations(len(counts), len(columns)) < counts[:, None]
    return subsets
