"""Kinds of factors: categories, ordered levels, real numbers and angles, with or without missing values.

Most metrics count how often each value occurs, so they need a few values that repeat. Real-valued factors are
cut into bins of equal frequency for these, and are used as numbers by metrics that fit regressions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from unweave.errors import UnweaveError, did_you_mean
from unweave.metrics.checks import MISSING

Floats = NDArray[np.float64]
KindName: TypeAlias = Literal["categorical", "ordinal", "continuous", "circular"]
NAMES: tuple[KindName, ...] = get_args(KindName)
# A kind as users write it; a circular factor may state its period: ("circular", 360).
KindLike: TypeAlias = str | tuple[str, float]

# Bins of equal frequency that a real-valued factor is cut into.
BINS = 20
# With fewer rows there are fewer bins, so that each has this many.
LEAST_IN_BIN = 5


@dataclass(frozen=True)
class FactorKind:
    """The kind of a factor; `period` is that of a circular one."""

    name: KindName
    period: float = 0.0

    def __str__(self) -> str:
        return f"circular with period {self.period:g}" if self.name == "circular" else self.name


def kinds_of(
    factors: Floats, names: Sequence[str], overrides: Mapping[str, KindLike] | None = None
) -> tuple[FactorKind, ...]:
    """Return the kind of each column of factors (n, k), NaN where a value is missing.

    A column of whole numbers is ordinal. Another column is continuous if it has more than 20 values or more
    than half of its values occur once, and otherwise ordinal. `overrides` states other kinds by the name of
    the factor. A circular factor has the period that is stated; without one, the period is 2 pi, or the
    number of values if these are whole numbers from 0.

    >>> numbers = np.array([[0, 0.11], [1, 0.52], [1, 0.33], [0, 0.27]])
    >>> [str(kind) for kind in kinds_of(numbers, ["shape", "angle"], {"angle": "circular"})]
    ['ordinal', 'circular with period 6.28319']
    """
    stated = stated_kinds(overrides)
    for name in stated:
        if name not in names:
            raise UnweaveError(f'`kinds` names no factor "{name}". {did_you_mean(name, names)}')
    return tuple(
        _stated(name, column, stated[name]) if name in stated else FactorKind(_inferred(column))
        for name, column in zip(names, factors.T, strict=True)
    )


def stated_kinds(kinds: Mapping[str, KindLike] | None) -> dict[str, KindLike]:
    """Return kinds by the name of the factor, or raise an error if they are anything else."""
    if kinds is not None and not isinstance(kinds, Mapping):
        raise UnweaveError(
            '`kinds` must state kinds by the name of the factor, such as {"angle": "circular"}; got '
            f"{kinds!r}."
        )
    return {str(name): kind for name, kind in (kinds or {}).items()}


def parse_kinds(text: str | None) -> dict[str, KindLike] | None:
    """Return the kinds in a text such as "angle=circular:360, year=continuous".

    >>> parse_kinds("angle=circular:360, year=continuous")
    {'angle': ('circular', 360.0), 'year': 'continuous'}
    """
    if text is None:
        return None
    kinds: dict[str, KindLike] = {}
    for part in text.split(","):
        name, equals, kind = (word.strip() for word in part.partition("="))
        word, _, period = kind.partition(":")
        try:
            kinds[name] = (word, float(period)) if period else word
        except ValueError:
            equals = ""
        if not (name and equals and word):
            raise UnweaveError(
                f"Kinds are written NAME=KIND or NAME=circular:PERIOD with commas between them; got {text!r}."
            )
    return kinds


def all_discrete(kinds: Sequence[FactorKind], factors: Floats) -> bool:
    """Whether all factors are whole numbers to count, without missing values."""
    return bool(
        all(kind.name in ("categorical", "ordinal") for kind in kinds)
        and np.isfinite(factors).all()
        and (factors == np.round(factors)).all()
    )


def factor_labels(
    factors: Floats, kinds: Sequence[FactorKind], reference: Floats | None = None
) -> NDArray[np.int64]:
    """Return whole numbers (n, k) to count: bins of equal frequency for real numbers, MISSING for NaN.

    Bins, and levels that are not whole numbers, are those of the `reference` rows; by default of the same
    rows.
    """
    reference = factors if reference is None else reference
    columns = [
        _labels(column, kind, reference[:, j])
        for j, (column, kind) in enumerate(zip(factors.T, kinds, strict=True))
    ]
    return np.stack(columns, axis=1)


def factor_numbers(factors: Floats, kinds: Sequence[FactorKind]) -> Floats:
    """Return factors as numbers, a circular one as two columns, its cosine and sine.

    >>> factor_numbers(np.array([[0.0], [90.0]]), [FactorKind("circular", 360.0)]).round(9).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    columns: list[Floats] = []
    for column, kind in zip(factors.T, kinds, strict=True):
        columns += columns_of(column, kind)
    return np.stack(columns, axis=1)


def columns_of(column: Floats, kind: FactorKind) -> list[Floats]:
    """Return a factor as one column of numbers, or as cosine and sine if it is circular."""
    if kind.name != "circular":
        return [column]
    angles = 2 * np.pi * column / kind.period
    return [np.cos(angles), np.sin(angles)]


def _inferred(column: Floats) -> KindName:
    known = column[np.isfinite(column)]
    values, counts = np.unique(known, return_counts=True)
    whole = bool((values == np.round(values)).all())
    often_alone = 2 * int((counts == 1).sum()) > len(known)
    return (
        "continuous" if not whole and len(values) > 2 and (often_alone or len(values) > BINS) else "ordinal"
    )


def _stated(name: str, column: Floats, kind: KindLike) -> FactorKind:
    stated, period = kind if isinstance(kind, tuple) and len(kind) == 2 else (kind, None)
    word = next((known for known in NAMES if known == stated), None)
    if word is None or (period is not None and word != "circular"):
        raise UnweaveError(
            f'The kind of a factor must be one of {", ".join(NAMES)}, or ("circular", period); '
            f'got {kind!r} for "{name}".'
        )
    if word != "circular":
        return FactorKind(word)
    if period is not None and not (np.isfinite(period) and period > 0):
        raise UnweaveError(f'The period of "{name}" must be a positive number; got {period!r}.')
    return FactorKind("circular", float(period) if period is not None else _period(column))


def _period(column: Floats) -> float:
    known = column[np.isfinite(column)]
    if len(known) and (known == np.round(known)).all() and known.min() >= 0:
        return float(known.max()) + 1
    return float(2 * np.pi)


def _labels(column: Floats, kind: FactorKind, reference: Floats) -> NDArray[np.int64]:
    known = np.isfinite(column)
    whole = bool((column[known] == np.round(column[known])).all())
    labels = np.full(len(column), MISSING, np.int64)
    if kind.name != "continuous" and whole:
        labels[known] = column[known].astype(np.int64)
        return labels
    values, origin = column[known], reference[np.isfinite(reference)]
    if kind.name == "circular":
        values, origin = values % kind.period, origin % kind.period
    labels[known] = np.searchsorted(_edges(origin, kind), values, side="right")
    return labels


def _edges(values: Floats, kind: FactorKind) -> Floats:
    """Edges between bins of equal frequency, or between levels."""
    levels = np.unique(values)
    if kind.name in ("categorical", "ordinal"):
        return np.asarray((levels[1:] + levels[:-1]) / 2)
    bins = min(max(len(values) // LEAST_IN_BIN, 2), BINS)
    return np.unique(np.quantile(values, np.arange(1, bins) / bins))
