"""Factor grids: numbering, draws, and what is refused."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.errors import UnweaveError
from unweave.streams import Stream

CARD = Card("test", "none", "@misc{test}")
SIZES = st.lists(st.integers(1, 7), min_size=1, max_size=5)


def grid(*sizes: int, stochastic: bool = False) -> GroundTruth:
    def render(factors: Factors, stream: Stream) -> Images:
        images = np.zeros((len(factors), 1, 2, 8), np.uint8)
        images[:, 0, 0, : len(sizes)] = factors
        if stochastic:
            images[:, 0, 1] = stream.bytes(len(factors), 8)
        return images

    factors = tuple(Factor(f"f{j}", size) for j, size in enumerate(sizes))
    return GroundTruth("test", factors, (1, 2, 8), render, CARD, "made up", stochastic)


def test_index_is_mixed_radix_with_the_last_factor_fastest() -> None:
    truth = grid(3, 4, 2)
    rows = list(itertools.product(range(3), range(4), range(2)))
    np.testing.assert_array_equal(truth.index(rows), np.arange(24))
    assert truth.index([[2, 1, 0]]).tolist() == [2 * 8 + 1 * 2 + 0]
    assert len(truth) == 24


@given(sizes=SIZES, data=st.data())
@settings(deadline=None)
def test_index_and_factors_at_are_inverse(sizes: list[int], data: st.DataObject) -> None:
    truth = grid(*sizes)
    index = data.draw(st.lists(st.integers(0, len(truth) - 1), max_size=20))
    factors = truth.factors_at(np.array(index, np.int64))
    assert factors.shape == (len(index), len(sizes))
    assert truth.index(factors).tolist() == index


@given(sizes=SIZES, n=st.integers(0, 50), more=st.integers(0, 50), seed=st.integers(0, 1000))
@settings(deadline=None)
def test_fewer_draws_are_the_first_of_more(sizes: list[int], n: int, more: int, seed: int) -> None:
    truth = grid(*sizes)
    draws = truth.sample_factors(n + more, seed)
    assert (draws >= 0).all()
    assert (draws < truth.sizes).all()
    np.testing.assert_array_equal(truth.sample_factors(n, seed), draws[:n])
    np.testing.assert_array_equal(truth.sample_factors(more, Stream.of(seed).skip(n)), draws[n:])


def test_draws_are_uniform_and_independent() -> None:
    truth = grid(3, 4)
    counts = np.bincount(truth.index(truth.sample_factors(120_000, 0)), minlength=12)
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 11 + 5 * math.sqrt(22)


def test_fixed_factors_stay_fixed_and_the_others_do_not_notice() -> None:
    truth = grid(3, 4, 5)
    free, held = truth.sample_factors(1000, 0), truth.sample_factors(1000, 0, fixed={"f1": 2})
    assert set(held[:, 1]) == {2}
    np.testing.assert_array_equal(held[:, [0, 2]], free[:, [0, 2]])


@given(sizes=SIZES, size=st.integers(1, 5), data=st.data())
@settings(deadline=None)
def test_groups_share_what_they_should(sizes: list[int], size: int, data: st.DataObject) -> None:
    truth = grid(*sizes)
    mask = np.array(data.draw(st.lists(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)),
                                       min_size=8, max_size=8)))  # fmt: skip
    groups = truth.sample_groups(8, size, 3, mask)
    assert groups.shape == (8, size, len(sizes))
    spread = groups.max(axis=1) - groups.min(axis=1)
    assert not spread[mask].any()
    np.testing.assert_array_equal(truth.sample_groups(8, size + 2, 3, mask)[:, :size], groups)


def test_what_is_not_shared_varies_uniformly() -> None:
    truth = grid(4, 6)
    groups = truth.sample_groups(20_000, 2, 0, ["f0"])
    same = (groups[:, 0] == groups[:, 1]).mean(axis=0)
    assert same[0] == 1
    assert same[1] == pytest.approx(1 / 6, abs=4 * math.sqrt(5 / 36 / 20_000))


def test_a_weight_shapes_the_draws() -> None:
    base = grid(3, 3)
    table = np.array([[0, 0.2, 0.4], [0.6, 0.8, 1.0], [0.1, 0.3, 0.5]])
    truth = GroundTruth(
        "weighted", base.factors, base.shape, base.render, CARD, "", weight=lambda f: table[f[:, 0], f[:, 1]]
    )
    draws = truth.sample_factors(50_000, 0)
    np.testing.assert_array_equal(truth.sample_factors(77, 0), draws[:77])
    frequency = np.bincount(base.index(draws), minlength=9) / 50_000
    np.testing.assert_allclose(frequency, (table / table.sum()).ravel(), atol=0.01)
    fixed = truth.sample_factors(50_000, 1, fixed={"f0": 1})
    np.testing.assert_allclose(np.bincount(fixed[:, 1]) / 50_000, table[1] / table[1].sum(), atol=0.01)
    groups = truth.sample_groups(20_000, 3, 2, ["f1"])
    for member in range(3):
        rows = groups[groups[:, 0, 1] == 2, member, 0]
        np.testing.assert_allclose(np.bincount(rows) / len(rows), table[:, 2] / table[:, 2].sum(), atol=0.02)


def test_a_weight_that_allows_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unweave.data.grid.MOST_ATTEMPTS", 5)
    base = grid(3)
    truth = GroundTruth(
        "none", base.factors, base.shape, base.render, CARD, "", weight=lambda f: np.zeros(len(f))
    )
    with pytest.raises(UnweaveError, match="none: 4 of 4 draws found no allowed combination"):
        truth.sample_factors(4, 0)


def test_stochastic_images_do_not_depend_on_batches() -> None:
    truth = grid(5, 3, stochastic=True)
    factors, stream = truth.sample_factors(30, 0), Stream.of(9)
    whole = truth.observe(factors, stream)
    np.testing.assert_array_equal(truth.observe(factors[:7], stream), whole[:7])
    np.testing.assert_array_equal(truth.observe(factors[7:], stream.skip(7)), whole[7:])
    np.testing.assert_array_equal(truth.observe(factors, 9), whole)
    assert (truth.observe(factors, 10) != whole).any()


def test_sampled_images_are_those_of_sampled_factors_and_do_not_depend_on_batches() -> None:
    ground_truth, stream = grid(3, 4, stochastic=True), Stream.of(7)
    images = ground_truth.sample_images(9, stream)
    np.testing.assert_array_equal(
        images, ground_truth.observe(ground_truth.sample_factors(9, stream), stream)
    )
    np.testing.assert_array_equal(images[4:], ground_truth.sample_images(5, stream.skip(4)))


def test_a_stochastic_ground_truth_asks_for_a_seed() -> None:
    with pytest.raises(UnweaveError, match="draws at random for each image, so observe needs a seed"):
        grid(3, stochastic=True).observe([[0]])


REFUSED = [
    ([[3, 0]], r'factor "f0" of test must lie in 0 .. 2 \(3 values\); got 3'),
    ([[0, -1]], r'factor "f1" of test must lie in 0 .. 3 \(4 values\); got -1'),
    ([0, 1], r"factors of test must be \(n, 2\), one column for each of f0, f1; got \(2,\)"),
    ([[0] * 9, [0] * 9], r"got \(2, 9\). Did you transpose them\?"),
    ([[0.5, 1]], "factors must be whole numbers; 1 of 2 are not, the first is 0.5"),
    ([[np.nan, 1]], "factors must be whole numbers; 1 of 2 are not, the first is nan"),
    ([["a", "b"]], "factors must be whole numbers; got"),
]


@pytest.mark.parametrize(("factors", "message"), REFUSED)
def test_bad_factors_are_refused(factors: list[list[float]], message: str) -> None:
    truth = grid(3, 4)
    for use in (truth.observe, truth.index):
        with pytest.raises(UnweaveError, match=message):
            use(factors)


def test_whole_floats_and_small_integers_are_taken() -> None:
    truth = grid(3, 4)
    for dtype in (np.float32, np.uint8, np.int16):
        assert truth.index(np.array([[1, 2]], dtype)).tolist() == [6]


@pytest.mark.parametrize("index", [[12], [-1]])
def test_an_index_outside_the_grid_is_refused(index: list[int]) -> None:
    with pytest.raises(UnweaveError, match=r"index of test must lie in 0 .. 11 \(12 images\); got"):
        grid(3, 4).factors_at(index)


def test_other_bad_input_is_refused() -> None:
    truth = grid(3, 4)
    with pytest.raises(UnweaveError, match=r'test has no factor "f3"\. Known: f0, f1'):
        truth.sample_factors(1, 0, fixed={"f3": 0})
    with pytest.raises(UnweaveError, match=r'fixed factor "f1" must lie in 0 \.\. 3'):
        truth.sample_factors(1, 0, fixed={"f1": 4})
    with pytest.raises(UnweaveError, match="0 or more; got -1"):
        truth.sample_factors(-1, 0)
    with pytest.raises(UnweaveError, match="at least one member"):
        truth.sample_groups(1, 0, 0, ["f0"])
    with pytest.raises(UnweaveError, match="list of names or a boolean mask"):
        truth.sample_groups(1, 2, 0, [0, 1])
    with pytest.raises(UnweaveError, match="at least one value; got size 0"):
        Factor("empty", 0)
    with pytest.raises(UnweaveError, match="has 2 values but 1 labels"):
        Factor("odd", 2, "categorical", ("one",))
