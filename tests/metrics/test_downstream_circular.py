"""Regression of circular factors: circles, angles with a jump, periods, missing values, and sources."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.test_downstream_curves import DATA, factors_in, perfect
from unweave.errors import UnweaveError
from unweave.evaluation import evaluate
from unweave.metrics import downstream_circular
from unweave.streams import Stream

ANGLES = Stream.of(0).uniform(4000, 2) * 360


def circle(degrees: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1)


def test_circles_and_angles_with_a_jump() -> None:
    """The best line through an angle explains 3 / pi^2 of its cosine and sine; the score is a mean."""
    codes = np.hstack([circle(ANGLES[:, 0]), ANGLES[:, 1:]])
    result = downstream_circular(codes, ANGLES, {0: 360.0, 1: 360.0}, model="linear")
    assert result.factors == pytest.approx([1, 3 / np.pi**2], abs=0.02)
    assert result.score == pytest.approx(result.factors.mean())
    assert downstream_circular(codes, ANGLES, {1: 360.0}, model="linear").factors == pytest.approx(
        result.factors[1:]
    )
    # With a period of half a turn, the targets go round twice, and a circle holds nothing of that.
    assert downstream_circular(codes[:, :2], ANGLES, {0: 180.0}, model="linear").score < 0.02
    assert downstream_circular(codes[:900], ANGLES[:900], {1: 360.0}).score > 0.9
    assert downstream_circular(Stream.of(1).normal(900, 3), ANGLES[:900], {1: 360.0}).score < 0.02


def test_rows_with_a_missing_angle_are_left_out() -> None:
    angles = ANGLES[:600].copy()
    angles[::3, 0] = np.nan
    angles[:, 1] = np.nan  # of another factor
    known = np.isfinite(angles[:, 0])
    codes = circle(ANGLES[:600, 0]) + 0.3 * Stream.of(2).normal(600, 2)
    some, all_known = (
        downstream_circular(codes[rows], angles[rows], {0: 360.0}, model="linear").score
        for rows in (slice(None), known)
    )
    assert some == pytest.approx(all_known)


def test_sources_know_their_circular_factors() -> None:
    options = {"metrics": "downstream_circular", "points": (300, 200)}
    for encode, least, most in ((perfect, 0.99, 1.0), (lambda images: factors_in(images)[:, :2], -1.0, 0.1)):
        scores = evaluate(encode, data=DATA, **options)  # type: ignore[arg-type]
        assert least <= scores["downstream_circular"] <= most
    assert "sine-cosine" in scores.score("downstream_circular").protocol
    rows = slice(0, 600)
    kinds = {"v0": ("circular", 360.0)}
    arrays = evaluate(circle(ANGLES[rows, 0]), ANGLES[rows], kinds=kinds, **options)  # type: ignore[arg-type]
    assert arrays["downstream_circular"] > 0.99
    with pytest.raises(UnweaveError, match="it needs a circular factor"):
        evaluate(np.arange(90.0)[:, None], np.arange(90)[:, None] % 3, metrics="downstream_circular")


def test_mistakes_raise_clear_errors() -> None:
    for periods in ({}, {0: 0.0}, {-1: 3.0}, {0: np.inf}, {0: "360"}, {0.5: 360.0}, [360.0]):
        with pytest.raises(UnweaveError, match="`periods` must name one circular factor or more"):
            downstream_circular(ANGLES, ANGLES, periods)  # type: ignore[arg-type]
    some = ANGLES[:30]
    with pytest.raises(UnweaveError, match=r"`factors` must be real numbers \(n, k\), with a column"):
        downstream_circular(some, some, {2: 360.0})
    with pytest.raises(UnweaveError, match="got an array of type <U32"):
        downstream_circular(some, some.astype(str), {0: 360.0})
    with pytest.raises(UnweaveError, match=r"codes must be .* n = 30 rows like factors"):
        downstream_circular(some[:20], some, {0: 360.0})
    with pytest.raises(UnweaveError, match="Holding out the last third needs at least 3 rows; got 2"):
        downstream_circular(some.reshape(2, -1), some.reshape(2, -1), {0: 360.0})
    with pytest.raises(UnweaveError, match="factors must be finite"):  # infinite is not missing
        downstream_circular(some, np.where(some > 180, np.inf, some), {0: 360.0})
    with pytest.raises(UnweaveError, match="codes must be finite"):
        downstream_circular(np.where(some > 180, np.nan, some), some, {0: 360.0})
    with pytest.raises(UnweaveError, match="`test` must be a pair"):
        downstream_circular(some, some, {0: 360.0}, test=some)  # type: ignore[arg-type]
    with pytest.raises(UnweaveError, match="`model` must be one of linear, kernel, mlp"):
        downstream_circular(some, some, {0: 360.0}, model="forest")  # type: ignore[arg-type]


def test_test_angles_that_are_whole_turns_apart_are_constant() -> None:
    """Their cosines differ by rounding only, so there is nothing to explain."""
    turned = (circle(ANGLES[:50, 0]), 77.7 + 360.0 * np.arange(50)[:, None])
    score = downstream_circular(circle(ANGLES[:, 0]), ANGLES[:, :1], {0: 360.0}, test=turned, model="linear")
    assert score.score == 0
