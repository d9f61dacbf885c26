"""A representation answers with the codes of the factors that were asked for, whoever asks and when."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from metrics.grids import drawn, grid, noise
from unweave.errors import UnweaveError
from unweave.metrics import beta_vae_score, factor_vae_score
from unweave.metrics.representation import Representation, check_count, parts
from unweave.streams import Stream

SIZES = (2, 3, 4)
GRID = np.stack(np.meshgrid(*map(np.arange, SIZES), indexing="ij"), axis=-1).reshape(-1, 3)


def noisy(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
    return factors + stream.normal(len(factors), 3)


def test_a_table_is_looked_up_with_the_last_factor_fastest() -> None:
    table = Representation.from_table(np.arange(24.0)[:, None], SIZES)
    assert table.codes(np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 2, 3]]), 0)[:, 0].tolist() == [
        0,
        1,
        4,
        23,
    ]
    np.testing.assert_array_equal(table.codes(GRID, 0)[:, 0], np.arange(24))


def test_a_table_of_codes_is_the_function_it_was_made_from() -> None:
    line = Representation(lambda factors, _: factors @ np.array([[1.0, 0], [2, 1], [0, 5]]), SIZES)
    table = Representation.from_table(line.codes(GRID, 0).astype(np.float32), SIZES)
    for one, other in zip(line.draw(100, 7), table.draw(100, 7), strict=True):
        np.testing.assert_array_equal(one, other)


@given(first=st.integers(0, 40), n=st.integers(1, 10))
@settings(deadline=None, max_examples=20)
def test_draws_are_addressed_by_row(first: int, n: int) -> None:
    representation, stream = Representation(noisy, SIZES), Stream.of(3)
    whole, part = representation.draw(50, stream), representation.draw(n, stream.skip(first))
    for one, other in zip(whole, part, strict=True):
        np.testing.assert_array_equal(one[first : first + n], other)


def test_draws_are_uniform() -> None:
    factors = Representation(noisy, SIZES).draw(24_000, 0)[1]
    counts = np.bincount(np.ravel_multi_index(tuple(factors.T), SIZES), minlength=24)
    assert (np.abs(counts - 1000) < 150).all()  # five standard deviations


def test_codes_of_any_real_type_become_float64() -> None:
    half = Representation(lambda factors, _: factors.astype(np.float16), SIZES)
    assert half.codes(GRID, 0).dtype == np.float64


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.zeros((3, 24)), r"n = 24 rows, one for each row of factors; encode gave \(3, 24\)"),
        (np.zeros(24), r"encode gave \(24,\)"),
        (np.zeros((24, 0)), r"encode gave \(24, 0\)"),
        (np.zeros((24, 2), complex), "real numbers; encode gave complex128"),
        (np.where(GRID == 3, np.nan, 0.0), "6 of 72 are NaN or infinite, the first in row 3, column 2"),
    ],
)
def test_bad_codes_are_refused(codes: NDArray[np.float64], message: str) -> None:
    with pytest.raises(UnweaveError, match=message):
        Representation(lambda *_: codes, SIZES).codes(GRID, 0)


def test_a_table_of_another_size_is_refused() -> None:
    with pytest.raises(
        UnweaveError, match=r"each of the 24 combinations of factors \(2, 3, 4\); got \(23, 1\)"
    ):
        Representation.from_table(np.zeros((23, 1)), SIZES)
    with pytest.raises(UnweaveError, match="1 of 24 are NaN"):
        Representation.from_table(np.where(np.arange(24) == 5, np.nan, 0)[:, None], SIZES)


@pytest.mark.parametrize("sizes", [(), (0,), (2.5, 3)])
def test_bad_sizes_are_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(UnweaveError, match="sizes must give the number of values"):
        Representation(noisy, sizes)


@pytest.mark.parametrize("count", [0, -1, 2.0, True])
def test_bad_counts_are_refused(count: int) -> None:
    with pytest.raises(UnweaveError, match="train must be a whole number, 1 or more; got"):
        check_count("train", count)


@given(points=st.integers(1, 10**6), batch=st.integers(1, 10**6))
@settings(deadline=None, max_examples=50)
def test_parts_cover_all_points_once(points: int, batch: int) -> None:
    after = 0
    for first, count in list(parts(points, batch))[:100]:
        assert first == after
        assert count >= 1
        after = first + count
    assert after == min(points, 100 * max(1, (1 << 18) // batch))


def test_rows_stand_in_for_chosen_points() -> None:
    """Of a full grid whose rows all are known, matching rows give the scores that look-ups give."""
    factors = grid(5, 6, repeats=40)
    codes = factors + 0.3 * noise(len(factors), 2)
    rows = Representation.from_rows(codes, factors + 7)  # values are numbered in their order
    assert rows.sizes == (5, 6)
    values, held = np.array([4, 0, 3]), np.array([0, 1, 1])
    asked = np.array([[4, 9], [9, 0], [9, 3]])
    for seed in range(20):
        found = rows.codes(asked, seed, held)
        matches = [factors[(codes == row).all(axis=1)][0] for row in found]
        assert [match[j] for match, j in zip(matches, held, strict=True)] == list(values)
    table = Representation(lambda f, stream: f + 0.3 * stream.normal(len(f), 2), (5, 6))
    by_rows = factor_vae_score(rows, train=600, test=600, seed=1)
    by_table = factor_vae_score(table, train=600, test=600)
    assert by_rows.eval_accuracy == pytest.approx(by_table.eval_accuracy, abs=0.03)
    assert beta_vae_score(rows, train=200, test=200).eval_accuracy > 0.95


def test_noise_in_rows_scores_chance() -> None:
    """Neither a row paired with itself nor a row seen in training tells which factor is held fixed."""
    scores = []
    for seed in range(6):
        factors = drawn((4, 24, 183), 1000, seed)
        rows = Representation.from_rows(noise(1000, 10, seed), factors)
        beta = beta_vae_score(rows, train=1000, test=500).eval_accuracy
        scores.append([beta, factor_vae_score(rows, train=1000, test=500).eval_accuracy])
    assert np.abs(np.mean(scores, axis=0) - 1 / 3).max() < 0.06


def test_a_pair_is_two_different_rows() -> None:
    factors = np.array([[0], [0], [1], [1], [1], [7], [5], [5]])
    rows = Representation.from_rows(np.arange(8.0)[:, None], factors)
    assert rows.sizes == (3,)  # the value 7 occurs once, so it cannot be held fixed
    values = Stream.of(0).integers(400, rows.sizes)
    one, other = rows.pairs(values, values, Stream.of(1), np.zeros(400, np.int64))
    pairs = {(int(a), int(b)) for a, b in zip(one[:, 0], other[:, 0], strict=True)}
    assert pairs == {(a, b) for a in range(8) for b in range(8) if a != b and factors[a] == factors[b]}


def test_training_and_test_points_come_from_different_rows() -> None:
    factors = grid(3, 4, repeats=20)
    rows = Representation.from_rows(np.arange(len(factors))[:, None], factors)
    fit, test = (part.rows for part in rows.separated(Stream.of(0)))
    assert fit is not None
    assert test is not None
    assert sorted([*fit.codes[:, 0], *test.codes[:, 0]]) == list(range(len(factors)))
    few = Representation.from_rows([[0.0], [1.0], [2.0], [3.0]], [[0], [0], [1], [1]])
    assert few.separated(Stream.of(0)) == (few, few)
    table = Representation.from_table(np.arange(6.0)[:, None], (2, 3))
    assert table.separated(Stream.of(0)) == (table, table)


def test_rows_that_share_nothing_are_refused() -> None:
    factors = np.stack([np.arange(30), np.arange(30) % 2], axis=1)
    with pytest.raises(UnweaveError, match="hold factor 0 fixed, at least half of the rows must share"):
        Representation.from_rows(factors, factors)
    known = Representation.from_rows(factors[:, 1:], factors[:, 1:])
    with pytest.raises(UnweaveError, match="known for some points only"):
        known.codes(factors[:, 1:], 0)
