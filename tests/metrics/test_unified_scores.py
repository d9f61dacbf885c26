"""Unified scores: the published program's aggregations, and agreement with the metrics they unify."""

import math

import numpy as np
import pytest

from metrics.grids import drawn, noise
from unweave.errors import UnweaveError
from unweave.metrics import dci, metric_named, mig, modularity, sap, unified_scores
from unweave.metrics.unified_scores import aggregate
from unweave.streams import Stream


def test_aggregations_of_the_published_program() -> None:
    """From unified_scores.py of disentanglement_lib on the same matrix, with a row of zeros and a tie."""
    matrix = Stream.of(3).uniform(5, 4) ** 3
    matrix[2] = 0
    matrix[4, 1] = matrix[0, 1]
    found = aggregate(matrix, np.array([1.1, 0.7, 1.6, 2.0]))
    assert found[:7] == pytest.approx(
        (
            0.42146375229106914,
            0.508863251683095,
            0.30251776270902964,
            0.37411980159110436,
            0.6650247765156647,
            1.16435805483768,
            2.0,
        ),
        abs=1e-12,
    )


def test_each_matrix_with_its_own_aggregation_is_the_metric() -> None:
    factors = drawn([3, 4], 300)
    codes = factors @ np.array([[1.0, 0.3, 0.5], [0.2, 1.0, 0.6]]) + 0.3 * noise(300, 3)
    information = unified_scores(codes, factors)
    assert information.mig == pytest.approx(mig(codes, factors))
    assert information.modularity == pytest.approx(modularity(codes, factors))
    importance = unified_scores(codes, factors, relation="importance")
    assert importance.disentanglement == pytest.approx(dci(codes, factors).disentanglement, abs=0.01)
    assert unified_scores(codes, factors, relation="accuracy").sap == pytest.approx(sap(codes, factors))


def test_precision_counts_groups() -> None:
    """Two factors with codes of their own are two groups until the threshold reaches what joins them."""
    found = aggregate(np.array([[1.0, 0.25], [0.0, 0.5]]), np.ones(2))
    assert found.max_precision == 2
    # Groups 1, 2, 1, 1 at the thresholds 1, 0.5, 0.25, 0.
    assert found.area_precision == pytest.approx(1.5 * 0.5 + 1.5 * 0.25 + 1 * 0.25)


def test_most_groups_of_noise() -> None:
    """The published program's precision counts connected components, at most one for each factor and code."""
    factors, codes = drawn([2, 2, 2], 1000), noise(1000, 50)
    assert unified_scores(codes, factors).max_precision == 3
    assert unified_scores(codes[:, :1], factors).max_precision == 1
    assert unified_scores(codes, factors).area_precision < 0.1
    assert unified_scores(factors, factors).area_precision > 1
    for name in ("unified_information", "unified_importance", "unified_accuracy"):
        metric = metric_named(name)
        assert metric.range == (0.0, math.inf)
        assert any("max_precision counts groups" in flaw for flaw in metric.flaws)


def test_unknown_relation() -> None:
    with pytest.raises(UnweaveError, match="`relation` must be one of information, importance, accuracy"):
        unified_scores(noise(10, 2), drawn([2], 10), relation="mutual")  # type: ignore[arg-type]
