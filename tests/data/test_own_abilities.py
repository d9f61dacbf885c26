"""What can be done with which data: the answers, and the numbers in their reasons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unweave.data.own.construct import Ability, abilities, from_arrays

ZEROS = np.zeros((8, 32, 32), np.uint8)
A, B = [0, 1] * 4, [0, 0, 1, 1] * 2


def answers(factors: Any, **options: Any) -> dict[str, Ability]:
    checks = abilities(from_arrays(ZEROS, factors, **options))
    assert all(ability.why.endswith(".") for ability in checks)
    return {ability.what.split(" (")[0]: ability for ability in checks}


def possible(checks: dict[str, Ability]) -> dict[str, bool]:
    return {what: ability.possible for what, ability in checks.items()}


def test_a_full_grid_can_do_everything() -> None:
    checks = answers({"a": A, "b": B, "c": [0] * 4 + [1] * 4})
    assert all(possible(checks).values())
    assert checks["training"].why == "8 combinations of factors are drawn alike; each has one image."
    assert checks["full grid of factors"].why == "Each of 2 x 2 x 2 combinations has an image."


def test_hidden_variation_is_said() -> None:
    assert "the image of each is drawn at random" in answers({"a": A, "b": B})["training"].why


def test_a_factor_with_one_value_is_allowed_and_said() -> None:
    checks = answers({"a": [5] * 8, "b": B})
    assert checks["metrics from codes and factors"].why == (
        "1 of 2 factors vary, all known. a never varies and is not measured."
    )
    assert not checks["metrics that hold a factor fixed"].possible
    checks = answers({"a": [5] * 8, "b": B}, grid=False)
    assert checks["holding a fixed"] == (
        "holding a fixed",
        False,
        "It has one value only, so it tells nothing.",
    )


def test_a_grid_with_a_hole_and_missing_values() -> None:
    a: list[Any] = [*A[:7], None]
    checks = answers({"a": a, "b": B})
    assert possible(checks) == {
        "training": True,
        "full grid of factors": False,
        "metrics from codes and factors": True,
        "metrics that hold a factor fixed": True,
        "holding a fixed": True,
        "holding b fixed": True,
        "groups of images that share a factor": True,
        "labels": True,
        "pairs and sequences": False,
    }
    assert checks["full grid of factors"].why == "1 of 8 rows miss the value of a factor."
    assert checks["labels"].why == "7 of 8 rows know a and b."
    assert checks["metrics from codes and factors"].why == (
        "7 of 8 rows know every factor that is measured. The others are left out. "
        "Scores from fewer than 1,000 rows are rough."
    )
    assert checks["holding a fixed"].why == "7 of 7 known rows share their value with another row."
    assert checks["groups of images that share a factor"].why == "Images can be drawn that share a and b."


def test_continuous_factors_are_to_be_binned() -> None:
    checks = answers({"a": A, "x": np.linspace(0, 1, 8)})
    assert checks["full grid of factors"].why == "1 factor(s) are continuous (x)."
    assert "x is continuous: scores that count values use bins" in (
        checks["metrics from codes and factors"].why
    )
    assert checks["holding x fixed"] == (
        "holding x fixed",
        False,
        "0 of 8 known rows share their value with another row. "
        "At least half must: bin it first (see binned).",
    )
    assert checks["metrics that hold a factor fixed"].why == (
        "1 of 2 factors can be held fixed; two or more are needed."
    )
    assert checks["groups of images that share a factor"].possible


@pytest.mark.parametrize("factors", [None, {"x": np.linspace(0, 1, 8)}])
def test_without_matches_no_factor_can_be_held_fixed(factors: Any) -> None:
    checks = answers(factors)
    assert checks["training"] == ("training", True, "8 images.")
    assert not checks["groups of images that share a factor"].possible
    assert not checks["metrics that hold a factor fixed"].possible
    assert checks["metrics from codes and factors"].possible == (factors is not None)


def test_images_that_the_networks_do_not_take() -> None:
    checks = {ability.what: ability for ability in abilities(from_arrays(ZEROS[:, :28]))}
    assert not checks["training"].possible
    assert "32 or more in multiples of 16, not 28 x 32" in checks["training"].why
    assert abilities(from_arrays(ZEROS[:, :28], size="auto"))[0].possible


def test_values_that_occur_once_are_not_measured() -> None:
    checks = answers({"a": A, "id": range(8)})
    assert "id is not measured, because most of its values occur once." in (
        checks["metrics from codes and factors"].why
    )
