"""Arrays in .npz files, without loading them whole and without unpickling anything."""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from unweave.errors import UnweaveError

CHUNK_BYTES = 16 << 20


@dataclass(frozen=True)
class Member:
    """One array of an .npz file: its shape and dtype at once, its rows on demand."""

    path: Path
    name: str
    shape: tuple[int, ...] = field(init=False)
    dtype: np.dtype[Any] = field(init=False)

    def __post_init__(self) -> None:
        with self._open() as file:
            shape, fortran, dtype = _header(file)
        if dtype.hasobject or fortran:
            raise UnweaveError(
                f"{self.name} in {self.path} must be a plain row-major array of numbers; got "
                f"{'a column-major one' if fortran else 'pickled objects, which are never loaded'}."
            )
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dtype", dtype)

    def chunks(self, row_axes: int) -> Iterator[NDArray[Any]]:
        """All rows in order, a few megabytes at a time; a row is what the last row_axes axes hold."""
        total, row = math.prod(self.shape[:-row_axes]), self.shape[-row_axes:]
        row_bytes = math.prod(row) * self.dtype.itemsize
        rows = max(1, CHUNK_BYTES // max(1, row_bytes))
        with self._open() as file:
            _header(file)
            for start in range(0, total, rows):
                count = min(rows, total - start)
                data = file.read(count * row_bytes)
                if len(data) != count * row_bytes:
                    raise EOFError
                yield np.frombuffer(data, self.dtype).reshape(count, *row)

    def mapped(self) -> NDArray[Any] | None:
        """The array memory-mapped where it lies, if it is stored without compression, else None."""
        with _explained(self.path), zipfile.ZipFile(self.path) as archive:
            info = archive.getinfo(f"{self.name}.npy")
            if info.compress_type != zipfile.ZIP_STORED:
                return None
            with self.path.open("rb") as file:
                file.seek(info.header_offset + 26)  # lengths of name and extra field in the local header
                name_length, extra_length = struct.unpack("<HH", file.read(4))
                file.seek(info.header_offset + 30 + name_length + extra_length)
                _header(file)
                offset = file.tell()
        if self.path.stat().st_size < offset + math.prod(self.shape) * self.dtype.itemsize:
            raise UnweaveError(f"{self.path} is cut short. Fetch it again.")
        return np.memmap(self.path, self.dtype, "r", offset, self.shape)

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        with _explained(self.path), zipfile.ZipFile(self.path) as archive:
            if f"{self.name}.npy" not in archive.namelist():
                held = ", ".join(name.removesuffix(".npy") for name in archive.namelist())
                raise UnweaveError(f'{self.path} should hold an array "{self.name}"; it holds {held}.')
            with archive.open(f"{self.name}.npy") as file:
                yield file


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn the many ways in which a damaged archive fails into one sentence."""
    try:
        yield
    except FileNotFoundError:
        raise UnweaveError(f"there is no file {path}.") from None
    # A damaged archive may also ask for a password (RuntimeError) or an unknown compression.
    except (zipfile.BadZipFile, zlib.error, EOFError, struct.error, OSError, RuntimeError) as error:
        raise UnweaveError(
            f"{path} is not a whole .npz file ({error or 'it ends early'}). Fetch it again."
        ) from error


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        return read[np.lib.format.read_magic(file)](file)
    except (ValueError, KeyError) as error:
        raise zipfile.BadZipFile(str(error)) from error
