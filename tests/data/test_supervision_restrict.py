"""Correlated factors and held-out combinations against exact distributions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from training.tiny import TINY
from unweave.data.grid import Card, Factor, GroundTruth
from unweave.data.supervision import correlate, groups, hold_out, labelled, only, pairs, sequences
from unweave.data.supervision.restrict import Combination
from unweave.errors import UnweaveError


def grid(*sizes: int) -> GroundTruth:
    return GroundTruth(
        name="toy",
        factors=tuple(Factor(name, size) for name, size in zip(("shape", "x", "y"), sizes, strict=False)),
        shape=(1, 2, 2),
        render=lambda factors, _stream: np.zeros((len(factors), 1, 2, 2), np.uint8),
        card=Card("Toy", "none", "none"),
        source="made by hand",
    )


def test_correlated_factors_follow_the_formula() -> None:
    truth = correlate(grid(3, 5, 2), "shape", "x", sigma=0.4)
    expected = np.empty((3, 5, 2))
    for i, j, k in np.ndindex(3, 5, 2):
        expected[i, j, k] = math.exp(-((i / 2 - j / 4) ** 2) / (2 * 0.4**2))
    counts = np.bincount(truth.index(truth.sample_factors(20_000, 0)), minlength=30)
    assert chisquare(counts, (20_000 * expected / expected.sum()).ravel()).pvalue > 1e-3


def test_inverse_correlation_is_the_mirror_image() -> None:
    every = grid(3, 5, 2).factors_at(np.arange(30))
    mirrored = every.copy()
    mirrored[:, 1] = 4 - every[:, 1]
    plain, inverse = (
        correlate(grid(3, 5, 2), "shape", "x", 0.3, inverse=flag).weight for flag in (False, True)
    )
    assert plain is not None
    assert inverse is not None
    np.testing.assert_allclose(inverse(every), plain(mirrored), rtol=1e-12)
    drawn = correlate(grid(2, 9, 9), "x", "y", 0.2, inverse=True).sample_factors(2000, 0)
    assert np.corrcoef(drawn[:, 1], drawn[:, 2])[0, 1] < -0.7


def test_a_small_sigma_is_a_strong_correlation() -> None:
    def correlation(sigma: float) -> float:
        drawn = correlate(grid(2, 16, 16), "x", "y", sigma).sample_factors(4000, 0)
        return float(np.corrcoef(drawn[:, 1], drawn[:, 2])[0, 1])

    assert correlation(0.05) > 0.95
    assert 0.95 > correlation(0.2) > correlation(0.4) > correlation(0.7) > 0
    assert abs(correlation(math.inf)) < 0.05


VALUES = st.one_of(st.integers(0, 1), st.lists(st.integers(0, 1), min_size=1), st.just(range(1, 2)))
COMBINATIONS = st.lists(
    st.dictionaries(st.sampled_from(["shape", "x", "y"]), VALUES, min_size=1), min_size=1, max_size=3
)


def held(combinations: list[Combination], point: dict[str, int]) -> bool:
    return any(
        all(
            point[name] in ([values] if isinstance(values, int) else list(values))
            for name, values in c.items()
        )
        for c in combinations
    )


@settings(deadline=None, max_examples=50)
@given(COMBINATIONS)
def test_hold_out_and_only_part_the_grid(combinations: list[Combination]) -> None:
    truth = grid(2, 3, 2)
    every = truth.factors_at(np.arange(12))
    inside = np.array(
        [held(combinations, dict(zip(("shape", "x", "y"), row, strict=True))) for row in every.tolist()]
    )
    test = only(truth, combinations)
    assert test.weight is not None
    assert np.array_equal(test.weight(every), inside)
    if inside.all():
        with pytest.raises(UnweaveError, match="no combination of factors is left to draw"):
            hold_out(truth, combinations)
        return
    train = hold_out(truth, combinations)
    assert train.weight is not None
    assert np.array_equal(train.weight(every), ~inside)


def test_every_kind_of_draw_keeps_to_the_rule() -> None:
    rule: list[Combination] = [{"shape": 2, "x": range(4, 8)}, {"shape": 0, "y": [0, 2]}]
    for restricted in (hold_out(grid(3, 8, 3), rule), only(grid(3, 8, 3), rule)):
        weight = restricted.weight
        assert weight is not None
        both = pairs(restricted, 300, 0, "random")
        drawn = [
            labelled(restricted, 300, 0).factors,
            groups(restricted, 300, 2, ["shape"], 0).factors,
            both.first,
            both.second,
            sequences(restricted, 300, 3, ["shape"], 0),
        ]
        for factors in drawn:
            assert (weight(factors.reshape(-1, 3)) == 1).all()


def test_restrictions_multiply_and_are_written_down() -> None:
    first = correlate(grid(3, 8, 3), "x", "y", 0.2, inverse=True)
    both = hold_out(first, [{"shape": 2, "x": range(4, 8)}, {"y": [2, 0]}])
    assert both.name == "toy_correlated_held_out"
    assert both.drawn == (
        "uniformly; x and y correlated inversely, sigma 0.2; without shape 2 & x 4-7 or y 0,2"
    )
    assert only(grid(3, 8), [{"x": [1, 2, 3, 5]}]).drawn == "uniformly; only x 1-3,5"
    every = both.factors_at(np.arange(len(both)))
    assert first.weight is not None
    assert both.weight is not None
    out = ((every[:, 0] == 2) & (every[:, 1] >= 4)) | (every[:, 2] != 1)
    assert np.array_equal(both.weight(every), np.where(out, 0.0, first.weight(every)))
    assert (both.observe(every[:2]) == 0).all()  # held-out combinations can still be looked at


def test_rules_that_leave_nothing_together() -> None:
    with pytest.raises(UnweaveError, match="only shape 0; without shape 0-1"):
        hold_out(only(grid(3, 8), [{"shape": 0}]), [{"shape": [0, 1]}])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t: correlate(t, "shap", "x"), 'toy has no factor "shap". Did you mean "shape"?'),
        (lambda t: correlate(t, "x", "x"), 'two different factors can be correlated; got "x" twice'),
        (lambda t: correlate(t, "shape", "x", sigma=0), "sigma must be greater than 0; got 0"),
        (lambda t: correlate(t, "shape", "x", sigma=math.nan), "sigma must be greater than 0; got nan"),
        (lambda t: correlate(t, "shape", "y"), 'factor "y" has only one value'),
        (lambda t: hold_out(t, []), "must be a list with at least one"),
        (lambda t: hold_out(t, {"shape": 2}), "must be a list with at least one"),  # type: ignore[arg-type]
        (lambda t: hold_out(t, [{}]), "names at least one factor with its values"),
        (lambda t: hold_out(t, ["shape"]), "names at least one factor with its values"),  # type: ignore[list-item]
        (lambda t: only(t, [{"shap": 1}]), 'Did you mean "shape"?'),
        (lambda t: only(t, [{"shape": 3}]), r'values of "shape" must be one or more of 0 .. 2; got 3'),
        (lambda t: only(t, [{"shape": -1}]), "must be one or more of 0 .. 2; got -1"),
        (lambda t: only(t, [{"shape": []}]), r"must be one or more of 0 .. 2; got \[\]"),
        (lambda t: only(t, [{"shape": 0.5}]), 'values of "shape" must be whole numbers'),  # type: ignore[dict-item]
        (lambda t: only(t, [{"shape": "heart"}]), 'values of "shape" must be whole numbers'),  # type: ignore[dict-item]
    ],
)
def test_errors(call: Callable[[GroundTruth], object], text: str) -> None:
    with pytest.raises(UnweaveError, match=text.replace("?", r"\?")):
        call(grid(3, 8, 1))


def test_factors_that_a_restriction_keeps_constant_are_not_chosen() -> None:
    """Of size, x and y two vary, so "random" is m uniform in 1 .. 1 [Locatello et al. 2020], x or y."""
    truth = only(TINY, [{"size": 1}])
    assert truth.varied.tolist() == [False, True, True]
    changed = pairs(truth, 2000, 0, "random").changed
    assert (changed.sum(axis=1) == 1).all()
    assert abs(changed[:, 1].mean() - 0.5) < 0.05
    shared = groups(truth, 2000, 2, 1, 0).shared
    assert not shared[:, 0].any()
    assert abs(shared[:, 1].mean() - 0.5) < 0.05
    with pytest.raises(UnweaveError, match="has 2 factors with more than one value, so 1 to 2 factors can"):
        pairs(truth, 10, 0, 3)
    with pytest.raises(UnweaveError, match='factor "size" has only one value, so it cannot change'):
        pairs(truth, 10, 0, ["size"])
