"""Arrays of numbers in .npy files; nothing is unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.errors import UnweaveError


def read_npy(path: Path, remedy: str, *, mapped: bool = False) -> NDArray[Any]:
    """The array of real numbers in a .npy file, whatever the file is called; `remedy` ends error messages.

    A `mapped` array is read-only and stays on the disk. Not numpy.load: it takes archives for arrays, and
    advises to unpickle what is neither.
    """
    magic = np.lib.format.MAGIC_PREFIX
    try:
        with path.open("rb") as file:
            start = file.read(len(magic))
            if start == magic and not mapped:
                file.seek(0)
                array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        if start == magic and mapped:
            array = np.lib.format.open_memmap(path, mode="r")
    except (ValueError, OSError, EOFError) as error:
        raise UnweaveError(f"cannot read {path} as a NumPy file ({error}). {remedy}") from error
    if start != magic:
        raise UnweaveError(
            f"cannot read {path} as a NumPy file: it should start with {magic!r}; got "
            f"{start or 'an empty file'!r}. {remedy}"
        )
    if array.dtype.kind not in "biuf":
        raise UnweaveError(f"{path} should hold an array of real numbers; got {array.dtype}. {remedy}")
    return array
