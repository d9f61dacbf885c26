"""Open what a user names, a data set of the catalogue, a folder or a file; and open what a run recorded."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

from unweave.data.catalogue import CATALOGUE, has_condition, load, load_any
from unweave.data.collection import Collection, obstacle_to_grid
from unweave.data.conditions.naming import PAINTS, conditioned
from unweave.data.conditions.presets import PRESETS
from unweave.data.grid import GroundTruth
from unweave.data.own import array_file, folder
from unweave.data.own.construct import from_file, from_folder
from unweave.data.own.reference import Reference
from unweave.data.own.sizing import Fit, Size
from unweave.errors import MissingFileError, UnweaveError, did_you_mean
from unweave.plugins.loading import absolute, names_plugin
from unweave.progress import Progress

Data: TypeAlias = GroundTruth | Collection

TABLES = folder.TABLE_SUFFIXES
OWN = "a folder of pictures, an .npz or .npy file, or a table of pictures (.csv, .tsv, .parquet, .jsonl)"


def open_data(
    named: str | Path,
    root: str | Path | None = None,
    *,
    table: str | Path | None = None,
    size: Size = "auto",
    fit: Fit | None = None,
    check: bool = True,
    progress: Progress | None = None,
) -> Data:
    """Open a data set by its name in the catalogue, or your own data by its path.

    A path is that of a folder of pictures with a table of factors, of an .npz or .npy file of arrays, or of a
    table whose column `file` names pictures in its folder. A name of the catalogue stands before a folder of
    the same name: write "./dsprites" for the folder. `table`, `size` and `fit` are for your own data (see
    `from_folder`); with size "auto", images are padded or shrunk to a size that convolutional networks take.
    A data set of a plug-in is named by its entry point, `file.py:Name` or `module:Name`.

    A condition may follow any of these after a colon: "dsprites:hold(shape=2,x>=16)" never draws hearts on
    the right. See `unweave.data.conditions.parser` for the grammar.

    `root` is the folder of the official files of data sets.
    """
    if isinstance(named, str) and (_is_known(named) or _is_plugin(named)):
        if table is not None or size != "auto" or fit is not None:
            raise UnweaveError(
                f"{named} has its own factors and image size. Table, size and fit are for your own data."
            )
        return load_any(named, root, check=check, progress=progress)
    if not str(named):
        raise _unknown(named)
    base, condition = _split_place(named)
    if condition:
        opened = open_data(base, root, table=table, size=size, fit=fit, check=check, progress=progress)
        return _with_condition(opened, condition)
    path = Path(named).expanduser()
    suffix = path.suffix.lower()
    if path.is_dir():
        return from_folder(path, table, size=size, fit=fit, progress=progress)
    if not path.exists():
        raise _unknown(named)
    if suffix in array_file.SUFFIXES and table is None:
        return from_file(path, size=size, fit=fit)
    if suffix in TABLES and table is None:
        return from_folder(path.parent, path, size=size, fit=fit, progress=progress)
    if table is not None:
        raise UnweaveError(f"a table is for a folder of pictures; {path} is a file.")
    raise UnweaveError(f"{path} is not data that can be opened. Name {OWN}.")


def is_place(named: object, folder: Path = Path()) -> TypeGuard[str | Path]:
    """Whether a user named a folder, file or plug-in, seen from a folder, and not one of the catalogue."""
    if not isinstance(named, str) or _is_known(named):
        return isinstance(named, Path)
    base = _split_place(named, folder)[0]
    return _has_separator(named) or (folder / base).exists() or _is_plugin(base, folder)


def open_seen_from(folder: Path, named: str | Path) -> Data:
    """Open a user's data, or that of a plug-in, by a path relative to a folder."""
    base, condition = _split_place(named, folder)
    if condition:
        return _with_condition(open_seen_from(folder, base), condition)
    if isinstance(named, str) and _is_plugin(named, folder):
        return open_data(absolute(named, folder))
    return open_data(folder / Path(named).expanduser())


def open_reference(
    reference: Reference, progress: Progress | None = None, root: str | Path | None = None
) -> Data:
    """Open a user's data as it was opened before, and check that it is the same.

    `root` is the folder of official files, for data sets of plug-ins that read some.
    """
    if reference.condition:
        name = reference.name.removesuffix(f":{reference.condition}")
        base = dataclasses.replace(reference, name=name, condition="")
        return _with_condition(open_reference(base, progress, root), reference.condition)
    if reference.kind == "plugin":
        return _open_plugin(reference, progress, root)
    path = Path(reference.path)
    if not path.exists():
        raise MissingFileError(
            f'the data set "{reference.name}" was opened from {path}, which is not there any more.'
        )
    options: dict[str, Any] = {
        "size": reference.size,
        "fit": reference.fit,
        "name": reference.name,
        "names": reference.names,
        "kinds": None if reference.kinds is None else dict(reference.kinds),
        "grid": reference.grid,
    }
    if reference.kind == "file":
        data = from_file(path, **options)
    else:
        table = None if reference.table is None else path / reference.table
        data = from_folder(path, table, channels=reference.channels, progress=progress, **options)
    if data.source != reference.source:
        raise UnweaveError(
            f'{path} does not hold the data set "{reference.name}" that was recorded ({reference.source}), '
            f"but {data.source}. Restore its images and factors, or name the {reference.kind} that has them."
        )
    return data


def _open_plugin(reference: Reference, progress: Progress | None, root: str | Path | None) -> Data:
    data = load(reference.path, root, progress=progress)
    if data.source != reference.source:
        raise UnweaveError(
            f'the data set "{reference.name}" of the plug-in {reference.path} has changed: '
            f"{reference.source} was recorded, and it is {data.source}. Restore that version of the "
            "plug-in, or pass the data as an object: unweave.load(run, data=...)."
        )
    return data


def reopen(
    name: str, record: Mapping[str, Any], root: str | Path | None = None, place: str | Path | None = None
) -> Data:
    """Open the data set that a run recorded: by its name, where it lay, or where it lies now (`place`).

    `record` has data_source, data_drawn and, for a user's data, data_reference.
    """
    plain = record.get("data_reference")
    reference = None if plain is None else Reference.from_dict(plain)
    if place is not None:
        data = _open_at(place, reference, root)
    elif reference is not None:
        data = _open_recorded(reference, root)
    elif _is_known(name):
        data = load_any(name, root)
    else:
        raise UnweaveError(
            f'the run was trained on data that was given as an object, "{name}" ({record["data_source"]}), '
            "which cannot be opened by its name. Make the object again, and pass it to unweave.load(run, "
            "data=...)."
        )
    check_recorded(data, name, record)
    return data


def check_recorded(data: Data, name: str, record: Mapping[str, Any]) -> None:
    """Check that data is what a run recorded."""
    if (data.source, data.drawn) != (record["data_source"], record["data_drawn"]):
        raise UnweaveError(
            f"the run was trained on another {name} ({record['data_source']}; drawn {record['data_drawn']}) "
            f"than the one that is here ({data.source}; drawn {data.drawn}). Recreate that one and use it."
        )


def _open_recorded(reference: Reference, root: str | Path | None) -> Data:
    try:
        return open_reference(reference, root=root)
    except MissingFileError as error:
        raise MissingFileError(
            f"{error} Name its new place: --data {reference.kind.upper()}, or unweave.load(run, "
            f"data={reference.kind.upper()})."
        ) from error


def _open_at(place: str | Path, reference: Reference | None, root: str | Path | None) -> Data:
    """What lies at a place, with the options of the reference if it is of the same kind."""
    path = Path(place).expanduser()
    if reference is None or reference.kind == "plugin":
        return open_data(place, root)
    if path.exists() and path.is_dir() == (reference.kind == "folder"):
        return open_reference(dataclasses.replace(reference, path=str(path.resolve())))
    return open_data(place, root)


def _names() -> list[str]:
    return [entry.name for entry in CATALOGUE]


def _is_known(name: str) -> bool:
    return name in _names() or has_condition(name)


def _split_place(named: str | Path, folder: Path = Path()) -> tuple[str | Path, str]:
    """A path or plug-in, and the condition after it; a path that exists has none."""
    text = str(named)
    if _is_plugin(text, folder) or (folder / Path(text).expanduser()).exists():
        return named, ""
    colons = [i for i, letter in enumerate(text) if letter == ":"]
    for i in colons:
        if (folder / Path(text[:i]).expanduser()).exists() and Path(text[:i]).suffix != ".py":
            return text[:i], text[i + 1 :]
    for i in colons:
        if _is_plugin(text[:i], folder):
            return text[:i], text[i + 1 :]
    return named, ""


def _is_plugin(named: object, folder: Path = Path()) -> bool:
    """Whether a text names a data set of a plug-in, and not a user's data with a one-word condition."""
    if not names_plugin("data", named):
        return False
    place, _, word = str(named).rpartition(":")
    path = Path(place).expanduser()
    if not place or word not in (*PRESETS, *PAINTS) or path.suffix == ".py":
        return True
    return path.suffix.lower() not in (*array_file.SUFFIXES, *TABLES) and not (folder / path).exists()


def _with_condition(data: Data, condition: str) -> Data:
    if isinstance(data, Collection):
        raise UnweaveError(
            f"a condition needs a full grid of factors, and {data.name} has none: {obstacle_to_grid(data)}. "
            f'Open it without ":{condition}".'
        )
    return conditioned(data, condition)


def _has_separator(named: str) -> bool:
    return "/" in named or os.sep in named


def _unknown(named: str | Path) -> UnweaveError:
    base = named if isinstance(named, Path) else named.partition(":")[0]  # a condition has dots, too
    if isinstance(base, Path) or _has_separator(str(named)) or Path(base).suffix:
        return MissingFileError(f"there is no folder or file {named}. Name {OWN}, or a data set.")
    return UnweaveError(
        f'there is no data set "{named}". {did_you_mean(base, _names())} For your own data, name {OWN}.'
    )
