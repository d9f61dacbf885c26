"""Tables of factors as users have them: arrays, columns of numbers or words, data frames, with gaps.

A column becomes a Factor with values 0 .. size - 1 in sorted order, or a Continuous factor. Unless the user
says otherwise, words and booleans are categorical; numbers are ordinal if they are whole, or if each value
occurs in two rows or more on average; other numbers are continuous.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.data.collection import Continuous
from unweave.data.grid import Factor, Kind
from unweave.errors import UnweaveError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

ColumnKind: TypeAlias = Kind | Literal["continuous"]
FactorTable: TypeAlias = "ArrayLike | Mapping[str, Any] | pd.DataFrame"
Kinds: TypeAlias = Mapping[str, ColumnKind] | Sequence[ColumnKind]

KNOWN_KINDS = (*get_args(Kind), "continuous")


def read_factors(
    table: FactorTable | None, n: int, names: Sequence[str] | None = None, kinds: Kinds | None = None
) -> tuple[tuple[Factor | Continuous, ...], NDArray[np.float64]]:
    """The factors of n images, and their values (n, k) with NaN where they are missing.

    `names` names the columns of an array, or chooses columns of a table that has names. `kinds` gives the
    kind of some columns by name, or of all of them in order.
    """
    columns = _split(table, n, names)
    chosen = _check_kinds(kinds, list(columns))
    read = [_read(name, column, chosen.get(name)) for name, column in columns.items()]
    values = np.empty((n, len(read)), np.float64)
    for j, (_, column) in enumerate(read):
        values[:, j] = column
    return tuple(factor for factor, _ in read), values


def _split(table: FactorTable | None, n: int, names: Sequence[str] | None) -> dict[str, NDArray[Any]]:
    """The table as named columns of n rows."""
    if table is None:
        columns: dict[str, NDArray[Any]] = {}
    elif isinstance(table, Mapping):
        columns = {str(name): _as_array(column) for name, column in table.items()}
    elif hasattr(table, "to_numpy") and hasattr(table, "columns"):
        columns = _split_frame(table)
    else:
        return _split_array(_as_array(table), n, names)
    for name, column in columns.items():
        if column.shape != (n,):
            raise UnweaveError(
                f"factors must have one row for each of the {n} images; "
                f'column "{name}" has shape {column.shape}.'
            )
    if names is None:
        return columns
    for name in names:
        if name not in columns:
            known = did_you_mean(name, columns) if columns else "There are no factors."
            raise UnweaveError(f'the factors have no column "{name}". {known}')
    return {name: columns[name] for name in names}


def _as_array(cells: Any) -> NDArray[Any]:
    try:
        array = np.asarray(cells)
    except ValueError as error:  # lists of different lengths
        raise UnweaveError("the rows of factors must all have the same number of columns.") from error
    # A list of words and numbers or NaN: NumPy would make a word of each of them.
    return np.asarray(cells, object) if array.dtype.kind == "U" and array is not cells else array


def _split_frame(frame: Any) -> dict[str, NDArray[Any]]:
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise UnweaveError(f'the name of each column must be its own; the factors have "{twice}" twice.')
    columns: dict[str, NDArray[Any]] = {}
    for name, column in frame.items():
        # pandas' own types (nullable numbers, categories, strings) have marks for gaps that NumPy lacks.
        numpy_type = isinstance(column.dtype, np.dtype) and column.dtype.kind != "O"
        columns[str(name)] = column.to_numpy() if numpy_type else column.to_numpy(object, na_value=np.nan)
    return columns


def _split_array(array: NDArray[Any], n: int, names: Sequence[str] | None) -> dict[str, NDArray[Any]]:
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or len(array) != n:
        hint = " Did you transpose them?" if array.ndim == 2 and array.shape[1] == n else ""
        raise UnweaveError(
            f"factors must be (n, k) with one row for each of the {n} images; got {array.shape}.{hint}"
        )
    k = array.shape[1]
    names = [f"factor_{j}" for j in range(k)] if names is None else [str(name) for name in names]
    if len(names) != k or len(set(names)) != k:
        raise UnweaveError(f"factors have {k} columns, so names must be {k} different words; got {names}.")
    return {name: array[:, j] for j, name in enumerate(names)}


def _check_kinds(kinds: Kinds | None, names: list[str]) -> dict[str, ColumnKind]:
    if kinds is None:
        return {}
    if not isinstance(kinds, Mapping):
        if isinstance(kinds, str) or len(kinds) != len(names):
            raise UnweaveError(f"kinds must be one for each of {', '.join(names)}; got {kinds!r}.")
        kinds = dict(zip(names, kinds, strict=True))
    for name, kind in kinds.items():
        if name not in names:
            known = did_you_mean(name, names) if names else "There are no factors."
            raise UnweaveError(f'kinds names a column "{name}" that the factors do not have. {known}')
        if kind not in KNOWN_KINDS:
            raise UnweaveError(f'"{kind}" is not a kind of factor. {did_you_mean(str(kind), KNOWN_KINDS)}')
    return dict(kinds)


def _read(
    name: str, column: NDArray[Any], kind: ColumnKind | None
) -> tuple[Factor | Continuous, NDArray[np.float64]]:
    """One factor and its (n,) values."""
    column = _plain(name, column)
    words = column.dtype.kind == "U"
    known = column != "" if words else ~np.isnan(column)
    present = column[known]
    if not len(present):
        raise UnweaveError(f'column "{name}" of the factors has no value in any row; leave it out.')
    distinct, codes = np.unique(present, return_inverse=True)
    kind = kind or _guess_kind(present, distinct)
    values = np.full(len(column), np.nan)
    if kind != "continuous":
        values[known] = codes
        return Factor(name, len(distinct), kind, _labels(distinct)), values
    if words:
        raise UnweaveError(
            f'column "{name}" holds words such as "{distinct[0]}", so it cannot be continuous.'
        )
    values[known] = present
    return Continuous(name, float(distinct[0]), float(distinct[-1])), values


def _guess_kind(present: NDArray[Any], distinct: NDArray[Any]) -> ColumnKind:
    if present.dtype.kind == "U":
        return "categorical"
    whole = bool((distinct == np.rint(distinct)).all())
    return "ordinal" if whole or 2 * len(distinct) <= len(present) else "continuous"


def _labels(distinct: NDArray[Any]) -> tuple[str, ...] | None:
    if distinct.dtype.kind == "U":
        return tuple(str(word) for word in distinct)
    if np.array_equal(distinct, np.arange(len(distinct))):
        return None
    return tuple(str(int(number)) if number == np.rint(number) else str(number) for number in distinct)


def _plain(name: str, column: NDArray[Any]) -> NDArray[Any]:
    """The column as finite numbers with NaN for gaps, or as words with "" for gaps."""
    if column.dtype.kind == "O":
        column = _from_objects(name, column)
    if column.dtype.kind == "b":
        return column.astype(str)
    if column.dtype.kind not in "iufU":
        raise UnweaveError(f'column "{name}" of the factors must hold numbers or words; got {column.dtype}.')
    if column.dtype.kind == "f" and np.isinf(column).any():
        row = int(np.flatnonzero(np.isinf(column))[0])
        raise UnweaveError(
            f'column "{name}" of the factors is infinite in row {row}; use NaN for a value that is missing.'
        )
    return column


def _from_objects(name: str, column: NDArray[Any]) -> NDArray[Any]:
    gap = np.array(
        [cell is None or (isinstance(cell, float | np.floating) and cell != cell) for cell in column]
    )
    present = column[~gap]
    if all(isinstance(cell, str | bool | np.bool_) for cell in present):
        return np.array(
            ["" if missing else str(cell) for cell, missing in zip(column, gap, strict=True)], str
        )
    if all(isinstance(cell, numbers.Real) and not isinstance(cell, bool) for cell in present):
        return np.array(
            [np.nan if missing else cell for cell, missing in zip(column, gap, strict=True)], np.float64
        )
    kinds = sorted({type(cell).__name__ for cell in present})
    raise UnweaveError(
        f'column "{name}" of the factors must hold either numbers or words; it has {" and ".join(kinds)}.'
    )
