"""Unified scores: the aggregations of DCI, MIG, SAP and modularity, each applied to one matrix of relations.

Locatello et al., "Challenging Common Assumptions in the Unsupervised Learning of Disentangled
Representations", JMLR 2020 ("A Sober Look at the Unsupervised Learning of Disentangled Representations and
their Evaluation") [1], and its program disentanglement_lib [2]. A score has two parts: how codes and factors
are related, and how the relations are summed up. Unified scores separate the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError, did_you_mean
from unweave.metrics.checks import check_codes_factors
from unweave.metrics.dci import dci, disentanglement
from unweave.metrics.information import entropies, mutual_information, numbered
from unweave.metrics.real_factors import Floats
from unweave.metrics.sap import sap_with_accuracies
from unweave.streams import Stream

Test: TypeAlias = tuple[ArrayLike, ArrayLike] | None
Relation: TypeAlias = Literal["information", "importance", "accuracy"]


class UnifiedScores(NamedTuple):
    """The aggregations of one matrix, and the matrix."""

    disentanglement: float
    completeness: float
    mig: float
    sap: float
    modularity: float
    area_precision: float
    max_precision: float
    relation: Floats  # (d, k)


def unified_scores(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    test: Test = None,
    relation: Relation = "information",
    seed: int | Stream = 0,
) -> UnifiedScores:
    """Return all aggregations of one matrix R (d, k) of relations between codes and factors.

    `relation` is "information" (mutual information of binned codes, as in `mig` and `modularity`),
    "importance" (of boosted trees, as in `dci`) or "accuracy" (on test data, of linear classifiers of one
    code, as in `sap`).

    - disentanglement, completeness: the entropies of `dci`.
    - mig: mean over factors of (largest - second largest entry of the column) / H(v_j).
    - sap: mean over factors of (largest - second largest entry of the column).
    - modularity: mean over codes of 1 - sum of the other squared entries of the row / ((k - 1) largest
      squared).
    - max_precision, area_precision: codes and factors are connected where R is at or above a threshold;
      precision is the number of groups that are connected, which is k if each factor has codes of its own.
      Its maximum over all thresholds, and the area below it.

    All at least 0, higher is better. Disentanglement, completeness and modularity are at most 1. mig, sap and
    area_precision grow with the entries of R; area_precision is at most min(d, k) times the largest of them.
    max_precision is a whole number of at most min(d, k). Each relation's own aggregation is the metric of
    that name: information with mig and modularity, importance with disentanglement and completeness, accuracy
    with sap.

    With one code, its rival has 0; with one factor modularity is 1 for an informative code.

    >>> factors = Stream.of(0).integers(600, [3, 4])
    >>> found = unified_scores(factors, factors)
    >>> round(found.disentanglement, 2), round(found.modularity, 2), found.max_precision
    (0.96, 1.0, 2.0)
    """
    if relation not in _RELATIONS:
        raise UnweaveError(
            f"`relation` must be one of {', '.join(_RELATIONS)}; got {relation!r}. "
            f"{did_you_mean(str(relation), _RELATIONS)}"
        )
    _, checked = check_codes_factors(codes, factors)
    matrix = _RELATIONS[relation](codes, factors, test, Stream.of(seed).child("unified_scores"))
    return aggregate(matrix, entropies(numbered(checked)))


def aggregate(matrix: Floats, entropy: Floats) -> UnifiedScores:
    """Return all aggregations of a matrix (d, k) >= 0, given the entropy (k,) of each factor."""
    ranked = np.sort(np.vstack([matrix, np.zeros(matrix.shape[1])]), axis=0)
    gaps = ranked[-1] - ranked[-2]
    area, most = _precision(matrix)
    return UnifiedScores(
        disentanglement(matrix),
        disentanglement(matrix.T),
        float((gaps / entropy).mean()),
        float(gaps.mean()),
        _modularity(matrix),
        area,
        most,
        matrix,
    )


def _modularity(matrix: Floats) -> float:
    squares = matrix**2
    largest = squares.max(axis=1)
    others = squares.sum(axis=1) - largest
    spare = max(matrix.shape[1] - 1, 1) * largest
    scores = 1 - np.divide(others, spare, out=np.ones_like(others), where=spare > 0)
    return float(scores.mean())


def _precision(matrix: Floats) -> tuple[float, float]:
    """Area below the number of groups over all thresholds, and the largest number of groups."""
    codes, factors = np.unravel_index(np.argsort(-matrix, axis=None, kind="stable"), matrix.shape)
    thresholds = matrix[codes, factors]
    group = -np.ones(sum(matrix.shape), np.int64)  # of each code, then of each factor; -1: alone
    number, numbers = 0, []
    for code, factor, weight in zip(codes, factors + matrix.shape[0], thresholds, strict=True):
        if weight > 0:
            number += _join(group, int(code), int(factor))
        numbers.append(number)
    # With equal entries, the number after the last of them counts for all.
    last = np.searchsorted(-thresholds, -thresholds, side="right") - 1
    precisions = np.array(numbers)[last]
    widths = thresholds[:-1] - thresholds[1:]
    return float(((precisions[:-1] + precisions[1:]) / 2) @ widths), float(precisions.max())


def _join(group: NDArray[np.int64], code: int, factor: int) -> int:
    """Connect two nodes and return by how much the number of groups changes."""
    first, second = group[code], group[factor]
    if first < 0 and second < 0:
        group[[code, factor]] = code
        return 1
    if first < 0 or second < 0:
        group[[code, factor]] = max(first, second)
        return 0
    group[group == first] = second
    return 0 if first == second else -1


def _information(codes: ArrayLike, factors: ArrayLike, test: Test, stream: Stream) -> Floats:  # noqa: ARG001
    return mutual_information(codes, factors)


def _importance(codes: ArrayLike, factors: ArrayLike, test: Test, stream: Stream) -> Floats:
    return dci(codes, factors, test=test, seed=stream).importance


def _accuracy(codes: ArrayLike, factors: ArrayLike, test: Test, stream: Stream) -> Floats:  # noqa: ARG001
    return sap_with_accuracies(codes, factors, test=test).accuracy


_RELATIONS: dict[Relation, Callable[[ArrayLike, ArrayLike, Test, Stream], Floats]] = {
    "information": _information,
    "importance": _importance,
    "accuracy": _accuracy,
}
