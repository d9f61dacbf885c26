"""IDX files, the format of MNIST: a magic number, the sizes of the axes, and bytes in row-major order."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unweave.errors import UnweaveError

UNSIGNED_BYTE = 0x08


def read_idx(path: Path, axes: int) -> NDArray[np.uint8]:
    """The array of bytes in an IDX file with that number of axes; a file in .gz is unpacked on the way.

    The header is two zero bytes, the type of the numbers (0x08: unsigned bytes), the number of axes, and the
    size of each axis as a big-endian 32-bit number.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise UnweaveError(f"cannot read {path}: {error}. Fetch the file again.") from error
    start = 4 + 4 * axes
    if content[:4] != bytes([0, 0, UNSIGNED_BYTE, axes]) or len(content) < start:
        raise UnweaveError(
            f"{path} should start with 00 00 08 {axes:02x}, the mark of bytes with {axes} axes; "
            f"got {content[:4].hex(' ') or 'an empty file'}. Is it another file under this name?"
        )
    sizes = struct.unpack(f">{axes}I", content[4:start])
    if len(content) - start != math.prod(sizes):
        raise UnweaveError(
            f"{path} should have {math.prod(sizes):,} bytes of data, as its header says; it has "
            f"{len(content) - start:,}. Fetch the file again."
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(sizes)
