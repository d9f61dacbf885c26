"""Codes and factors in files: arrays of NumPy (.npz, .npy) and tables (.csv, .tsv, .parquet)."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.errors import UnweaveError

if TYPE_CHECKING:
    import pandas as pd

TABLES = (".csv", ".tsv", ".parquet")
KNOWN = ("codes", "factors", "log_var", "test_codes", "test_factors")
# Columns of a table that are codes: z0, z_1, code 2, latent3, dim_4.
CODE = re.compile(r"(z|code|latent|dim)[ _.-]?\d+", re.IGNORECASE)
HOW = "numpy.savez('codes.npz', codes=codes, factors=factors)"


def read_codes_and_factors(path: Path, factors: Path | None = None) -> dict[str, Any]:
    """What a file holds under the names that `evaluate` knows: codes, factors and perhaps others.

    An .npz file holds them by name. A table holds codes in the columns z0, z1, ... (or code0, latent0, dim0)
    and factors in all others. With a second file of `factors`, the first one holds codes only.
    """
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return _from_npz(path, factors)
    if factors is not None:
        return {"codes": _array_or_table(path), "factors": _array_or_table(factors)}
    if suffix in TABLES:
        return _from_table(path)
    if suffix == ".npy":
        raise UnweaveError(
            f"{path} holds one array, and codes need their factors: add --factors factors.npy (or .csv), or "
            f"save both by {HOW}."
        )
    raise UnweaveError(
        f"codes are read from .npz, .npy, .csv, .tsv and .parquet files; got {path}. Save them by {HOW}."
    )


def _from_npz(path: Path, factors: Path | None) -> dict[str, Any]:
    given = load_arrays(path)
    if factors is not None:
        given |= {"factors": _array_or_table(factors)}
    if not {"codes", "factors"} <= given.keys() or not given.keys() <= set(KNOWN):
        raise UnweaveError(
            f"{path} must hold codes (n, d) and factors (n, k), and may hold log_var, test_codes and "
            f"test_factors; it holds {', '.join(given) or 'nothing'}. Write it by {HOW}."
        )
    if ("test_codes" in given) != ("test_factors" in given):
        raise UnweaveError(f"{path} must hold both test_codes and test_factors, or none of them.")
    return given


def _from_table(path: Path) -> dict[str, Any]:
    frame = _read_table(path)
    codes = [name for name in frame.columns if CODE.fullmatch(str(name))]
    factors = [name for name in frame.columns if name not in codes]
    if not codes or not factors:
        raise UnweaveError(
            f"{path} must have columns z0, z1, ... for codes and a column for each factor; it has "
            f"{', '.join(map(str, frame.columns))}. If it holds codes only, add --factors FILE."
        )
    return {"codes": frame[codes], "factors": frame[factors]}


def _array_or_table(path: Path) -> Any:
    suffix = path.suffix.lower()
    if suffix in TABLES:
        return _read_table(path)
    if suffix == ".npy":
        found = load_arrays(path)
        return found["array"][:, None] if found["array"].ndim == 1 else found["array"]
    raise UnweaveError(f"codes and factors are read from .npy, .csv, .tsv and .parquet files; got {path}.")


def load_arrays(path: Path) -> dict[str, Any]:
    """The arrays of an .npz file by name; that of an .npy file is called array. Nothing is unpickled."""
    if not path.is_file():
        raise UnweaveError(f"there is no file {path}.")
    try:
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return {"array": found}
        with found as arrays:
            return dict(arrays)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        reason = "it is damaged, or holds something else." if "allow_pickle" in str(error) else error
        raise UnweaveError(
            f"cannot read {path} as numbers saved by NumPy: {reason} Save them by {HOW}."
        ) from error


def _read_table(path: Path) -> pd.DataFrame:
    import pandas as pd

    if not path.is_file():
        raise UnweaveError(f"there is no file {path}.")
    try:
        if path.suffix.lower() == ".parquet":
            return pd.read_parquet(path)
        return pd.read_csv(path, sep="\t" if path.suffix.lower() == ".tsv" else ",")
    except (ValueError, OSError) as error:  # what pyarrow and the reader of CSV raise are kinds of these
        reason = (str(error).splitlines() or ["it is empty"])[0]
        raise UnweaveError(f"{path} cannot be read as a {path.suffix} file: {reason}") from error
