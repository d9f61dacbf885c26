"""Directions in files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from unweave.directions.directions import RECORD, Directions, Fitted, Floats, LinearReader, Reader
from unweave.errors import UnweaveError


def load(path: str | Path) -> Directions:
    """Read directions that `Directions.save` or `unweave directions` wrote."""
    source = Path(path)
    if not source.is_file():
        raise UnweaveError(f"there is no file {source}.")
    try:
        with safe_open(source, "np") as file:
            record = json.loads((file.metadata() or {})[RECORD])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  it is no dictionary
        mean, fitted = arrays["mean"], Fitted(**record["fitted"])
        if fitted.encoder:
            fitted = replace(fitted, encoder=os.path.normpath(source.parent / fitted.encoder))
        own = {name.removeprefix("reader."): a for name, a in arrays.items() if name.startswith("reader.")}
        return Directions(
            arrays["directions"],
            mean,
            arrays["explained"],
            _reader(fitted.by, own, mean, record["reader"]),
            fitted,
            tuple(record["names"]),
        )
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise UnweaveError(
            f"{source} must be a file that `unweave directions` or Directions.save wrote; reading it failed: "
            f"{error}."
        ) from error


def _reader(by: str, arrays: Mapping[str, NDArray[Any]], mean: Floats, record: Mapping[str, Any]) -> Reader:
    if by != "sparse":
        return LinearReader(arrays["matrix"], mean)
    # Here, because torch takes seconds to import.
    from unweave.directions.features import SparseReader

    return SparseReader.restored(arrays, record)
