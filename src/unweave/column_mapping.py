"""A mapping of the columns of another tool's table to those of a table of results."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from unweave.errors import UnweaveError, did_you_mean

PARTS = ("columns", "constants", "settings", "scores", "protocols")


def checked_mapping(
    mapping: Mapping[str, Any] | str | Path, known: list[str], columns: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """The parts of a mapping from `known` columns to the `columns` of a table of results, checked.

    A mapping is a dictionary or a TOML file; errors name what is wrong with it.
    """
    tables = mapping if isinstance(mapping, Mapping) else _read_toml(mapping)
    for part, entries in tables.items():
        if part not in PARTS or not isinstance(entries, Mapping):
            hint = f"{part} must be a table of names." if part in PARTS else did_you_mean(part, PARTS)
            raise UnweaveError(f'"{part}" cannot be part of a mapping of columns. {hint}')
    parts = {part: dict(tables.get(part, {})) for part in PARTS}
    ours = [name for name in columns if name not in ("score", "protocol", "value")]
    filled = parts["columns"] | parts["constants"]
    _check_known("columns and constants name", filled, "to be filled", ours)
    for part in ("columns", "settings", "scores"):
        _check_known(f"{part} names", parts[part].values(), "in the table", known)
    _check_known("protocols names", parts["protocols"], "under scores", list(parts["scores"]))
    for name in ("data", "method", "seed"):
        if name not in filled:
            raise UnweaveError(
                f'the mapping must say which column is "{name}" (under columns), or that it is the same in '
                "all rows (under constants)."
            )
    if not parts["scores"]:
        raise UnweaveError('the mapping names no score; say for example scores = {mig = "their column"}.')
    return parts


def _read_toml(path: str | Path) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UnweaveError(f"{path} cannot be read as a TOML file: {error}.") from error


def _check_known(who: str, names: Iterable[str], where: str, known: list[str]) -> None:
    for name in names:
        if name not in known:
            hint = did_you_mean(str(name), known)
            raise UnweaveError(f'{who} "{name}", but there is nothing {where} that is called so. {hint}')
