"""DCI-ES: curves drawn by hand, probes fitted in another way, straight and curved codes, awkward ones."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from metrics.grids import awkward_codes, drawn, grid, noise
from unweave.errors import UnweaveError
from unweave.metrics import dci_es, metric_named
from unweave.metrics.dci_es import CAPACITIES, FEATURES, area, explicitness_of_curves
from unweave.metrics.examples import SIZES
from unweave.streams import Stream


def wrapped(factors: NDArray[np.int64], sizes: tuple[int, ...]) -> NDArray[np.float64]:
    """Sine and cosine of each factor as an angle: all is there, but along a circle."""
    angles = 2 * np.pi * factors / np.array(sizes)
    return np.hstack([np.cos(angles), np.sin(angles)])


# Losses, capacities, area above the best loss, explicitness.
CURVES = [
    pytest.param([0.3, 0.3, 0.3], [0, 1, 2], 0.0, 1.0, id="flat"),
    pytest.param([1.0, 0.5, 0.0], [0, 1, 2], 1.0, 0.0, id="even fall from the mean to nothing"),
    pytest.param([1.0, 1.0, 1.0, 0.0], [0, 1, 2, 3], 2.5, 1 - 2.5 / 1.5, id="the last probe learns all"),
    pytest.param([0.8, 0.2, 0.5], [0, 1, 2], 0.3, 0.7, id="worse after the best"),
    pytest.param([0.6, 0.9, 0.2], [0, 1, 2], 0.6, 0.4, id="worse before the best"),
    pytest.param([1.0, 0.2, 0.2], [0, 1, 4], 0.4, 0.8, id="early fall on uneven steps"),
    pytest.param([1.0, 0.2, 0.2], [0, 3, 4], 1.2, 0.4, id="late fall on uneven steps"),
]


@pytest.mark.parametrize(("losses", "capacities", "size", "explicitness"), CURVES)
def test_curves_by_hand(
    losses: list[float], capacities: list[float], size: float, explicitness: float
) -> None:
    curve, steps = np.array(losses)[:, None], np.array(capacities, np.float64)
    assert area(curve, steps) == pytest.approx([size], abs=1e-12)
    assert explicitness_of_curves(curve, steps) == pytest.approx([explicitness], abs=1e-12)


@given(st.lists(st.tuples(*[st.floats(0, 1)] * 2), min_size=2, max_size=9))
@settings(deadline=None, max_examples=50)
def test_explicitness_lies_between_its_ends(rows: list[tuple[float, float]]) -> None:
    losses, capacities = np.array(rows), np.arange(len(rows), dtype=np.float64)
    scores = explicitness_of_curves(losses, capacities)
    assert scores.shape == (2,)
    assert (scores >= -1).all()
    assert (scores <= 1).all()
    # Losses after the best one change nothing: the curve is cut there.
    longer = np.vstack([losses, losses.max(axis=0)])
    assert area(longer, np.arange(len(rows) + 1.0)) == pytest.approx(area(losses, capacities))


def test_capacities_are_doublings() -> None:
    assert CAPACITIES.tolist() == [3, 4, 5, 6, 7, 8, 9, 10]
    assert FEATURES[0] == 0


def test_losses_are_those_of_ridge_regressions() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    factors, test_factors = drawn([3, 5], 400), drawn([3, 5], 250, seed=1)
    codes, test_codes = (
        np.hstack([wrapped(some, (3, 5)), some.sum(axis=1, keepdims=True)]) * [1, 30, 0.1, 1, 2] + 5
        for some in (factors, test_factors)
    )
    frequencies = 2 * np.pi * 0.08 * Stream.of(4).child("dci_es").normal(512, 5)

    def features(z: NDArray[np.float64], count: int) -> NDArray[np.float64]:
        standard = (z - codes.mean(axis=0)) / codes.std(axis=0)
        waves = [wave(standard @ w) for w in frequencies[: count // 2] for wave in (np.cos, np.sin)]
        return np.column_stack([standard, *(np.sqrt(2) * wave for wave in waves)])

    expected = np.empty((8, 2))
    for row, count in enumerate([0, 16, 32, 64, 128, 256, 512, 1024]):
        model = linear_model.Ridge(alpha=0.001 * len(codes)).fit(features(codes, count), factors)
        error = ((model.predict(features(test_codes, count)) - test_factors) ** 2).mean(axis=0)
        of_mean = ((factors.mean(axis=0) - test_factors) ** 2).mean(axis=0)
        expected[row] = np.minimum(error / of_mean, 1)
    score = dci_es(codes, factors, test=(test_codes, test_factors), seed=4)
    np.testing.assert_allclose(score.losses, expected, atol=1e-9)
    assert score.factor_explicitness == pytest.approx(explicitness_of_curves(expected, np.arange(8.0)))
    assert score.explicitness == pytest.approx(score.factor_explicitness.mean())


def test_more_points_than_a_block_are_all_used() -> None:
    factors = drawn([3, 4], 10_000)
    codes = wrapped(factors, (3, 4))
    twice = dci_es(np.tile(codes, (2, 1)), np.tile(factors, (2, 1)), test=(codes, factors))
    once = dci_es(codes, factors, test=(np.tile(codes, (2, 1)), np.tile(factors, (2, 1))))
    np.testing.assert_allclose(twice.losses, once.losses, atol=1e-9)


def test_linear_codes_are_explicit() -> None:
    factors, test_factors = drawn(SIZES, 3000), drawn(SIZES, 1000, seed=1)
    mixing = Stream.of(2).normal(5, 10)
    score = dci_es(factors @ mixing, factors, test=(test_factors @ mixing, test_factors))
    assert score.explicitness > 0.99
    assert score.losses[0].max() < 0.01
    assert score.size == 0.5


def test_noisy_linear_codes_are_explicit_as_well() -> None:
    factors = drawn([6, 10], 3000)
    score = dci_es(factors + 2.0 * noise(3000, 2), factors)
    assert score.losses[0].min() > 0.2
    assert score.explicitness > 0.95


def test_curved_codes_are_less_explicit() -> None:
    factors, test_factors = drawn(SIZES, 10_000), drawn(SIZES, 5000, seed=1)
    score = dci_es(wrapped(factors, SIZES), factors, test=(wrapped(test_factors, SIZES), test_factors))
    # The number that the record of the metric speaks of.
    assert score.explicitness == pytest.approx(0.77, abs=0.02)
    assert any("0.77" in flaw for flaw in metric_named("dci_es").flaws)
    # Of three points on a circle each number is linear; of more it is not.
    assert score.factor_explicitness[0] == pytest.approx(1, abs=1e-3)
    assert score.factor_explicitness[1:].max() < 0.8
    assert (score.losses[-1, 1:] < 0.5 * score.losses[0, 1:]).all()


def test_a_product_needs_more_than_a_line() -> None:
    signs = drawn([2, 2], 2000)
    score = dci_es(signs, (signs[:, :1] ^ signs[:, 1:]))
    assert score.losses[0, 0] > 0.99
    assert score.losses[-1, 0] < 0.01
    assert score.explicitness < 0.9


def test_what_cannot_be_learned_is_flat() -> None:
    score = dci_es(noise(3000, 4), drawn([3, 5, 8], 3000))
    assert score.losses.min() > 0.99
    assert score.losses.max() == 1
    assert score.explicitness == pytest.approx(1, abs=0.01)
    assert score.size == 3 / 4


def test_dead_codes_change_only_the_size() -> None:
    factors = drawn([4, 6], 900)
    codes = wrapped(factors, (4, 6))
    dead = np.full((900, 1), 3.7)
    score, more = dci_es(codes, factors), dci_es(np.hstack([dead, codes, 0 * dead]), factors)
    np.testing.assert_allclose(score.losses, more.losses, atol=1e-9)
    assert (score.size, more.size) == (2 / 4, 2 / 6)
    all_dead = dci_es(np.hstack([dead, dead]), factors)
    assert all_dead.explicitness == 1
    assert all_dead.losses == pytest.approx(1, abs=1e-12)


def test_copies_stay_linear() -> None:
    factors = drawn([4, 6], 900)
    score = dci_es(np.hstack([factors, factors, -factors]), factors)
    assert score.explicitness == pytest.approx(1, abs=1e-3)
    assert score.size == 1 / 3


def test_scale_and_place_do_not_matter() -> None:
    factors = drawn([4, 6], 900)
    codes = wrapped(factors, (4, 6))
    score = dci_es(codes, factors)
    for scale in (1e-300, -3.0, 1e300):
        changed = dci_es(codes * [abs(scale), 1, 2, 0.1] + [0, 100, 0, 0], factors)
        np.testing.assert_allclose(changed.losses, score.losses, atol=1e-9)


def test_awkward_codes_get_scores() -> None:
    order = Stream.of(1).permutations(1, 120)[0]
    for name, codes in awkward_codes().items():
        score = dci_es(codes[order], grid(3, 4, repeats=10)[order])
        assert score.losses.shape == (8, 2)
        assert ((score.losses >= 0) & (score.losses <= 1)).all(), name
        assert -1 <= score.explicitness <= 1, name
        assert score.size == 2 / codes.shape[1], name


def test_test_codes_beyond_all_measure_count_as_the_mean() -> None:
    factors = drawn([4, 6], 300)
    score = dci_es(factors * 1e-300, factors, test=(factors * 1e300, factors))
    assert (score.losses == 1).all()
    assert score.explicitness == 1


def test_a_test_factor_that_always_is_the_mean_leaves_nothing_to_learn() -> None:
    factors = np.tile([[0], [1], [2]], (50, 1))
    score = dci_es(factors, factors, test=(factors, np.ones_like(factors)))
    assert (score.losses == 1).all()
    assert score.explicitness == 1


def test_the_seed_draws_the_frequencies() -> None:
    factors = drawn([4, 6], 900)
    codes = wrapped(factors, (4, 6))
    scores = [dci_es(codes, factors, seed=seed) for seed in (0, 0, 1)]
    assert (scores[0].losses == scores[1].losses).all()
    assert (scores[0].losses[0] == scores[2].losses[0]).all()  # the linear probe has none
    assert (scores[0].losses[1:] != scores[2].losses[1:]).all()
    assert scores[0].explicitness == pytest.approx(scores[2].explicitness, abs=0.05)


def test_without_test_data_the_last_third_is_held_out() -> None:
    factors = drawn([4, 6], 300)
    codes = factors + noise(300, 2)
    split = dci_es(codes[:200], factors[:200], test=(codes[200:], factors[200:]))
    assert (dci_es(codes, factors).losses == split.losses).all()


@pytest.mark.parametrize(
    ("codes", "factors", "sentence"),
    [
        (noise(20, 3).T, drawn([2], 20), "transpose"),
        (noise(20, 3), np.zeros((20, 1)), "at least two values"),
        (np.full((20, 3), np.nan), drawn([2], 20), "must be finite; 60 of 60"),
    ],
)
def test_bad_input_is_refused(codes: Any, factors: Any, sentence: str) -> None:
    with pytest.raises(UnweaveError, match=sentence):
        dci_es(codes, factors)
