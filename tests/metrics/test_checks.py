"""Bad input is met by one clear sentence."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import unweave
from metrics.grids import drawn, grid, noise
from unweave.errors import UnweaveError
from unweave.metrics import checks, dcimig, irs, med, mig, modularity, sap
from unweave.metrics.checks import (
    check_bins,
    check_codes,
    check_codes_factors,
    in_own_precision,
    scaled,
    split,
)

CODES, FACTORS = noise(60, 3), grid(3, 4, repeats=5)


def with_value(array: np.typing.NDArray[Any], row: int, column: int, value: float) -> np.typing.NDArray[Any]:
    changed = array.astype(np.float64)
    changed[row, column] = value
    return changed


@pytest.mark.parametrize(
    ("codes", "factors", "text"),
    [
        (
            CODES.T,
            FACTORS,
            r"^codes must be \(n, d\) with n = 60 rows like factors; got \(3, 60\)\. Did you tr",
        ),
        (
            CODES,
            FACTORS.T,
            r"^factors must be \(n, k\) with n = 60 rows like codes; got \(2, 60\)\. Did you tr",
        ),
        (CODES.T, FACTORS.T, r"one row a point; got \(3, 60\) and \(2, 60\)\. Did you transpose them"),
        (CODES.T, CODES.T, r"one row a point; got \(3, 60\) and \(3, 60\)\. Did you transpose them"),
        (CODES[:50], FACTORS, r"n = 60 rows like factors; got \(50, 3\)\. Give both for the same points"),
        (
            CODES[:, 0],
            FACTORS,
            r"^codes must be \(n, d\); got \(60,\)\. For one column pass codes\[:, None\]",
        ),
        (CODES, FACTORS[:, 0], r"^factors must be \(n, k\); got \(60,\)"),
        (CODES[:, :0], FACTORS, r"at least 2 rows and 1 column; got \(60, 0\)"),
        (CODES[:1], FACTORS[:1], r"at least 2 rows and 1 column; got \(1, 3\)"),
        (CODES[None], FACTORS, r"got \(1, 60, 3\)"),
        (CODES + 1j, FACTORS, "codes must be real numbers; got an array of type complex128"),
        (CODES, FACTORS.astype(str), "factors must be real numbers; got an array of type <U21"),
        ([[1.0], [2.0, 3.0]], [[0], [1]], "codes must be an array .* rows of different lengths"),
        (
            with_value(CODES, 7, 2, np.nan),
            FACTORS,
            "1 of 180 values are NaN or infinite, the first in row 7, col",
        ),
        (with_value(CODES, 7, 2, -np.inf), FACTORS, "codes must be finite; 1 of 180"),
        (
            CODES,
            with_value(FACTORS, 3, 1, np.nan),
            "factors must be finite; 1 of 120 values .* row 3, column 1",
        ),
        (CODES, with_value(FACTORS, 3, 1, 0.5), "whole numbers; factor 1 is 0.5 in row 3"),
        (CODES, with_value(FACTORS, 3, 1, 1e300), "whole numbers; factor 1 is 1e[+]300 in row 3"),
        (CODES, FACTORS * [1, 0], "factor 1 is 0 everywhere. Leave that column out"),
        (CODES[:20], drawn([40, 2], 20), "factor 0 has 3. classes and there are 20 points"),
    ],
)
def test_bad_arrays_are_refused(codes: Any, factors: Any, text: str) -> None:
    with pytest.raises(UnweaveError, match=text):
        check_codes_factors(codes, factors)


@pytest.mark.parametrize(
    "factors",
    [FACTORS.astype(np.int8), FACTORS.astype(np.float32), FACTORS.astype(np.uint64), FACTORS.tolist()],
)
def test_whole_numbers_of_any_type_are_factors(factors: Any) -> None:
    codes, checked = check_codes_factors(CODES.astype(np.float16), factors)
    assert codes.dtype == np.float64
    assert checked.dtype == np.int64
    assert (checked == FACTORS).all()


def test_sparse_and_negative_values_are_classes() -> None:
    factors = FACTORS * 1000 - 500
    assert (check_codes_factors(CODES, factors)[1] == factors).all()
    assert (check_codes_factors(np.eye(4), np.arange(4)[:, None])[1][:, 0] == np.arange(4)).all()


def test_continuous_factors_are_kept() -> None:
    factors = noise(60, 2, seed=1)
    assert (check_codes_factors(CODES, factors, discrete=False)[1] == factors).all()


def test_nothing_is_asked_of_factors_that_need_not_vary() -> None:
    factors = np.hstack([np.zeros((20, 1)), np.arange(20)[:, None] * 5])
    assert (check_codes_factors(CODES[:20], factors, varied=False)[1] == factors).all()


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array])
def test_sparse_codes_score_like_dense_ones(kind: type) -> None:
    factors = drawn((3, 4), 90)
    dense = factors * (factors > 1) * 0.5
    sparse = kind(dense)
    assert mig(sparse, factors) == mig(dense, factors)
    assert sap(sparse, factors) == sap(dense, factors)
    assert irs(sparse, factors) == irs(dense, factors)
    with pytest.raises(UnweaveError, match="must be finite; 1 of 180"):
        check_codes(kind(np.where(np.arange(180).reshape(90, 2) == 7, np.nan, dense)))
    with pytest.raises(UnweaveError, match="must be finite; 1 of 180"):
        mig(kind(np.where(np.arange(180).reshape(90, 2) == 7, np.nan, dense)), factors)
    with pytest.raises(UnweaveError, match="n = 89 rows like factors"):
        mig(sparse, factors[1:])


def test_sparse_codes_are_made_dense_in_blocks_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    factors = drawn((3, 4), 90)
    dense = np.hstack([factors * (factors > 1), noise(90, 5) * (noise(90, 5, seed=2) > 1)])
    sparse: Any = scipy.sparse.csr_array(dense)
    scores = {metric: metric(dense, factors) for metric in (mig, modularity, med, dcimig)}
    monkeypatch.setattr(checks, "BLOCK", 2)
    monkeypatch.setattr(checks, "memory_of_machine", lambda: 24 * 90 * 2)  # of three copies of two codes
    for metric, score in scores.items():
        assert metric(sparse, factors) == score == metric(dense, factors)
    with pytest.raises(UnweaveError, match=r"\(90, 7\) must be made dense here.*Leave out codes"):
        sap(sparse, factors)
    with pytest.raises(UnweaveError, match=r"\(90, 7\) must be made dense here"):
        unweave.evaluate(sparse, factors, metrics="mig")


def test_checked_arrays_are_copies() -> None:
    codes, factors = check_codes_factors(CODES, FACTORS)
    assert not np.shares_memory(codes, CODES)
    assert not np.shares_memory(factors, FACTORS)


def test_an_extended_number_beyond_float64_is_refused() -> None:
    if np.finfo(np.longdouble).max <= np.finfo(np.float64).max:
        pytest.skip("this machine has no extended numbers")
    with pytest.raises(UnweaveError, match="must be finite"):
        check_codes(np.array([["1e400"], ["0"]]).astype(np.longdouble))


def test_the_last_third_is_held_out() -> None:
    factors = np.arange(20)[:, None] % 7
    parts = split(np.arange(20.0)[:, None], factors)
    assert parts.codes[:, 0].tolist() == list(range(14))
    assert parts.test_codes[:, 0].tolist() == list(range(14, 20))
    assert (parts.factors == factors[:14]).all()
    assert (parts.test_factors == factors[14:]).all()


def test_test_data_are_taken_as_they_are() -> None:
    few = CODES[:4], np.array([[2, 0], [2, 0], [2, 0], [2, 3]])
    parts = split(CODES, FACTORS, few)
    assert (parts.codes == CODES).all()
    assert (parts.test_codes == few[0]).all()
    assert (parts.test_factors == few[1]).all()


@pytest.mark.parametrize(
    ("codes", "factors", "test", "text"),
    [
        (CODES[:2], [[0], [1]], None, "at least 3 rows; got 2"),
        (
            np.eye(6),
            [[0], [0], [0], [0], [1], [1]],
            None,
            "factor 0 is 0 everywhere in the rows that are not h",
        ),
        (CODES, FACTORS, CODES, r"test must be a pair \(codes, factors\); got ndarray"),
        (CODES, FACTORS, (CODES[:, :2], FACTORS), "test codes must have 3 columns like codes; got 2"),
        (CODES, FACTORS, (CODES, FACTORS[:, :1]), "test factors must have 2 columns like factors; got 1"),
    ],
)
def test_bad_test_data_are_refused(codes: Any, factors: Any, test: Any, text: str) -> None:
    with pytest.raises(UnweaveError, match=text):
        split(codes, factors, test)


@pytest.mark.parametrize("bins", [1, 0, -3, 20.0, True, None])
def test_bins_are_a_number_of_bins(bins: Any) -> None:
    with pytest.raises(UnweaveError, match="bins must be a whole number >= 2"):
        check_bins(bins)


def test_scaling_by_powers_of_two_is_exact() -> None:
    table = np.array([[3e300, 0.0, 5e-324], [-1e300, 0.0, 1e-323]])
    digits, exponents = scaled(table, axis=0)
    assert (np.abs(digits).max(axis=0) >= [0.5, 0, 0.5]).all()
    assert (np.abs(digits) < 1).all()
    assert (np.ldexp(digits, exponents) == table).all()
    digits, exponents = scaled(table[:, :2])
    assert (np.ldexp(digits, exponents) == table[:, :2]).all()
    assert digits[0, 0] > 0.5


@pytest.mark.parametrize(
    ("given", "kept"), [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i4", "f8"), (">f4", "f4"), ("?", "f8")]
)
def test_float32_codes_keep_their_precision(given: str, kept: str) -> None:
    assert in_own_precision(CODES.astype(given)).dtype == np.dtype(kept)
