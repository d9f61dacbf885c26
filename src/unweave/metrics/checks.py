"""What every metric asks of its input, so that a bad array is met by one clear sentence.

Codes are (n, d) real numbers and factors (n, k) whole numbers. A code of any real type is read as
float64; whatever passes here is finite, so a metric only has to think about dead, copied, huge and tiny
codes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError

# Beyond this a whole number kept as a float is no longer exact.
LARGEST_FACTOR = 2.0**53
# The value of a factor that is not known. Rows with it are left out where information about it is counted.
MISSING = -(2**53)
BLOCK = 256  # columns that are dense at once where sparse codes need not be dense as a whole
COPIES = 3  # dense copies of codes that a metric may hold at once


class FactorError(UnweaveError):
    """A factor cannot be measured. `{factor}` in the text stands for the factor in question."""

    def __init__(self, text: str, column: int) -> None:
        super().__init__(text.replace("{factor}", f"factor {column}"))
        self.text, self.column = text, column

    def named(self, names: Sequence[str]) -> UnweaveError:
        """The same error, which calls the factor by its name."""
        return UnweaveError(self.text.replace("{factor}", f'factor "{names[self.column]}"'))


class Split(NamedTuple):
    """Checked arrays to fit on, and checked arrays to test on."""

    codes: NDArray[np.float64]
    factors: NDArray[np.int64]
    test_codes: NDArray[np.float64]
    test_factors: NDArray[np.int64]


def check_codes(codes: ArrayLike, name: str = "codes", *, copy: bool = True) -> NDArray[np.float64]:
    """Return finite codes (n, d), n >= 2, as float64; without `copy` possibly the array itself."""
    return _finite(_table(codes, name, "d"), name, copy)


@overload
def check_codes_factors(
    codes: ArrayLike, factors: ArrayLike, *, discrete: Literal[True] = True, varied: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.int64]]: ...


@overload
def check_codes_factors(
    codes: ArrayLike, factors: ArrayLike, *, discrete: Literal[False], varied: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...


def check_codes_factors(
    codes: ArrayLike, factors: ArrayLike, *, discrete: bool = True, varied: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.int64] | NDArray[np.float64]]:
    """Return codes (n, d) as float64 and factors (n, k) as int64, or as float64 if they are not discrete.

    Refused: transposed or mismatched arrays, NaN and infinity, discrete factors that are no whole numbers
    and, if `varied`, a factor with one value only or with more classes than there are points.

    >>> check_codes_factors([[0.5], [1.5]], [[0], [1]])[1].dtype
    dtype('int64')
    """
    codes, factors = _table(codes, "codes", "d"), _table(factors, "factors", "k")
    _check_rows(codes.shape, factors.shape)
    codes, factors = _finite(codes, "codes"), _finite(factors, "factors")
    if discrete:
        return codes, _discrete(factors, varied)
    if varied:
        _check_varied(factors)
    return codes, factors


def check_factors_of(codes: ArrayLike, factors: ArrayLike, *, varied: bool = True) -> NDArray[np.int64]:
    """Check both like `check_codes_factors` and return the factors. Sparse codes are not made dense."""
    if not is_sparse(codes) or not _is_finite_table(codes):
        return check_codes_factors(codes, factors, varied=varied)[1]
    table = _table(factors, "factors", "k")
    _check_rows(np.shape(codes), table.shape)
    return _discrete(_finite(table, "factors"), varied)


def column_blocks(codes: ArrayLike) -> Iterator[NDArray[Any]]:
    """Codes (n, d) in blocks of columns, each dense, so that a metric of single codes needs little memory."""
    if is_sparse(codes):
        columns: Any = codes
        columns = columns.tocsc()
    else:
        columns = as_array(codes)
    for first in range(0, columns.shape[1], BLOCK):
        yield as_array(columns[:, first : first + BLOCK])


def split(
    codes: ArrayLike,
    factors: ArrayLike,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    *,
    few: bool = False,
) -> Split:
    """Check the data and return them with the test data; without these, the last third is held out.

    If `few` rows may be given, a factor may have more classes than there are rows.
    """
    checked_codes, checked_factors = check_codes_factors(codes, factors, varied=not few)
    _check_varied(checked_factors)
    if test is None:
        held_out = len(checked_codes) // 3
        if held_out == 0:
            raise UnweaveError(
                f"holding out the last third needs at least 3 rows; got {len(checked_codes)}. "
                "Give more rows, or test=(codes, factors)."
            )
        rest = len(checked_codes) - held_out
        _check_varied(checked_factors[:rest], "in the rows that are not held out; shuffle the rows")
        return Split(
            checked_codes[:rest], checked_factors[:rest], checked_codes[rest:], checked_factors[rest:]
        )
    if not isinstance(test, tuple | list) or len(test) != 2:
        raise UnweaveError(f"test must be a pair (codes, factors); got {type(test).__name__}.")
    try:
        test_codes, test_factors = check_codes_factors(*test, varied=False)
    except UnweaveError as error:
        raise UnweaveError(f"in the test data, {error}") from error
    for name, train, held in (
        ("codes", checked_codes, test_codes),
        ("factors", checked_factors, test_factors),
    ):
        if train.shape[1] != held.shape[1]:
            raise UnweaveError(
                f"test {name} must have {train.shape[1]} columns like {name}; got {held.shape[1]}. "
                "Take both from the same representation and ground truth."
            )
    return Split(checked_codes, checked_factors, test_codes, test_factors)


def check_bins(bins: int) -> int:
    """Return the number of bins if it is a whole number of at least 2."""
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 2:
        raise UnweaveError(f"bins must be a whole number >= 2; got {bins!r}. The published number is 20.")
    return int(bins)


def as_array(values: Any) -> NDArray[Any]:
    """Values as a NumPy array; a torch tensor may be on a GPU, need gradients or be of type bfloat16.

    Sparse matrices and arrays of SciPy are made dense, and refused if the memory of the machine is too small.
    """
    if is_sparse(values):
        _check_memory(values)
        return np.asarray(values.toarray())
    if np.ma.is_masked(values) and values.dtype.kind in "biuf":
        return np.asarray(values.astype(np.float64).filled(np.nan))  # what is masked is not known
    if not hasattr(values, "detach"):
        return np.asarray(values)
    tensor = values.detach().cpu()
    try:
        return np.asarray(tensor)
    except TypeError:  # a type that NumPy does not have, such as bfloat16
        return np.asarray(tensor.float())


def in_own_precision(codes: ArrayLike) -> NDArray[Any]:
    """Return checked codes as float32 if they have at most that precision, else as float64.

    The published study computed from float32 codes in float32. Where its rounding is part of a number
    (codes on the edge of a bin, means of equal codes) we round alike.
    """
    check_codes(codes)
    table = as_array(codes)
    short = table.dtype.kind == "f" and table.dtype.itemsize <= 4
    return table.astype(np.float32 if short else np.float64)


def scaled(table: NDArray[Any], axis: int | None = None) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Divide by powers of two that bring the largest value into 1/2 .. 1; return also their exponents.

    This changes no digit, and huge and tiny codes no longer overflow or vanish. One power for the whole
    table, or with axis=0 one for each column; zeros stay.
    """
    exponents = np.frexp(np.abs(table).max(axis=axis))[1]
    return np.ldexp(table, -exponents), exponents


def _table(values: ArrayLike, name: str, columns: str) -> NDArray[np.generic]:
    try:
        table = as_array(values)
    except UnweaveError:
        raise
    except ValueError:  # rows of different lengths
        raise UnweaveError(
            f"{name} must be an array (n, {columns}); got rows of different lengths."
        ) from None
    if table.dtype.kind not in "biuf":
        raise UnweaveError(f"{name} must be real numbers; got an array of type {table.dtype}.")
    if table.ndim == 1:
        raise UnweaveError(
            f"{name} must be (n, {columns}); got {table.shape}. "
            f"For one column pass {name}[:, None], which is ({len(table)}, 1)."
        )
    if table.ndim != 2 or table.shape[1] == 0 or len(table) < 2:
        raise UnweaveError(
            f"{name} must be (n, {columns}) with at least 2 rows and 1 column; got {table.shape}."
        )
    return table


def is_sparse(values: object) -> bool:
    """Whether values are a sparse matrix or array of SciPy."""
    return hasattr(values, "tocsr") and hasattr(values, "toarray")


def _check_memory(values: Any) -> None:
    """Refuse sparse codes of which the machine cannot hold the few dense copies that metrics make."""
    needed, memory = COPIES * values.shape[0] * values.shape[1] * 8, memory_of_machine()
    if needed > memory:
        raise UnweaveError(
            f"sparse codes of shape {tuple(values.shape)} must be made dense here, which takes about "
            f"{needed / 2**30:.0f} GiB with copies; this machine has {memory / 2**30:.0f} GiB. Leave out "
            "codes that are always 0, give fewer rows, or call a metric that needs no dense codes: "
            "unweave.metrics.mig or modularity."
        )


def memory_of_machine() -> int:
    """Bytes of main memory; 2^63 where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 2**63


def _is_finite_table(codes: Any) -> bool:
    """Whether sparse codes are a table that `check_codes_factors` takes; it says what is wrong if not."""
    if codes.ndim != 2 or codes.dtype.kind not in "biuf" or min(codes.shape[0] - 1, codes.shape[1]) < 1:
        return False
    return bool(np.isfinite(codes.tocsr().data).all())


def _check_rows(codes: tuple[int, ...], factors: tuple[int, ...]) -> None:
    """Refuse shapes of codes and factors that do not belong together."""
    n, m = codes[0], factors[0]
    if codes[1] == factors[1] and n < codes[1] and m < factors[1]:
        raise UnweaveError(
            f"codes must be (n, d) and factors (n, k), one row a point; got {codes} and "
            f"{factors}. Did you transpose them?"
        )
    if n == m:
        return
    if factors[1] == n:
        raise UnweaveError(
            f"factors must be (n, k) with n = {n} rows like codes; got {factors}. Did you transpose them?"
        )
    hint = "Did you transpose them?" if codes[1] == m else "Give both for the same points."
    raise UnweaveError(f"codes must be (n, d) with n = {m} rows like factors; got {codes}. {hint}")


def _discrete(factors: NDArray[np.float64], varied: bool) -> NDArray[np.int64]:
    if varied:
        _check_varied(factors)
    whole = _whole(factors)
    if varied:
        _check_classes(whole)
    return whole


def _finite(table: NDArray[np.generic], name: str, copy: bool = True) -> NDArray[np.float64]:
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # an extended number beyond float64 turns infinite, and is refused
        numbers = table.astype(np.float64, copy=copy)
        # NaN and infinity are never lost in a sum, so most tables need no second look.
        bad = ~np.isfinite(numbers) if not np.isfinite(numbers.sum()) else np.zeros(0, np.bool_)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise UnweaveError(
            f"{name} must be finite; {bad.sum()} of {bad.size} values are NaN or infinite, the first in "
            f"row {row}, column {column}. Leave those rows out, or look at how they were made."
        )
    return numbers


def _check_varied(factors: NDArray[np.generic], where: str = "") -> None:
    for column, values in enumerate(factors.T):
        if (values == values[0]).all():
            end = f" {where}." if where else ". Leave that column out, or give points where it changes."
            raise FactorError(
                f"each factor must take at least two values; {{factor}} is {values[0]:g} everywhere{end}",
                column,
            )


def _whole(factors: NDArray[np.float64]) -> NDArray[np.int64]:
    bad = (factors != np.round(factors)) | (np.abs(factors) > LARGEST_FACTOR)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise FactorError(
            f"discrete factors must be whole numbers; {{factor}} is {factors[row, column]:g} in row {row}. "
            "Number its values 0, 1, 2, ..., or use unweave.evaluate, which takes real-valued factors.",
            int(column),
        )
    return factors.astype(np.int64)


def _check_classes(factors: NDArray[np.int64]) -> None:
    """Refuse a factor that has more classes than there are points, as far as the points can tell.

    Factors are numbered from 0 as a rule, so the range of the values is the number of classes; it only
    counts if most points are alone in their class, so that values like 0, 10, 20, ... pass.
    """
    n = len(factors)
    for column, values in enumerate(factors.T):
        values = values[values != MISSING]
        classes = int(values.max()) - int(values.min()) + 1
        if classes > n and 2 * len(np.unique(values)) > n:
            raise FactorError(
                f"there must be at least as many points as classes; {{factor}} has {classes} classes and "
                f"there are {n} points. Give more points, or leave that factor out.",
                column,
            )
