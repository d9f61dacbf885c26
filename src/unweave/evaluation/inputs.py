"""Codes and factors as users have them: arrays, tensors, data frames, columns of numbers or words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unweave.errors import UnweaveError, did_you_mean
from unweave.metrics.checks import as_array


class Table(NamedTuple):
    """An array with one row for each point, and the names of its columns where they have some."""

    array: NDArray[Any]
    names: tuple[str, ...] = ()
    words: tuple[bool, ...] = ()  # which columns of factors are numbered words


def read_codes(values: Any, what: str = "codes") -> Table:
    """Codes with the names of their columns. Their type stays as it is."""
    columns = _columns(values)
    if columns is None:
        return Table(_array(values, what))
    return Table(_stacked({name: as_array(column) for name, column in columns.items()}, what), tuple(columns))


def read_factors(values: Any, test: Any = None) -> tuple[Table, NDArray[Any] | None]:
    """Factors, and those of the test data, as numbers with the names of their columns.

    A column of words is numbered in sorted order; a pandas column of ordered categories in the order of the
    categories. Test data are numbered like the rest. A number that is missing is NaN.
    """
    columns, held_out = _named(values, "factors"), _named(test, "test factors") if test is not None else None
    if held_out is not None and len(held_out) != len(columns):
        raise UnweaveError(f"test must have {len(columns)} factors like the rest; got {len(held_out)}.")
    if held_out is not None and _columns(values) is not None and _columns(test) is not None:
        held_out = _in_order(columns, held_out)
    names = tuple(columns) if _columns(values) is not None else ()
    others = list(held_out.values()) if held_out is not None else [None] * len(columns)
    numbered = [
        _numbered(column, other, _label(name, bool(names)))
        for (name, column), other in zip(columns.items(), others, strict=True)
    ]
    factors = _stacked(dict(zip(columns, (first for first, _ in numbered), strict=True)), "factors")
    words = tuple(_holds_words(column) for column in columns.values())
    if held_out is None:
        return Table(factors, names, words), None
    tested = {name: second for name, (_, second) in zip(columns, numbered, strict=True)}
    return Table(factors, names, words), _stacked(tested, "test factors")


def check_order(codes: Any, factors: Any) -> None:
    """Refuse pandas tables with the same row labels in another order: rows belong together by position."""
    first: Any = getattr(codes, "index", None)
    second: Any = getattr(factors, "index", None)
    if not (hasattr(first, "equals") and hasattr(second, "equals")) or first.equals(second):
        return
    if len(first) == len(second) and first.is_unique and first.sort_values().equals(second.sort_values()):
        raise UnweaveError(
            "codes and factors have the same row labels in another order, but row i of one belongs to row i "
            "of the other. Put them in one order: factors.loc[codes.index]."
        )


def read_blocks(blocks: Mapping[str, Sequence[int]] | None) -> dict[str, tuple[int, ...]]:
    """The codes of each block as whole numbers; no blocks if there are none."""
    if blocks is None:
        return {}
    problem = UnweaveError(
        'blocks must name the codes of each block, such as {"content": [0, 1], "style": [2, 3]}; got '
        f"{blocks!r}."
    )
    if not isinstance(blocks, Mapping):
        raise problem
    try:
        columns = {str(name): as_array(list(members)) for name, members in blocks.items()}
    except TypeError:
        raise problem from None
    if any(array.dtype.kind not in "iu" or array.ndim != 1 or array.min() < 0 for array in columns.values()):
        raise problem
    return {name: tuple(int(code) for code in array) for name, array in columns.items()}


def read_block_factors(
    block_factors: Mapping[str, Sequence[str]] | None, blocks: Mapping[str, object], names: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """The names of the factors of each block; empty if none are stated."""
    if block_factors is None:
        return {}
    if not isinstance(block_factors, Mapping) or any(isinstance(own, str) for own in block_factors.values()):
        raise UnweaveError(
            'block_factors must name the factors of each block, such as {"content": ["shape"]}; got '
            f"{block_factors!r}."
        )
    for block, own in block_factors.items():
        if block not in blocks:
            raise UnweaveError(f'there is no block "{block}". {did_you_mean(str(block), list(blocks))}')
        for name in own:
            if name not in names:
                raise UnweaveError(f'there is no factor "{name}". {did_you_mean(str(name), list(names))}')
    return {str(block): tuple(own) for block, own in block_factors.items()}


def _columns(values: Any) -> dict[str, Any] | None:
    """The columns of a data frame, a series or a dictionary; None for an array."""
    if isinstance(values, Mapping):
        return {str(name): column for name, column in values.items()}
    if hasattr(values, "columns") and hasattr(values, "to_numpy"):
        names = [str(name) for name in values.columns]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise UnweaveError(f'column names must be unique; "{twice}" occurs {names.count(twice)} times.')
        return {str(name): values[name] for name in values.columns}
    if hasattr(values, "to_numpy") and hasattr(values, "name"):
        return {"0" if values.name is None else str(values.name): values}
    return None


def _named(values: Any, what: str) -> dict[str, Any]:
    """All columns by name; those of an array by their number."""
    columns = _columns(values)
    if columns is not None:
        return columns
    array = _array(values, what)
    return {str(j): array[:, j] for j in range(array.shape[1])}


def _in_order(columns: Mapping[str, Any], test: Mapping[str, Any]) -> dict[str, Any]:
    for name in columns:
        if name not in test:
            raise UnweaveError(f'test has no factor "{name}"; it has {", ".join(test)}.')
    return {name: test[name] for name in columns}


def _array(values: Any, what: str) -> NDArray[Any]:
    letter = "k" if "factors" in what else "d"
    try:
        array = as_array(values)
    except UnweaveError:
        raise
    except ValueError:  # rows of different lengths
        raise UnweaveError(f"{what} must be an array (n, {letter}); got rows of different lengths.") from None
    if array.dtype.kind == "U" and not isinstance(values, np.ndarray):
        array = np.array(values, object)  # a list of numbers and words, of which NumPy would make words
    if array.ndim == 1 and len(array):
        raise UnweaveError(
            f"{what} must be (n, {letter}); got {array.shape}. For one column pass {what}[:, None], which is "
            f"({len(array)}, 1)."
        )
    if array.ndim != 2:
        raise UnweaveError(f"{what} must be an array (n, {letter}); got {_described(values, array)}.")
    return array


def _described(values: Any, array: NDArray[Any]) -> str:
    return f"{type(values).__name__} of shape {array.shape}" if array.ndim else repr(values)


def _stacked(columns: Mapping[str, NDArray[Any]], what: str) -> NDArray[Any]:
    lengths = {name: np.shape(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1 or any(len(shape) != 1 for shape in lengths.values()):
        shapes = ", ".join(f"{name} {shape}" for name, shape in lengths.items())
        raise UnweaveError(f"the columns of {what} must be of shape (n,), all of one length; got {shapes}.")
    if not columns:
        raise UnweaveError(f"{what} must have at least one column; got none.")
    return np.stack(list(columns.values()), axis=1)


def _label(name: str, named: bool) -> str:
    return f'factor "{name}"' if named else f"factor {name}"


def _numbered(column: Any, test: Any, label: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """A column and that of the test data as numbers; without test data the second is empty."""
    first, second = _plain(column, label), _plain([] if test is None else test, label)
    if first.dtype.kind != "U":
        return first, second
    categories = _ordered_categories(column)
    values = np.unique(np.concatenate([first, second.astype(str)])) if categories is None else categories
    place = {word: number for number, word in enumerate(values.tolist())}
    try:
        numbers = [np.array([place[word] for word in words.tolist()], np.int64) for words in (first, second)]
    except KeyError as error:
        raise UnweaveError(f"{label} has no category {error} in the rows that are not test data.") from None
    return numbers[0], numbers[1]


def _plain(column: Any, label: str) -> NDArray[Any]:
    """A column as numbers or as words."""
    array = as_array(column)
    if array.dtype.kind in "mM":
        raise UnweaveError(
            f"{label} must hold numbers or words; it holds dates or times. Turn them into numbers, such as "
            "years, first."
        )
    if array.dtype.kind not in "OT":
        return array
    cells = array.tolist()
    if all(isinstance(cell, str) for cell in cells):
        return np.array(cells, str)
    missing = sum(_is_missing(cell) for cell in cells)
    if missing and any(isinstance(cell, str) for cell in cells):
        raise UnweaveError(f"{label} has no value in {missing} of {len(cells)} rows. Leave those rows out.")
    cells = [np.nan if _is_missing(cell) else cell for cell in cells]
    if any(isinstance(cell, str) for cell in cells):
        kinds = ", ".join(sorted({type(cell).__name__ for cell in cells}))
        raise UnweaveError(f"{label} must hold either numbers or words; it holds {kinds}.")
    try:
        return np.array(cells, np.int64 if all(float(cell).is_integer() for cell in cells) else np.float64)
    except (TypeError, ValueError):
        kinds = ", ".join(sorted({type(cell).__name__ for cell in cells}))
        raise UnweaveError(f"{label} must hold numbers or words; it holds {kinds}.") from None


def _holds_words(column: Any) -> bool:
    array = as_array(column)
    return array.dtype.kind in "UT" or (
        array.dtype.kind == "O" and any(isinstance(cell, str) for cell in array.tolist())
    )


def _is_missing(cell: Any) -> bool:
    """Whether a cell is None, NaN or one of pandas' marks for a missing value."""
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or cell != cell


def _ordered_categories(column: Any) -> NDArray[Any] | None:
    dtype = getattr(column, "dtype", None)
    if not getattr(dtype, "ordered", False):
        return None
    return np.asarray(dtype.categories, str)  # type: ignore[union-attr]
