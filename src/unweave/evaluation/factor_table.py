"""Factors of a user's rows: their kinds, and what metrics count or regress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.errors import UnweaveError
from unweave.metrics.checks import FactorError, check_codes_factors
from unweave.metrics.kinds import FactorKind, KindLike, all_discrete, factor_labels, kinds_of, stated_kinds

LEAST_KNOWN = 3  # rows in which a factor must be known


@dataclass(frozen=True, eq=False)
class FactorTable:
    """The factors that are measured.

    `kinds` is empty where all factors are whole numbers to count, as in most data sets; `values` are then
    int64. Otherwise `values` are real numbers, NaN where one is missing.
    """

    values: NDArray[Any]  # (n, k)
    columns: tuple[int, ...]  # of the factors as they were given
    kinds: tuple[FactorKind, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def missing(self) -> bool:
        """Whether any value is missing."""
        return bool(self.kinds) and bool(np.isnan(self.values).any())

    @property
    def complete(self) -> NDArray[np.int64]:
        """The rows in which no factor is missing."""
        return np.flatnonzero(np.isfinite(self.values).all(axis=1))

    @property
    def labels(self) -> NDArray[np.int64]:
        """What metrics count, of the rows in which no factor is missing."""
        known = self.values[self.complete]
        return factor_labels(known, self.kinds) if self.kinds else known


def read_factor_table(
    codes: NDArray[Any],
    factors: NDArray[Any],
    names: Sequence[str],
    *,
    words: Sequence[bool],
    kinds: Mapping[str, KindLike] | None = None,
    lenient: bool = False,
) -> FactorTable:
    """Check factors (n, k) and find their kinds.

    `words` says which columns were words and are numbered; these are categories. If `lenient`, factors that
    no metric can measure are left out and noted; otherwise they are refused.
    """
    numbers = _real(codes, factors)
    stated: dict[str, KindLike] = {
        name: "categorical" for name, word in zip(names, words, strict=True) if word
    }
    found = kinds_of(numbers, names, stated | stated_kinds(kinds))
    if not lenient and all_discrete(found, numbers):
        return FactorTable(check_codes_factors(codes, factors)[1], tuple(range(len(names))))
    obstacles = [_obstacle(column, kind) for column, kind in zip(numbers.T, found, strict=True)]
    if not lenient:
        for j, reason in enumerate(obstacles):
            if reason:
                raise FactorError(f"{{factor}} cannot be measured: {reason}.", j)
    columns = tuple(j for j, reason in enumerate(obstacles) if not reason)
    left_out = [
        f'factor "{names[j]}" was left out: {reason}.' for j, reason in enumerate(obstacles) if reason
    ]
    kept, own = numbers[:, list(columns)], tuple(found[j] for j in columns)
    if all_discrete(own, kept):
        return FactorTable(kept.astype(np.int64), columns, (), tuple(left_out))
    notes = [*left_out, *_kind_notes([names[j] for j in columns], own, kept)]
    return FactorTable(kept, columns, own, tuple(notes))


def held_out_values(table: FactorTable, codes: NDArray[Any], factors: NDArray[Any]) -> NDArray[Any]:
    """Factors of the test data, as real or whole numbers like those of the table."""
    chosen = factors[:, list(table.columns)]
    if table.kinds:
        return _real(codes, chosen)
    return check_codes_factors(codes, chosen, varied=False)[1]


def _real(codes: NDArray[Any], factors: NDArray[Any]) -> NDArray[np.float64]:
    """Factors as float64, NaN where a value is missing; rows must be those of the codes."""
    if factors.dtype.kind not in "biuf":
        raise UnweaveError(f"factors must be real numbers; got an array of type {factors.dtype}.")
    numbers = factors.astype(np.float64)
    filled = np.where(np.isnan(numbers), 0.0, numbers)
    check_codes_factors(codes, filled, discrete=False, varied=False)
    return numbers


def _obstacle(column: NDArray[np.float64], kind: FactorKind) -> str:
    """Why no metric can measure a factor; empty if nothing is wrong with it."""
    known = column[np.isfinite(column)]
    if len(known) < LEAST_KNOWN:
        return f"it is known in {len(known)} rows only, and {LEAST_KNOWN} are needed; leave that column out"
    values, place, counts = np.unique(known, return_inverse=True, return_counts=True)
    if len(values) == 1:
        return "it has the same value in all rows"
    alone = int((counts[place] == 1).sum())
    if kind.name in ("categorical", "ordinal") and len(known) > 2 and 2 * alone > len(known):
        return (
            f"{alone:,} of {len(known):,} rows have a value that no other row has; bin it first, or state "
            "that it is continuous"
        )
    return ""


def _kind_notes(names: Sequence[str], kinds: Sequence[FactorKind], values: NDArray[np.float64]) -> list[str]:
    listed = ", ".join(f'"{name}" is {kind}' for name, kind in zip(names, kinds, strict=True))
    notes = [f"Kinds of factors: {listed}. State others with kinds={{name: kind}}."]
    for name, column in zip(names, values.T, strict=True):
        missing = int(np.isnan(column).sum())
        if missing:
            notes.append(f'factor "{name}" is missing in {missing:,} of {len(column):,} rows.')
    return notes
