"""Data from arrays: each image carries the number of its row, so a wrong row cannot pass unseen."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from numpy.typing import NDArray

from unweave.data.cache import grid_table
from unweave.data.grid import Factor, GroundTruth, Images
from unweave.data.own.construct import Collection, Continuous, as_ground_truth, binned, from_arrays
from unweave.errors import UnweaveError
from unweave.streams import Stream


def marked(n: int, channels: int = 1, size: int = 4) -> Images:
    """(n, c, size, size) images whose first two pixels spell their row; channel c adds c to the third."""
    images = np.full((n, channels, size, size), 7, np.uint8)
    images[:, :, 0, 0] = (np.arange(n) % 256)[:, None]
    images[:, :, 0, 1] = (np.arange(n) // 256)[:, None]
    images[:, :, 0, 2] = np.arange(channels)
    return images


def rows_of(images: NDArray[np.uint8]) -> NDArray[np.int64]:
    return images[..., 0, 0, 0].astype(np.int64) + 256 * images[..., 0, 0, 1].astype(np.int64)


def grid_of(*sizes: int) -> NDArray[np.int64]:
    return np.array(list(product(*map(range, sizes))), np.int64)


def ground_truth(images: Any, factors: Any, **options: Any) -> GroundTruth:
    data = from_arrays(images, factors, **options)
    assert isinstance(data, GroundTruth)
    return data


def collection(images: Any, factors: Any = None, **options: Any) -> Collection:
    data = from_arrays(images, factors, **options)
    assert isinstance(data, Collection)
    return data


def test_a_full_grid_in_any_order_is_a_deterministic_ground_truth() -> None:
    factors = grid_of(3, 4, 2)
    order = Stream.of(0).permutations(1, len(factors))[0]
    data = ground_truth(marked(24), factors[order], names=["shape", "x", "lit"])
    assert (data.sizes, data.stochastic, len(data)) == ((3, 4, 2), False, 24)
    assert [factor.name for factor in data.factors] == ["shape", "x", "lit"]
    assert data.factors[1] == Factor("x", 4, "ordinal")
    np.testing.assert_array_equal(rows_of(data.observe(factors[order])), np.arange(24))


def test_words_and_spaced_numbers_are_values_in_sorted_order_with_labels() -> None:
    factors = {"shape": ["disc", "box"] * 3, "angle": [10, 10, -5, -5, 0.5, 0.5]}
    data = ground_truth(marked(6), factors)
    assert data.factors[0] == Factor("shape", 2, "categorical", ("box", "disc"))
    assert data.factors[1] == Factor("angle", 3, "ordinal", ("-5", "0.5", "10"))
    # box (0) at angle 10 (2) is row 1; disc (1) at angle -5 (0) is row 2.
    np.testing.assert_array_equal(rows_of(data.observe([[0, 2], [1, 0]])), [1, 2])


def test_several_rows_of_a_combination_are_drawn_alike_and_by_row_of_the_stream() -> None:
    factors = np.array([[0], [1], [0], [0], [1], [0]])  # value 0: rows 0, 2, 3, 5; value 1: rows 1, 4
    data = ground_truth(marked(6), factors)
    assert data.stochastic
    with pytest.raises(UnweaveError, match="needs a seed"):
        data.observe([[0]])
    wanted = np.repeat([[0], [1]], 4000, axis=0)
    drawn = rows_of(data.observe(wanted, Stream.of(3)))
    frequency = np.bincount(drawn, minlength=6) / 4000
    # Three standard deviations of a frequency of 4,000 draws are 0.021 (p = 1/4) and 0.024 (p = 1/2).
    np.testing.assert_allclose(frequency, [0.25, 0.5, 0.25, 0.25, 0.5, 0.25], atol=0.024)
    np.testing.assert_array_equal(rows_of(data.observe(wanted[2900:], Stream.of(3).skip(2900))), drawn[2900:])


def test_grid_false_keeps_the_rows() -> None:
    data = collection(marked(6), grid_of(2, 3), grid=False)
    np.testing.assert_array_equal(as_ground_truth(data).observe([[1, 1]]), marked(6)[4:5])


@settings(deadline=None, max_examples=30)
@given(
    sizes=st.lists(st.integers(2, 4), min_size=1, max_size=3),
    removed=st.sets(st.integers(0, 63), min_size=1, max_size=5),
    seed=st.integers(0, 99),
)
def test_a_grid_with_holes_is_a_collection_with_its_rows(
    sizes: list[int], removed: set[int], seed: int
) -> None:
    full = grid_of(*sizes)
    kept = [row for row in range(len(full)) if row not in {hole % len(full) for hole in removed}]
    factors = full[kept]
    assume(len(factors))
    observed = [len(set(column)) for column in factors.T]
    data = from_arrays(marked(len(factors)), factors)
    # A hole that takes a value away altogether may leave a smaller full grid.
    assert isinstance(data, GroundTruth) == (np.prod(observed) == len(factors))
    if isinstance(data, Collection):
        index = data.sample_index(20, seed)
        np.testing.assert_array_equal(rows_of(data.images_at(index)), index)
        for j, column in enumerate(factors.T):
            np.testing.assert_array_equal(np.unique(column)[data.values[:, j].astype(int)], column)
        with pytest.raises(UnweaveError, match=f"cover {len(factors)} of the {np.prod(observed)} combin"):
            as_ground_truth(data)


def test_continuous_and_missing_values_make_a_collection() -> None:
    numbers = [0.25, np.nan, 0.5, -1.75, 0.125]
    data = collection(
        marked(5), {"x": numbers, "shape": ["a", None, "b", "", "a"], "lit": [True, False] * 2 + [True]}
    )
    assert data.factors == (
        Continuous("x", -1.75, 0.5),
        Factor("shape", 2, "categorical", ("a", "b")),
        Factor("lit", 2, "categorical", ("False", "True")),
    )
    nan = np.nan
    expected = [[0.25, 0, 1], [nan, nan, 0], [0.5, 1, 1], [-1.75, nan, 0], [0.125, 0, 1]]
    np.testing.assert_array_equal(data.values_at(np.arange(5)), expected)
    np.testing.assert_array_equal(data.complete, [0, 2, 4])
    assert not data.values.flags.writeable


@pytest.mark.parametrize(
    ("column", "kind", "factor"),
    [
        ([0.5, 1.5, 0.5, 1.5], None, Factor("f", 2, "ordinal", ("0.5", "1.5"))),
        ([0.5, 1.5, 2.5, 1.5], None, Continuous("f", 0.5, 2.5)),
        ([3.0, 1.0, 2.0, np.nan], None, Factor("f", 3, "ordinal", ("1", "2", "3"))),
        ([3, 1, 2, 0], "circular", Factor("f", 4, "circular")),
        ([3, 1, 2, 0], "continuous", Continuous("f", 0.0, 3.0)),
        ([0.5, 1.5, 2.5, 1.5], "ordinal", Factor("f", 3, "ordinal", ("0.5", "1.5", "2.5"))),
        (["lo", "hi", "lo", "lo"], "ordinal", Factor("f", 2, "ordinal", ("hi", "lo"))),
        ([7, 7, 7, 7], None, Factor("f", 1, "ordinal", ("7",))),
    ],
)
def test_kinds_of_columns(column: Any, kind: Any, factor: Factor | Continuous) -> None:
    kinds = None if kind is None else {"f": kind}
    table: dict[str, Any] = {"f": column}
    assert from_arrays(marked(4), table, kinds=kinds).factors == (factor,)


@pytest.mark.parametrize("dtype", ["Int64", "float32", "category", "string"])
def test_frames_of_any_dtype_keep_their_gaps(dtype: str) -> None:
    words = dtype in ("category", "string")
    column = pd.Series(["p", None, "q", "p"] if words else [4, None, 9, 4], dtype=dtype)
    data = collection(marked(4), pd.DataFrame({"f": column}).set_index(pd.Index([9, 8, 7, 6])))
    np.testing.assert_array_equal(data.values[:, 0], [0, np.nan, 1, 0])
    assert data.factors == (
        Factor("f", 2, "categorical" if words else "ordinal", ("p", "q") if words else ("4", "9")),
    )


def test_lists_may_mix_words_and_gaps_and_rows_may_mix_words_and_numbers() -> None:
    data = collection(marked(3), {"f": ["b", np.nan, "a"]})
    np.testing.assert_array_equal(data.values[:, 0], [1, np.nan, 0])
    full = ground_truth(marked(4), [["b", 2], ["a", 2], ["b", 5], ["a", 5]])
    assert full.factors == (
        Factor("factor_0", 2, "categorical", ("a", "b")),
        Factor("factor_1", 2, "ordinal", ("2", "5")),
    )
    words = np.array(["b", "a", "b"])
    assert from_arrays(marked(3), words).factors == (Factor("factor_0", 2, "categorical", ("a", "b")),)


def test_names_choose_columns_of_a_table() -> None:
    table = {"row": np.arange(6), "x": [0, 1, 2] * 2, "y": [0, 0, 0, 1, 1, 1]}
    assert isinstance(from_arrays(marked(6), table), Collection)
    assert ground_truth(marked(6), table, names=["y", "x"]).sizes == (2, 3)


def test_images_without_factors_are_a_collection() -> None:
    data = collection(marked(5))
    assert (len(data), data.factors, data.values.shape, data.shape) == (5, (), (5, 0), (1, 4, 4))


@pytest.mark.parametrize("channels", [1, 3])
def test_layouts_and_types_of_images(channels: int) -> None:
    images = marked(6, channels, size=5)
    last = np.moveaxis(images, 1, -1)
    for given_images in (images, last, images / 255, (last / 255).astype(np.float16)):
        got = collection(given_images).images_at(np.arange(6))
        assert got.dtype == np.uint8
        np.testing.assert_array_equal(got, images)
    np.testing.assert_array_equal(collection(images > 6).images_at([4]), 255 * (images[4:5] > 6))
    grey = collection(images[:, 0]).images_at(range(6))
    np.testing.assert_array_equal(grey, images[:, :1])


def test_floats_are_rounded() -> None:
    images = np.zeros((1, 4, 4))
    images[0, 0] = [0.4 / 255, 0.6 / 255, 254.4 / 255, 1]
    np.testing.assert_array_equal(collection(images).images_at(0)[0, 0], [0, 1, 254, 255])


def test_an_index_of_any_shape() -> None:
    data = collection(marked(7), np.linspace(0, 1, 7))
    index = np.array([[6, 0], [3, 3]])
    assert data.images_at(index).shape == (2, 2, 1, 4, 4)
    np.testing.assert_array_equal(rows_of(data.images_at(index)), index)
    np.testing.assert_array_equal(data.values_at(index), np.linspace(0, 1, 7)[index][..., None])
    assert data.images_at([]).shape == (0, 1, 4, 4)
    with pytest.raises(UnweaveError, match=r"0 \.\. 6 \(7 images\); got 7"):
        data.images_at([1, 7])
    with pytest.raises(UnweaveError, match="got -1"):
        data.values_at(-1)


@pytest.mark.parametrize("as_float", [False, True])
def test_a_memory_map_is_read_row_by_row(tmp_path: Path, as_float: bool) -> None:
    images = marked(6) / 255 if as_float else marked(6)
    np.save(tmp_path / "images.npy", images)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    data = collection(mapped)
    assert any(isinstance(cell.cell_contents, np.memmap) for cell in data.look.__closure__)  # type: ignore[union-attr]
    np.testing.assert_array_equal(rows_of(data.images_at([4, 1])), [4, 1])


def test_the_source_tells_images_and_factors_apart(tmp_path: Path) -> None:
    images, factors = marked(6), grid_of(2, 3)
    other = images.copy()
    other[5, 0, 3, 3] ^= 1
    np.save(tmp_path / "twelve.npy", np.concatenate([images, other]))
    mapped = np.load(tmp_path / "twelve.npy", mmap_mode="r")
    sources = [
        from_arrays(given_images, given_factors).source
        for given_images, given_factors in [
            (images, factors),
            (other, factors),
            (images, factors[::-1]),
            (mapped[:6], factors),
            (mapped[6:], factors),
        ]
    ]
    assert len(set(sources)) == len(sources)
    assert from_arrays(images.copy(), factors.copy()).source == sources[0]


def test_grids_can_be_tabled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path))
    order = [3, 1, 0, 2, 5, 4]
    for images in (marked(6), marked(6) > 3):
        data = ground_truth(images, grid_of(2, 3)[order])
        table = grid_table(data)
        if data.binary:
            table = np.unpackbits(table, axis=1).reshape(6, 1, 4, 4) * np.uint8(255)
        np.testing.assert_array_equal(table, data.observe(grid_of(2, 3)))


def test_draws_do_not_depend_on_how_many_there_are() -> None:
    data = collection(marked(50), np.linspace(0, 1, 50))
    index = data.sample_index(1000, 5)
    np.testing.assert_array_equal(data.sample_index(400, 5), index[:400])
    np.testing.assert_array_equal(data.sample_index(600, Stream.of(5).skip(400)), index[400:])
    assert set(index) == set(range(50))


def test_sampled_images_are_those_of_sampled_rows() -> None:
    rows, stream = collection(marked(20)), Stream.of(3)
    np.testing.assert_array_equal(rows_of(rows.sample_images(8, stream)), rows.sample_index(8, stream))
    assert rows.drawn == "uniformly"


def test_groups_share_the_value_and_pairs_are_two_rows() -> None:
    shape = np.array(["a", "b", "a", "c", "b", "a", None, "d", "d", "d"], object)
    data = collection(marked(10), {"shape": shape, "size": np.arange(10)})
    groups = data.sample_groups(3000, 5, 1, "shape")
    assert groups.shape == (3000, 5)
    assert (shape[groups] == shape[groups[:, :1]]).all()
    assert (groups[:, 1:] != groups[:, :-1]).all()
    np.testing.assert_array_equal(np.unique(groups), [0, 1, 2, 4, 5, 7, 8, 9])  # c has one row, row 6 none
    np.testing.assert_array_equal(data.matching("shape"), np.unique(groups))
    for member in range(5):  # each member is uniform over the 8 rows: three deviations are 0.018
        np.testing.assert_allclose(np.bincount(groups[:, member])[np.unique(groups)] / 3000, 1 / 8, atol=0.02)
    np.testing.assert_array_equal(data.sample_groups(3000, 2, 1, "shape"), groups[:, :2])
    np.testing.assert_array_equal(data.sample_groups(100, 5, Stream.of(1).skip(70), "shape"), groups[70:170])


def test_groups_that_share_several_factors() -> None:
    factors = np.concatenate([grid_of(3, 2, 2), grid_of(3, 2, 2)])[:-1]
    data = collection(marked(23), factors, names=["a", "b", "c"], grid=False)
    groups = data.sample_groups(200, 3, 0, ["a", "c"])
    shared = factors[groups][..., [0, 2]]
    assert (shared == shared[:, :1]).all()
    assert (np.ptp(factors[groups][..., 1], axis=1) > 0).any()


def test_least_leaves_out_rare_values() -> None:
    data = collection(marked(9), {"f": [0, 0, 0, 0, 0, 0, 1, 1, 2], "g": np.linspace(0, 1, 9)})
    np.testing.assert_array_equal(data.matching("f"), range(8))
    np.testing.assert_array_equal(data.matching("f", least=3), range(6))
    assert set(data.sample_groups(50, 2, 0, "f", least=3).ravel()) == set(range(6))


def test_too_few_matches_say_how_many_and_what_to_do() -> None:
    data = collection(marked(6), {"x": [0.1, 0.2, 0.3, 0.3, 0.5, np.nan], "id": [0, 1, 2, 3, 4, 4]})
    with pytest.raises(
        UnweaveError, match=r'2 of the 5 rows with a known value of "x".*binned\(collection, "x"\)'
    ):
        data.sample_groups(3, 2, 0, "x")
    with pytest.raises(UnweaveError, match=r'2 of the 6 rows with a known value of "id".*Merge rare values'):
        data.sample_groups(3, 2, 0, "id")
    with pytest.raises(UnweaveError, match=r'no factor "idd"\. Did you mean "id"'):
        data.sample_groups(3, 2, 0, "idd")
    with pytest.raises(UnweaveError, match="at least one factor"):
        data.sample_groups(3, 2, 0, [])
    with pytest.raises(UnweaveError, match="size = 0"):
        data.sample_groups(3, 0, 0, "id")


def test_binned_makes_equal_widths_and_keeps_gaps() -> None:
    x = [0.0, 0.24, 0.25, 0.5, 0.99, 1.0, np.nan]
    data = collection(marked(7), {"x": x, "g": range(7)})
    assert not data.can_share("x")
    small = binned(data, "x", bins=4)
    assert small.factors[0] == Factor(
        "x", 4, "ordinal", ("0 to 0.25", "0.25 to 0.5", "0.5 to 0.75", "0.75 to 1")
    )
    np.testing.assert_array_equal(small.values[:, 0], [0, 0, 1, 2, 3, 3, np.nan])
    np.testing.assert_array_equal(data.values[:, 0], x)
    assert small.can_share("x")
    assert small.source != data.source
    np.testing.assert_array_equal(rows_of(small.images_at([5, 2])), [5, 2])
    with pytest.raises(UnweaveError, match='"g" already has 7 separate values'):
        binned(data, "g")
    with pytest.raises(UnweaveError, match="1 or more; got 0"):
        binned(data, "x", bins=0)
    with pytest.raises(UnweaveError, match="got GroundTruth"):
        binned(ground_truth(marked(2), [0, 1]), "x")  # type: ignore[arg-type]


def test_binned_factors_can_become_a_grid() -> None:
    data = collection(marked(4), {"x": [0.1, 0.4, 0.35, 0.2], "y": [0, 0, 1, 1]})
    full = as_ground_truth(binned(data, "x", bins=2))
    np.testing.assert_array_equal(rows_of(full.observe([[0, 0], [1, 0], [1, 1], [0, 1]])), range(4))


NAN_IMAGES = np.where(np.arange(6)[:, None, None] == 4, np.nan, np.zeros((6, 4, 4)))
ZEROS = np.zeros((6, 4, 4), np.uint8)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((6, 2, 8, 8), np.uint8), r"images must be \(n, h, w\).*got \(6, 2, 8, 8\)"),
        (np.zeros((8, 8, 3), np.uint8), "Is the axis of images missing"),
        (np.zeros((6, 3, 8, 3), np.uint8), r"at least 4; got \(6, 3, 8, 3\)"),
        ([np.zeros((4, 4)), np.zeros((5, 5))], "all of one size; got a ragged list"),
        (np.zeros(6, np.uint8), r"got \(6,\)"),
        (np.zeros((0, 4, 4), np.uint8), "at least one image"),
        (np.zeros((6, 4, 4), np.int64), r"uint8 \(0 to 255\), booleans, or floats.*got int64"),
        (np.ones((6, 4, 4), np.uint8), "these are 0 and 1. Pass images.astype"),
        (NAN_IMAGES, "image 4 has NaN"),
        (np.full((6, 4, 4), 200.0), r"in \[0, 1\]; these reach from 200 to 200"),
        (np.full((6, 4, 4), np.inf), "from inf to inf"),
        (np.array([["a"] * 4] * 4)[None], "floats in"),
    ],
)
def test_bad_images(images: Any, message: str) -> None:
    with pytest.raises(UnweaveError, match=message):
        from_arrays(images)


@pytest.mark.parametrize(
    ("factors", "options", "message"),
    [
        (np.zeros((5, 2)), {}, r"each of the 6 images; got \(5, 2\)\.$"),
        (np.zeros((2, 6)), {}, r"got \(2, 6\)\. Did you transpose them"),
        ([[0], [0, 1], [0], [0], [0], [0]], {}, "same number of columns"),
        ({"x": range(5)}, {}, r'column "x" has shape \(5,\)'),
        ({"x": [0, 1, 2, 3, 4, np.inf]}, {}, 'column "x" of the factors is infinite in row 5'),
        ({"x": [np.nan] * 6}, {}, 'column "x" of the factors has no value in any row'),
        ({"x": [None] * 6}, {}, 'column "x" of the factors has no value in any row'),
        ({"x": np.zeros(6, complex)}, {}, "numbers or words; got complex128"),
        ({"x": np.zeros(6, "datetime64[s]")}, {}, "numbers or words; got datetime64"),
        ({"x": np.array([1, "a"] * 3, object)}, {}, "either numbers or words; it has int and str"),
        ({"x": ["a", "b"] * 3}, {"kinds": {"x": "continuous"}}, 'holds words such as "a"'),
        ({"x": range(6)}, {"kinds": {"xx": "ordinal"}}, 'column "xx".*Did you mean "x"'),
        ({"x": range(6)}, {"kinds": {"x": "ordinall"}}, 'Did you mean "ordinal"'),
        ({"x": range(6)}, {"kinds": ["ordinal"] * 2}, "one for each of x"),
        ({"size": range(6)}, {"names": ["sise"]}, 'no column "sise". Did you mean "size"'),
        (None, {"names": ["x"]}, "There are no factors"),
        (np.zeros((6, 2)), {"names": ["x"]}, "2 columns, so names must be 2 different words"),
        (np.zeros((6, 2)), {"names": ["x", "x"]}, "2 different words"),
        (pd.DataFrame(np.zeros((6, 2)), columns=["x", "x"]), {}, '"x" twice'),
        (None, {"name": "../up"}, 'a name is made of letters.*got "../up"'),
    ],
)
def test_bad_factors(factors: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnweaveError, match=message):
        from_arrays(ZEROS, factors, **options)
