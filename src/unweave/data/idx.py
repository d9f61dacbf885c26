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
GZIP = b"\x1f\x8b"  # the first two bytes of a file packed by gzip


def read_idx(path: Path, axes: int) -> NDArray[np.uint8]:
    """The array of bytes in an IDX file with that number of axes; one packed by gzip is unpacked on the way.

    The header is two zero bytes, the type of the numbers (0x08: unsigned bytes), the number of axes, and the
    size of each axis as a big-endian 32-bit number.
    """
    try:
        content = path.read_bytes()
        # Not by its suffix: browsers unpack files on the way, and keep their names.
        content = gzip.decompress(content) if content.startswith(GZIP) else content
    except (OSError, EOFError, zlib.error) as error:
        raise UnweaveError(f"cannot read {path}: {error}. Fetch the file again.") from error
    start = 4 + 4 * axes
    if content[:4] != bytes([0, 0, UNSIGNED_BYTE, axes]):
        raise UnweaveError(
            f"{path} should start with 00 00 08 {axes:02x}, the mark of bytes with {axes} axes; "
            f"got {content[:4].hex(' ') or 'an empty file'}. Is it another file under this name?"
        )
    if len(content) < start:
        raise UnweaveError(
            f"{path} should have a header of {start} bytes; it is cut short and has {len(content)}. "
            "Fetch the file again."
        )
    sizes = struct.unpack(f">{axes}I", content[4:start])
    if len(content) - start != math.prod(sizes):
        raise UnweaveError(
            f"{path} should have {math.prod(sizes):,} bytes of data, as its header says; it has "
            f"{len(content) - start:,}. Fetch the file again."
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(sizes)
