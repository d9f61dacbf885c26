"""Ground truths whose factors are not independent: correlated, re-weighted and held-out combinations.

Each function returns a new ground truth with the same factors and images, whose draws are kept with a
probability: its `weight`, multiplied with the one that was there. `observe` still shows every combination.
`held_out_part` and `full_grid` return what was held out, and the ground truth without restrictions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.data.grid import Factors, GroundTruth, Weight, as_whole_numbers
from unweave.errors import UnweaveError
from unweave.streams import Stream

# A factor's name and its value or values: {"shape": 2, "x": range(16, 32)}.
Combination: TypeAlias = Mapping[str, int | Iterable[int]]
# For each factor that a combination names, by column: which of its values belong to the combination.
Rule: TypeAlias = dict[int, NDArray[np.bool_]]

CHUNK = 1 << 16
LARGEST_SCAN = 1 << 24


def correlate(
    ground_truth: GroundTruth, first: str, second: str, sigma: float = 0.2, inverse: bool = False
) -> GroundTruth:
    """Correlate two factors: p(a, b) proportional to exp(-(a - b)^2 / (2 sigma^2)).

    a = value / (size - 1) and b likewise, both in [0, 1], so that the paper's alpha, the ratio of the
    largest values, is 1; with `inverse`, 1 - b takes the place of b. A small sigma is a strong correlation;
    the paper has 0.2, 0.4, 0.7. All other factors stay independent and uniform.

    Träuble et al., "On disentangled representations learned from correlated data" (ICML 2021, arXiv
    2006.07886).
    """
    columns = [ground_truth.position(first), ground_truth.position(second)]
    if first == second:
        raise UnweaveError(f'two different factors can be correlated; got "{first}" twice.')
    if not sigma > 0:
        raise UnweaveError(f"sigma must be greater than 0; got {sigma!r}.")
    largest = np.asarray(ground_truth.sizes)[columns] - 1
    if not largest.all():
        name = first if largest[0] == 0 else second
        raise UnweaveError(f'factor "{name}" has only one value, so it cannot be correlated.')

    def weight(factors: Factors) -> NDArray[np.float64]:
        a, b = (factors[:, columns] / largest).T
        distance = a - (1 - b if inverse else b)
        with np.errstate(over="ignore"):  # of a tiny sigma: the probability is 0
            return np.asarray(np.exp(-0.5 * (distance / sigma) ** 2), np.float64)

    what = f"{first} and {second} correlated{' inversely' if inverse else ''}, sigma {sigma:g}"
    return _restricted(ground_truth, "correlated", what, weight)


def hold_out(ground_truth: GroundTruth, combinations: Sequence[Combination]) -> GroundTruth:
    """Never draw the combinations; each is held out where all its conditions hold."""
    rules = _rules(ground_truth, combinations)
    what = f"without {_describe(ground_truth, rules)}"
    return _supported(ground_truth, "held_out", what, lambda factors: 1.0 - _holds(rules, factors))


def only(ground_truth: GroundTruth, combinations: Sequence[Combination]) -> GroundTruth:
    """Draw nothing but the combinations: what `hold_out` of the same combinations leaves out."""
    rules = _rules(ground_truth, combinations)
    what = f"only {_describe(ground_truth, rules)}"
    return _supported(ground_truth, "only", what, lambda factors: _holds(rules, factors))


def hold_out_random(ground_truth: GroundTruth, share: float, seed: int = 0) -> GroundTruth:
    """Never draw a random share of all combinations; which ones depends on the seed and on nothing else."""
    if not 0 < share < 1:
        raise UnweaveError(f"the share to hold out must be between 0 and 1, such as 0.3; got {share!r}.")
    stream = Stream.of(seed).child("random split")

    def keeps(factors: Factors) -> NDArray[np.float64]:
        return np.asarray(stream.uniform(ground_truth.index(factors), 1)[:, 0] >= share, np.float64)

    what = f"without a random share of {share:g}, seed {seed}"
    return _supported(ground_truth, "held_out", what, keeps)


def reweight(ground_truth: GroundTruth, combination: Combination, share: float) -> GroundTruth:
    """Draw a combination less often: its probability is multiplied by `share` before normalisation."""
    if not 0 < share < 1:
        raise UnweaveError(
            f"a weight must be between 0 and 1, such as 0.1; got {share!r}. Use hold_out for a weight of 0."
        )
    rules = _rules(ground_truth, [combination])
    what = f"{_describe(ground_truth, rules)} weighted by {share:g}"
    return _restricted(
        ground_truth, "weighted", what, lambda factors: 1.0 - (1.0 - share) * _holds(rules, factors)
    )


def full_grid(ground_truth: GroundTruth) -> GroundTruth:
    """The ground truth without restrictions: all combinations are equally likely."""
    return ground_truth.full or ground_truth


def held_out_part(ground_truth: GroundTruth) -> GroundTruth:
    """Exactly the combinations that were held out, all equally likely."""
    full, allowed = full_grid(ground_truth), ground_truth.allowed
    if allowed is None:
        raise UnweaveError(
            f"no combination of {ground_truth.name} was held out. Train on data with held-out combinations, "
            f"such as {full.name}:hold({full.factors[0].name}=0)."
        )
    members = _positions(full, lambda factors: 1.0 - allowed(factors))
    if not len(members):
        raise UnweaveError(f"{ground_truth.name} holds out no combination: its conditions exclude none.")
    return dataclasses.replace(
        full,
        name=f"{ground_truth.name} (held out)",
        weight=lambda factors: 1.0 - allowed(factors),
        drawn=f"{full.drawn}; what is held out from draws {ground_truth.drawn}",
        reference=None,
        full=full,
        allowed=lambda factors: 1.0 - allowed(factors),
        members=members,
    )


def drawn_combinations(ground_truth: GroundTruth) -> int:
    """How many combinations may be drawn; all of them for grids that are too large to look at."""
    if ground_truth.allowed is None or len(ground_truth) > LARGEST_SCAN:
        return len(ground_truth)
    return len(_positions(ground_truth, ground_truth.allowed))


def equally_likely(ground_truth: GroundTruth, most: int) -> NDArray[np.int64] | None:
    """The positions of all combinations that may be drawn, if there are at most so many, equally likely.

    None also for grids under a weight that are too large to look at.
    """
    weight = ground_truth.weight if ground_truth.members is None else None
    if weight is None:
        every = np.arange(min(len(ground_truth), most + 1))
        found = every if ground_truth.members is None else ground_truth.members
        return found if len(found) <= most else None
    if len(ground_truth) > LARGEST_SCAN:
        return None
    found = _positions(ground_truth, weight)
    few = len(found) <= most
    return found if few and np.ptp(weight(ground_truth.factors_at(found))) == 0 else None


def _supported(ground_truth: GroundTruth, suffix: str, what: str, allowed: Weight) -> GroundTruth:
    """A ground truth some of whose combinations are never drawn."""
    before = ground_truth.allowed

    def both(factors: Factors) -> NDArray[np.float64]:
        return allowed(factors) if before is None else before(factors) * allowed(factors)

    return dataclasses.replace(_restricted(ground_truth, suffix, what, allowed), allowed=both)


def _restricted(ground_truth: GroundTruth, suffix: str, what: str, weight: Weight) -> GroundTruth:
    before = ground_truth.weight

    def both(factors: Factors) -> NDArray[np.float64]:
        return weight(factors) if before is None else before(factors) * weight(factors)

    restricted = dataclasses.replace(
        ground_truth,
        name=f"{ground_truth.name}_{suffix}",
        weight=both,
        drawn=f"{ground_truth.drawn}; {what}",
        reference=None,
        full=full_grid(ground_truth),
        members=None,
    )
    return _refuse_empty(restricted)


def _positions(ground_truth: GroundTruth, chosen: Weight) -> NDArray[np.int64]:
    """The positions in the grid of the combinations with a weight above 0."""
    n, parts = len(ground_truth), []
    for start in range(0, n, CHUNK):
        index = np.arange(start, min(start + CHUNK, n))
        parts.append(index[chosen(ground_truth.factors_at(index)) > 0])
    return np.concatenate(parts)


def _rules(ground_truth: GroundTruth, combinations: Sequence[Combination]) -> list[Rule]:
    if isinstance(combinations, Mapping) or not len(combinations):
        raise UnweaveError(
            'combinations must be a list with at least one, such as [{"shape": 2, "x": range(16, 32)}]; '
            f"got {combinations!r}."
        )
    return [_rule(ground_truth, combination) for combination in combinations]


def _rule(ground_truth: GroundTruth, combination: Combination) -> Rule:
    if not isinstance(combination, Mapping) or not combination:
        raise UnweaveError(
            f"a combination names at least one factor with its values, such as {{'shape': 2}}; "
            f"got {combination!r}."
        )
    rule = {}
    for name, choice in combination.items():
        j = ground_truth.position(name)
        size = ground_truth.sizes[j]
        listed = list(choice) if isinstance(choice, Iterable) else [choice]
        values = as_whole_numbers(listed, f'values of "{name}"').ravel()
        if not len(values) or values.min() < 0 or values.max() >= size:
            raise UnweaveError(f'values of "{name}" must be one or more of 0 .. {size - 1}; got {choice!r}.')
        rule[j] = np.isin(np.arange(size), values)
    return rule


def _holds(rules: Sequence[Rule], factors: Factors) -> NDArray[np.float64]:
    """(n,): 1 where all conditions of at least one combination hold, else 0."""
    holds = [np.all([table[factors[:, j]] for j, table in rule.items()], axis=0) for rule in rules]
    return np.asarray(np.any(holds, axis=0), np.float64)


def _describe(ground_truth: GroundTruth, rules: Sequence[Rule]) -> str:
    """For example 'shape 2 & x 16-31 or shape 0 & y 0,2,4'."""
    return " or ".join(
        " & ".join(f"{ground_truth.factors[j].name} {_spans(table)}" for j, table in rule.items())
        for rule in rules
    )


def _spans(table: NDArray[np.bool_]) -> str:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], table, [False]]).astype(np.int8)))
    spans = [(int(first), int(after) - 1) for first, after in edges.reshape(-1, 2)]
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)


def _refuse_empty(ground_truth: GroundTruth) -> GroundTruth:
    """The ground truth, if a combination is left to draw; huge grids are left to find out when they draw."""
    n = len(ground_truth)
    if n > LARGEST_SCAN or ground_truth.weight is None:
        return ground_truth
    for start in range(0, n, CHUNK):
        if ground_truth.weight(ground_truth.factors_at(np.arange(start, min(start + CHUNK, n)))).any():
            return ground_truth
    raise UnweaveError(
        f"no combination of factors is left to draw ({ground_truth.drawn}). Hold out less, or use a larger "
        "sigma or weight."
    )
