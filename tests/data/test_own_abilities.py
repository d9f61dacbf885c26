"""What can be done with which data: the answers, and the numbers in their reasons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unweave.data.own import Ability, abilities, from_arrays

ZEROS = np.zeros((8, 4, 4), np.uint8)
A, B = [0, 1] * 4, [0, 0, 1, 1] * 2


def answers(factors: Any, **options: Any) -> dict[str, Ability]:
    found = abilities(from_arrays(ZEROS, factors, **options))
    assert all(ability.why.endswith(".") for ability in found)
    return {ability.what.split(" (")[0]: ability for ability in found}


def possible(found: dict[str, Ability]) -> dict[str, bool]:
    return {what: ability.possible for what, ability in found.items()}


def test_a_full_grid_can_do_everything() -> None:
    found = answers({"a": A, "b": B, "c": [0] * 4 + [1] * 4})
    assert all(possible(found).values())
    assert found["training"].why == "8 combinations of factors are drawn alike; each has one image."
    assert found["full grid of factors"].why == "Each of 2 x 2 x 2 combinations has an image."


def test_hidden_variation_is_said() -> None:
    assert "each look at one draws its image" in answers({"a": A, "b": B})["training"].why


def test_a_factor_with_one_value_is_allowed_and_said() -> None:
    found = answers({"a": [5] * 8, "b": B})
    assert found["metrics from codes and factors"].why == (
        "1 of 2 factors vary, all known. a never varies and is not measured."
    )
    assert not found["metrics that hold a factor fixed"].possible
    found = answers({"a": [5] * 8, "b": B}, grid=False)
    assert found["holding a fixed"] == (
        "holding a fixed",
        False,
        "It has one value only, so it tells nothing.",
    )


def test_a_grid_with_a_hole_and_missing_values() -> None:
    a: list[Any] = [*A[:7], None]
    found = answers({"a": a, "b": B})
    assert possible(found) == {
        "training": True,
        "full grid of factors": False,
        "metrics from codes and factors": True,
        "metrics that hold a factor fixed": True,
        "holding a fixed": True,
        "holding b fixed": True,
        "weak supervision": True,
    }
    assert found["full grid of factors"].why == "1 of 8 rows miss the value of a factor."
    assert found["metrics from codes and factors"].why == (
        "7 of 8 rows know every factor. The others are left out. Scores from fewer than 1,000 rows are rough."
    )
    assert found["holding a fixed"].why == "7 of 7 known rows share their value with another row."
    assert found["weak supervision"].why == "Images can be drawn that share a and b."


def test_continuous_factors_are_to_be_binned() -> None:
    found = answers({"a": A, "x": np.linspace(0, 1, 8)})
    assert found["full grid of factors"].why == "1 factor(s) are continuous (x)."
    assert "Bin x for scores that count values" in found["metrics from codes and factors"].why
    assert found["holding x fixed"] == (
        "holding x fixed",
        False,
        "0 of 8 known rows share their value with another row. "
        "At least half must: bin it first (see binned).",
    )
    assert found["metrics that hold a factor fixed"].why == (
        "1 of 2 factors can be held fixed; two or more are needed."
    )
    assert found["weak supervision"].possible


@pytest.mark.parametrize("factors", [None, {"x": np.linspace(0, 1, 8)}])
def test_without_matches_only_training_is_left(factors: Any) -> None:
    found = answers(factors)
    assert found["training"] == ("training", True, "8 images.")
    assert not found["weak supervision"].possible
    assert not found["metrics that hold a factor fixed"].possible
    assert found["metrics from codes and factors"].possible == (factors is not None)
