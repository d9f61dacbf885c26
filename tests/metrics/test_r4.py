"""R^4: the authors' definition on a small hierarchy, and codes that curve, mix, ignore or are dead."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import (  # type: ignore[import-untyped]
    GradientBoostingClassifier,
    GradientBoostingRegressor,
)

import unweave
from metrics.grids import noise
from unweave.metrics import r4
from unweave.metrics.kinds import FactorKind
from unweave.metrics.r4 import r4_mixed
from unweave.streams import Stream

ROWS = 300
CATEGORY, NUMBER = FactorKind("categorical"), FactorKind("continuous")


def hierarchy() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A shape of three kinds, a position, and the length of a tail that only the second shape has."""
    shape = Stream.of(0).child("shape").integers(ROWS, [3])[:, 0]
    position, tail = Stream.of(0).child("numbers").uniform(ROWS, 2).T
    factors = np.stack([shape, position, np.where(shape == 1, tail, np.nan)], axis=1)
    spread = noise(ROWS, 3)
    codes = np.stack(
        [
            np.exp(position) + 0.1 * spread[:, 0],
            0.7 * shape + 0.2 * spread[:, 1],
            np.where(shape == 1, tail**3, 0.3 * spread[:, 2]),
        ],
        axis=1,
    )
    return codes, factors


def published(code: NDArray[Any], factor: NDArray[Any], cut: int, category: bool) -> float:
    """R2_bothways of the authors' src/metrics.py, with one split: rows from `cut` on are held out."""
    known = np.isfinite(factor)
    train, test = known & (np.arange(len(code)) < cut), known & (np.arange(len(code)) >= cut)
    model = GradientBoostingClassifier() if category else GradientBoostingRegressor()
    forth = model.fit(code[train, None], factor[train]).score(code[test, None], factor[test])
    back = GradientBoostingRegressor().fit(factor[train, None], code[train])
    return float(np.sqrt(max(0, forth) * max(0, back.score(factor[test, None], code[test]))))


def test_the_authors_definition_where_a_factor_is_active() -> None:
    codes, factors = hierarchy()
    result = r4_mixed(codes, factors, kinds=[CATEGORY, NUMBER, NUMBER])
    cut = ROWS - ROWS // 3
    for j, best in enumerate([1, 0, 2]):
        expected = published(codes[:, best], factors[:, j], cut, category=j == 0)
        assert result.correspondence[best, j] == pytest.approx(expected, abs=1e-3)
        assert result.correspondence[:, j].argmax() == best
    assert result.score == pytest.approx(result.correspondence.max(axis=0).mean())
    assert result.correspondence[2, 2] > 0.98


def test_evaluate_counts_each_factor_where_it_is_active() -> None:
    codes, factors = hierarchy()
    scores = unweave.evaluate(codes, factors, metrics="r4", kinds={"v0": "categorical"})
    assert scores["r4"] > 0.9
    assert "pairwise" in scores.score("r4").protocol
    # Written as 0 where it is not active, the length must be distinguished from noise there.
    filled = np.nan_to_num(factors)
    flat = unweave.evaluate(codes, filled, metrics="r4", kinds={"v0": "categorical"})
    assert flat["r4"] < scores["r4"] - 0.05


def test_curved_codes_are_perfect_and_mixed_ones_are_not() -> None:
    factors = Stream.of(3).integers(400, [15, 15])
    codes = np.stack([np.exp(factors[:, 0] / 5), -(factors[:, 1] ** 3.0)], axis=1)
    turned = np.stack([factors.sum(axis=1), factors[:, 0] - factors[:, 1]], axis=1)
    test = Stream.of(4).integers(200, [15, 15])
    curved = np.stack([np.exp(test[:, 0] / 5), -(test[:, 1] ** 3.0)], axis=1)
    assert r4(codes, factors, test=(curved, test)).score > 0.99
    mixed = np.stack([test.sum(axis=1), test[:, 0] - test[:, 1]], axis=1)
    assert r4(turned, factors, test=(mixed, test)).score < 0.6


def test_codes_of_few_whole_numbers_are_classes() -> None:
    """Sum and difference of two factors: the authors' R4_scores, mean of ten random splits, is 0.301."""
    factors = Stream.of(6).integers(900, [4, 5])
    codes = np.stack([factors.sum(axis=1), factors[:, 0] - factors[:, 1]], axis=1)
    assert r4(codes, factors).score == pytest.approx(0.301, abs=0.02)
    assert r4(codes * 0.37, factors).score > 0.4  # R^2 of numbers
    assert r4(factors, factors).score == 1


def test_a_dead_code_is_not_rewarded_for_the_most_frequent_category() -> None:
    factors = Stream.of(5).integers(200, [2, 3])
    assert r4(np.ones((200, 2)), factors).score == 0


def test_a_factor_that_is_active_nowhere_in_the_test_rows_scores_nothing() -> None:
    codes, factors = hierarchy()
    factors[100:, 2] = np.nan
    result = r4_mixed(codes, factors, kinds=[CATEGORY, NUMBER, NUMBER], rounds=5)
    assert (result.correspondence[:, 2] == 0).all()
