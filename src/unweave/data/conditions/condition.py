"""The canonical form of a condition: spellings that mean the same become the same text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from unweave.data.grid import Factor
from unweave.errors import UnweaveError

# A combination of factors: columns and their values, in the order of the columns; other factors are free.
Box: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, order=True)
class Correlation:
    """Two factors, by their columns, that are correlated with that sigma."""

    first: int
    second: int
    sigma: float
    inverse: bool


@dataclass(frozen=True, order=True)
class RandomShare:
    """A random share of all combinations, which is held out."""

    share: float
    seed: int = 0


@dataclass
class Clauses:
    """What was read so far, in the order of the text."""

    paints: list[str] = field(default_factory=list)
    only: list[Box] = field(default_factory=list)
    held: list[Box] = field(default_factory=list)
    random: list[RandomShare] = field(default_factory=list)
    correlations: list[Correlation] = field(default_factory=list)
    weights: list[tuple[Box, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Condition:
    """How images are painted, which combinations may be drawn, and with which probability.

    `only` is the one combination that is drawn (empty: all), `held` are held out, `random` are shares held
    out at random, `correlations` and `weights` change probabilities.
    """

    paint: str = ""
    only: Box = ()
    held: tuple[Box, ...] = ()
    random: tuple[RandomShare, ...] = ()
    correlations: tuple[Correlation, ...] = ()
    weights: tuple[tuple[Box, float], ...] = ()

    @classmethod
    def of(cls, clauses: Clauses, factors: Sequence[Factor]) -> Condition:
        """The canonical condition of clauses in any order."""
        held = [_without_full(box, factors) for box in clauses.held]
        held = [_without_full(box, factors) for box in _merged(held)] if () not in held else held
        if () in held:
            raise UnweaveError("hold(...) of all values leaves nothing to draw. Hold out fewer values.")
        _check_pairs(clauses.correlations, factors)
        if len(set(clauses.paints)) > 1:
            raise UnweaveError("images can be painted once: write colour or noise.")
        products: dict[Box, float] = {}
        for box, share in sorted((_without_full(box, factors), share) for box, share in clauses.weights):
            if box:  # a weight of all combinations changes nothing
                products[box] = products.get(box, 1.0) * share
        if not all(products.values()):
            raise UnweaveError("weights of one combination multiply to 0. Use hold(...) to leave it out.")
        return cls(
            paint=clauses.paints[0] if clauses.paints else "",
            only=_without_full(_intersection(clauses.only), factors),
            held=tuple(sorted(_largest(held))),
            random=tuple(sorted(set(clauses.random))),
            correlations=tuple(sorted(clauses.correlations)),
            weights=tuple(sorted(products.items())),
        )

    def text(self, factors: Sequence[Factor]) -> str:
        """The canonical text, which `parse` reads as this condition."""
        parts = [self.paint] if self.paint else []
        parts += [f"only({_box_text(self.only, factors)})"] if self.only else []
        parts += [f"hold({_box_text(box, factors)})" for box in self.held]
        parts += [_random_text(part) for part in self.random]
        for pair in self.correlations:
            sign = "-" if pair.inverse else ""
            first, second = factors[pair.first].name, factors[pair.second].name
            parts.append(f"{first}~{sign}{second}={number_text(pair.sigma)}")
        parts += [f"weigh({_box_text(box, factors)})={number_text(share)}" for box, share in self.weights]
        return ":".join(parts)


def box_of(tests: Iterable[tuple[int, frozenset[int]]]) -> Box:
    """The combination where all tests hold; two tests of one factor intersect."""
    values: dict[int, frozenset[int]] = {}
    for column, allowed in tests:
        values[column] = values.get(column, allowed) & allowed
    return tuple((column, tuple(sorted(values[column]))) for column in sorted(values))


def number_text(number: float) -> str:
    """A number as short as it can be written without loss."""
    return str(int(number)) if number.is_integer() else repr(number)


def _check_pairs(correlations: Sequence[Correlation], factors: Sequence[Factor]) -> None:
    pairs = [(pair.first, pair.second) for pair in correlations]
    for first, second in pairs:
        if pairs.count((first, second)) > 1:
            names = f"{factors[first].name} and {factors[second].name}"
            raise UnweaveError(f"{names} are correlated twice. Keep one sigma for each pair of factors.")


def _intersection(boxes: Sequence[Box]) -> Box:
    box = box_of((column, frozenset(values)) for box in boxes for column, values in box)
    if any(not values for _, values in box):
        raise UnweaveError("the only(...) conditions exclude each other, so nothing is left to draw.")
    return box


def _without_full(box: Box, factors: Sequence[Factor]) -> Box:
    return tuple((column, values) for column, values in box if len(values) < factors[column].size)


def _merged(boxes: Sequence[Box]) -> list[Box]:
    """Combinations of a single factor, joined into one for each factor, and the others as they are."""
    joined: dict[int, set[int]] = {}
    for box in boxes:
        if len(box) == 1:
            [(column, values)] = box
            joined.setdefault(column, set()).update(values)
    single: list[Box] = [((column, tuple(sorted(values))),) for column, values in joined.items()]
    return [*single, *(box for box in boxes if len(box) > 1)]


def _largest(boxes: Sequence[Box]) -> set[Box]:
    """The combinations that no other one contains."""
    unique = set(boxes)
    return {box for box in unique if not any(other != box and _contains(other, box) for other in unique)}


def _contains(outer: Box, inner: Box) -> bool:
    values = dict(inner)
    return all(column in values and set(values[column]) <= set(allowed) for column, allowed in outer)


def _box_text(box: Box, factors: Sequence[Factor]) -> str:
    return ",".join(f"{factors[column].name}={_values_text(values)}" for column, values in box)


def _values_text(values: Sequence[int]) -> str:
    """For example 0..3|7."""
    spans: list[list[int]] = []
    for value in values:
        if spans and value == spans[-1][1] + 1:
            spans[-1][1] = value
        else:
            spans.append([value, value])
    return "|".join(f"{first}" if first == last else f"{first}..{last}" for first, last in spans)


def _random_text(part: RandomShare) -> str:
    seed = f",{part.seed}" if part.seed else ""
    return f"random({number_text(part.share)}{seed})"
