"""Scores of sparse features against known factors.

[1] Chanin, Wilken-Smith, Dulka, Bhatnagar, Golechha, Bloom: A is for Absorption: Studying Feature Splitting
and Absorption in Sparse Autoencoders, 2024. [2] Hsu, Dorrell, Whittington, Wu, Finn: Disentanglement via
Latent Quantization, NeurIPS 2023. [3] Eastwood, Williams: A Framework for the Quantitative Evaluation of
Disentangled Representations, ICLR 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.evaluation.scores import Score, Scores
from unweave.metrics.mcc import best_matching
from unweave.sparse.detectors import (
    LEVELS,
    Concept,
    Concepts,
    Floats,
    areas,
    concepts_of,
    correlations,
    detectors,
    f1_scores,
    read_features,
    thresholds,
)

if TYPE_CHECKING:
    import pandas as pd

    from unweave.sparse.detectors import Sparse

GAIN = 0.03  # of F1, by which a further feature counts as a split, as in [1]
MOST_SPLITS = 32
PRECISION, LEAST_FIRINGS = 0.9, 20  # of a feature that can absorb a concept


class ConceptScore(NamedTuple):
    """How one concept is represented, on rows that no choice was made on."""

    concept: Concept
    feature: int  # with the highest F1 on the other rows
    f1: float  # of this feature with the best threshold
    auc: float  # of the feature with the highest one on the other rows
    correlation: float  # of the feature matched to the concept
    features: tuple[int, ...]  # the concept is split among these
    f1_split: float  # of all of them together
    absorption: float  # share of the positive rows


def score(
    features: Any,
    factors: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    intervals: int | None = 8,
) -> Scores:
    """Score sparse features (n, m) against factors (n, k), whole numbers.

    Each value of a factor is a concept; a factor with the values 0 and 1 is one concept, which holds where it
    is 1. The values of a factor with more than `intervals` values are joined to that many intervals (None:
    never). Features are chosen on the first two thirds of the rows and scored on the last third, so rows must
    be in random order. Means over concepts:

    - `mcc`: correlation of a concept with the feature matched to it; each feature is matched once. Noise
      scores 0.
    - `auc`, `f1`: of the best feature for a concept; F1 with the best of four thresholds. Noise scores an AUC
      of 0.5, and an F1 of at most 2 p / (1 + p) for a concept that holds for a share p of the rows.
    - `splitting`: how many features a concept is split among, at least 1, and `f1_split`, the F1 of their
      union. The best detector (feature and threshold) comes first. The detector that raises the F1 of the
      union most follows, until it raises it by less than 0.03.
    - `absorption`: the share of a concept's rows on which none of these features fires, but another one does
      that fires for this concept almost only (in 90% of at least 20 rows). Such a feature has absorbed the
      concept for these rows.

    And of all features:

    - `monosemanticity`: sum_i w_i (max_j p_ij - 1/k) / (1 - 1/k) with p_ij = I_ij / sum_j I_ij and
      w_i = sum_j I_ij / sum_ij I_ij. I_ij is the mutual information of feature i and factor j relative to the
      entropy of the factor. This is InfoM of [2] with the weights of DCI [3]; it needs two factors.
    - `active`: features that fire on a row, on average. `dead`: share of features that never fire.

    Differs from [1]: the features of a concept are chosen by the F1 of their union, and not by the weights of
    a linear probe. Known factors, not projections on a probe, tell which feature has absorbed a concept.

    >>> factors = np.stack([np.arange(3000) % 3, np.arange(3000) // 3 % 4], axis=1)
    >>> perfect = np.concatenate([np.eye(3)[factors[:, 0]], np.eye(4)[factors[:, 1]]], axis=1)
    >>> scores = score(perfect, factors)
    >>> [round(scores[name], 3) for name in ("mcc", "f1", "splitting", "absorption", "monosemanticity")]
    [1.0, 1.0, 1.0, 0.0, 1.0]
    """
    table = _measured(features, factors, names, intervals)
    rows = table.concept_scores()
    values = {
        "mcc": _mean(row.correlation for row in rows),
        "auc": _mean(row.auc for row in rows),
        "f1": _mean(row.f1 for row in rows),
        "f1_split": _mean(row.f1_split for row in rows),
        "splitting": _mean(len(row.features) for row in rows),
        "absorption": _mean(row.absorption for row in rows),
    }
    if len(table.names) > 1:
        values["monosemanticity"] = table.monosemanticity()
    values |= {"active": table.active, "dead": table.dead}
    cut = "values" if intervals is None else f"intervals{intervals}"
    return Scores(
        "features",
        "mean",
        tuple(Score(name, f"sparse_{name}[{cut}]", "mean", value) for name, value in values.items()),
        factors=table.names,
        points=(table.train.shape[0], table.test.shape[0]),
    )


def concept_table(
    features: Any,
    factors: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    intervals: int | None = 8,
) -> pd.DataFrame:
    """One row a concept: its best feature, and its scores; see `score`."""
    import pandas as pd

    rows = _measured(features, factors, names, intervals).concept_scores()
    frame = pd.DataFrame(rows, columns=list(ConceptScore._fields))
    return frame.assign(concept=[str(row.concept) for row in rows])


@dataclass(frozen=True, eq=False)
class _Measured:
    """Features and concepts of the rows to choose on and of the rows to score on."""

    train: Sparse
    test: Sparse
    concepts: Concepts  # of all rows, those to choose on first
    names: tuple[str, ...]

    @property
    def labels(self) -> Floats:
        return self.concepts.labels[: self.train.shape[0]]

    @property
    def test_labels(self) -> Floats:
        return self.concepts.labels[self.train.shape[0] :]

    @cached_property
    def limits(self) -> Floats:
        return thresholds(self.train)

    @cached_property
    def on(self) -> Sparse:
        """(n, levels m): where each detector is on."""
        return detectors(self.train, self.limits)

    @cached_property
    def together(self) -> Floats:
        """(c, levels m): on how many rows a concept holds and a detector is on."""
        return np.asarray(self.on.T @ self.labels).T

    @property
    def active(self) -> float:
        return float((self.train.nnz + self.test.nnz) / (self.train.shape[0] + self.test.shape[0]))

    @property
    def dead(self) -> float:
        fired = np.diff(self.train.indptr) + np.diff(self.test.indptr)
        return float((fired == 0).mean())

    def monosemanticity(self) -> float:
        information = self._information()
        sums = information.sum(axis=1)
        k = information.shape[1]
        if not sums.sum():
            return 0.0
        largest = information.max(axis=1) / np.maximum(sums, 1e-300)
        return float((sums / sums.sum()) @ np.maximum((largest - 1 / k) / (1 - 1 / k), 0))

    def _information(self) -> Floats:
        """I(feature i; factor j) / H(factor j), (m, k), less its bias for independent ones, at least 0."""
        m, n = self.train.shape[1], self.train.shape[0]
        positive = self.labels.sum(axis=0)
        above = np.concatenate([np.broadcast_to(positive, (1, m, len(positive))), _levels(self.together, m)])
        joint = above - np.concatenate([above[1:], np.zeros((1, m, len(positive)))])  # (levels + 1, m, c)
        columns = []
        for j in range(len(self.names)):
            own = joint[:, :, self.concepts.factor == j]
            used = (own.sum(axis=2) > 0).sum(axis=0)
            bias = (used - 1) * ((own.sum(axis=(0, 1)) > 0).sum() - 1) / (2 * n)
            entropy = _entropy(own.sum(axis=0)[0], axis=0)
            levels, pairs = own.sum(axis=2), own.transpose(1, 0, 2).reshape(m, -1)
            information = entropy + _entropy(levels, axis=0) - _entropy(pairs, axis=1)
            columns.append(np.maximum(information - bias, 0) / max(float(entropy), 1e-300))
        return np.stack(columns, axis=1)

    def concept_scores(self) -> list[ConceptScore]:
        """The scores of all concepts."""
        positive = self.labels.sum(axis=0)[:, None]
        count = np.asarray(self.on.sum(axis=0), np.float64)
        f1 = f1_scores(self.together, count, positive)
        areas_of_best, matched = self._areas_and_matches()
        on_test = detectors(self.test, self.limits)
        rows = []
        for number, c in enumerate(self.concepts.scored):
            best = int(f1[c].argmax())
            split = self._split(c, best, count)
            features = tuple(dict.fromkeys(int(i) % self.train.shape[1] for i in split))
            union = _any(on_test, split)
            truth = self.test_labels[:, c] > 0
            rows.append(
                ConceptScore(
                    self.concepts.listed[c],
                    best % self.train.shape[1],
                    _f1_of(_any(on_test, [best]), truth),
                    float(areas_of_best[number]),
                    float(matched[number]),
                    features,
                    _f1_of(union, truth),
                    self._absorption(c, features, truth),
                )
            )
        return rows

    def _areas_and_matches(self) -> tuple[Floats, Floats]:
        """AUC of the best feature of each concept, and correlation of the one matched to it, (c,) each."""
        labels, test_labels = (part[:, self.concepts.scored] for part in (self.labels, self.test_labels))
        concepts = np.arange(labels.shape[1])
        best = areas(self.train, labels).argmax(axis=1)
        chosen = areas(self.test, test_labels)[concepts, best]
        first, second = correlations(self.train, labels), correlations(self.test, test_labels)
        match = best_matching(np.abs(first).T)
        signed = np.sign(first[concepts, match]) * second[concepts, match]
        return chosen, np.where(match >= 0, signed, 0.0)

    def _split(self, concept: int, best: int, count: Floats) -> list[int]:
        """Detectors that a concept is split among: greedily, by the F1 of their union."""
        truth, rows = self.labels[:, concept], self._rows_of_detectors
        chosen, free = [best], 1.0 - _any(self.on, [best])
        hits, fires = self.together[concept, best], count[best]
        while len(chosen) < MOST_SPLITS:
            more_hits, more_fires = rows @ (free * truth), rows @ free
            f1 = f1_scores(hits + more_hits, fires + more_fires, truth.sum())
            following = int(f1.argmax())
            if f1[following] < f1_scores(hits, fires, truth.sum()) + GAIN:
                break
            chosen.append(following)
            hits, fires = hits + more_hits[following], fires + more_fires[following]
            free *= 1.0 - _any(self.on, [following])
        return chosen

    @cached_property
    def _rows_of_detectors(self) -> Any:
        return self.on.T.tocsr()

    def _absorption(self, concept: int, main: Sequence[int], truth: NDArray[np.bool_]) -> float:
        """Share of the rows of a concept on which only features fire that have absorbed it."""
        m = self.train.shape[1]
        hits, fires = self.together[concept, :m], np.diff(self.train.indptr)
        absorbing = (hits >= PRECISION * fires) & (fires >= LEAST_FIRINGS)
        absorbing[list(main)] = False
        silent = ~_any(self.test, main)
        absorbed = silent & _any(self.test, np.flatnonzero(absorbing)) & truth
        return float(absorbed.sum() / max(truth.sum(), 1))


def _measured(
    features: Any, factors: ArrayLike, names: Sequence[str] | None, intervals: int | None
) -> _Measured:
    table, truth = read_features(features, factors)
    if intervals is not None and (not isinstance(intervals, int) or intervals < 2):
        raise UnweaveError(f"intervals must be a whole number >= 2, or None; got {intervals!r}.")
    known = tuple(names) if names is not None else tuple(f"v{j}" for j in range(truth.shape[1]))
    if len(known) != truth.shape[1]:
        raise UnweaveError(f"names must name the {truth.shape[1]} factors; got {len(known)}.")
    held_out = len(truth) // 3
    if not held_out:
        raise UnweaveError(f"holding out the last third needs at least 3 rows; got {len(truth)}.")
    train, test = table[: len(truth) - held_out], table[len(truth) - held_out :]
    return _Measured(train.tocsc(), test.tocsc(), concepts_of(truth, known, intervals), known)


def _any(on: Sparse, columns: ArrayLike) -> NDArray[np.bool_]:
    """Whether any of these columns is positive, for each row."""
    return np.asarray(on[:, np.asarray(columns, np.int64)].sum(axis=1)) > 0


def _f1_of(detected: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    return float(f1_scores(*(np.asarray(float(part.sum())) for part in (detected & truth, detected, truth))))


def _levels(counts: Floats, m: int) -> Floats:
    """(c, levels m) -> (levels, m, c)."""
    return counts.reshape(len(counts), len(LEVELS), m).transpose(1, 2, 0)


def _entropy(counts: Floats, axis: int) -> Floats:
    """The entropy of counts in nats, along an axis."""
    shares = counts / np.maximum(counts.sum(axis=axis, keepdims=True), 1)
    return np.asarray(-(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=axis))


def _mean(values: Any) -> float:
    return float(np.mean(list(values)))
