"""Binary PGM files (P5): grey images with a header in text."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unweave.errors import UnweaveError

# Three numbers, with spaces and comments (# to the end of a line) before each, and one space after the last.
_GAP = rb"(?:\s|#[^\n\r]*[\n\r])+"
_HEADER = re.compile(rb"P5" + _GAP + rb"(\d+)" + _GAP + rb"(\d+)" + _GAP + rb"(\d+)\s")
LARGEST = 255


def read_pgm(path: Path) -> NDArray[np.uint8]:
    """The (h, w) grey image of a P5 file, 0 to 255; a smaller greatest value is stretched to 255."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UnweaveError(f"cannot read {path}: {error.strerror}.") from error
    header = _HEADER.match(content)
    if header is None:
        raise UnweaveError(
            f"{path} should start with the header of a binary PGM file: P5, width, height, greatest value; "
            f"got {content[:12] or 'an empty file'!r}. Unpack it again."
        )
    width, height, greatest = (int(number) for number in header.groups())
    if not 1 <= greatest <= LARGEST:
        raise UnweaveError(
            f"{path} should have grey values up to {LARGEST} at most; got {greatest}. Unpack it again."
        )
    data = content[header.end() :]
    if len(data) != width * height:
        raise UnweaveError(
            f"{path} should have {width} x {height} = {width * height:,} bytes after its header; it has "
            f"{len(data):,}. Unpack it again."
        )
    grey = np.frombuffer(data, np.uint8).reshape(height, width)
    return (
        grey
        if greatest == LARGEST
        else np.rint(grey * (LARGEST / greatest)).clip(0, LARGEST).astype(np.uint8)
    )
