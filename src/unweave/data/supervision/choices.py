"""How many, and which ones: counts from the user, random subsets of the factors, and the class factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from unweave.data.collection import Continuous
from unweave.data.grid import Factor
from unweave.errors import UnweaveError
from unweave.streams import Stream

CLASS = "class"  # stands for the class factor of a data set


def class_factor(factors: Sequence[Factor | Continuous]) -> str:
    """The name of the factor that is the class of an image.

    It is the factor called "class", if there is one, or else the first categorical factor with more than one
    value. Without a categorical factor it is the first factor.
    """
    names = [factor.name for factor in factors]
    discrete = [factor for factor in factors if isinstance(factor, Factor) and factor.size > 1]
    categorical = [factor.name for factor in discrete if factor.kind == "categorical"]
    return CLASS if CLASS in names else [*categorical, *names, CLASS][0]


def resolve_class(names: Sequence[str], factors: Sequence[Factor | Continuous]) -> tuple[str, ...]:
    """Names of factors, with "class" replaced by the name of the class factor."""
    return tuple(class_factor(factors) if name == CLASS else name for name in names)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether value is a whole number; True and False are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def whole_number(value: object, what: str, least: int) -> int:
    """Value as int, or an error that says what it must be."""
    if not is_whole(value) or value < least:
        raise UnweaveError(f"{what} must be a whole number >= {least}; got {value!r}.")
    return int(value)


def random_subsets(stream: Stream, counts: NDArray[Any], allowed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n, k): row i marks counts[i] of the allowed columns, drawn uniformly."""
    columns = np.flatnonzero(allowed)
    subsets = np.zeros((len(counts), len(allowed)), np.bool_)
    # The columns whose rank in a random order is below m are a uniform choice of m columns.
    subsets[:, columns] = stream.permutations(len(counts), len(columns)) < counts[:, None]
    return subsets
