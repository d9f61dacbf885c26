"""The cache of image tables: written once, atomically, and memory-mapped by every process.

A table is a .npy file of uint8 with one row per image: (n, c, h, w), or (n, c * h * w / 8) packed bits for
binary images. It appears under its name only when it is complete. Processes that need the same table at the
same time wait for each other. A process that is killed leaves a .part file, which the next one removes.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.data.grid import Factors, GroundTruth, Images, Render
from unweave.errors import UnweaveError
from unweave.files import remove_parts, replacing
from unweave.locks import hold
from unweave.places import cache_folder
from unweave.progress import Progress
from unweave.streams import Stream

Table: TypeAlias = NDArray[np.uint8]

CHUNK = 4096


def grid_table(ground_truth: GroundTruth, progress: Progress | None = None) -> Table:
    """All images of a deterministic ground truth in the order of the grid, from the cache.

    Binary images are packed, eight pixels a byte, first pixel in the highest bit.
    """
    if ground_truth.stochastic:
        raise UnweaveError(
            f"{ground_truth.name} draws at random for each image, so its images cannot be tabled. "
            "Table the data set that it is made from."
        )
    n, pixels = len(ground_truth), math.prod(ground_truth.shape)
    shape = (n, pixels // 8) if ground_truth.binary else (n, *ground_truth.shape)

    def chunks() -> Iterator[Table]:
        for start in range(0, n, CHUNK):
            index = np.arange(start, min(start + CHUNK, n))
            images = ground_truth.observe(ground_truth.factors_at(index))
            yield np.packbits(images.reshape(len(index), -1) > 0, axis=1) if ground_truth.binary else images

    # By its source, not by its name: restricted draws and renamed ground truths share one table.
    title = re.sub(r"[^\w.-]+", "-", ground_truth.card.title)
    name = f"{title}-grid-{fingerprint(f'{ground_truth.source} {ground_truth.sizes}')}"
    return cached_table(name, shape, chunks, progress)


def cached_table(
    name: str,
    shape: tuple[int, ...],
    chunks: Callable[[], Iterable[Table]],
    progress: Progress | None = None,
) -> Table:
    """The table of that name from the cache, read-only; made of the chunks of rows if it is not there."""
    path = cache_folder() / "tables" / f"{name}.npy"
    try:
        table = _open(path, shape)
        if table is None:
            with hold(path):
                table = _open(path, shape)  # another process may have written it while we waited
                if table is None:
                    _write(path, shape, chunks(), progress)
                    table = _open(path, shape)
    except OSError as error:
        raise UnweaveError(_explain(error, path, math.prod(shape))) from error
    if table is None:
        raise UnweaveError(f"the table {path} changed while it was being written. Run the command again.")
    return table


def content_digest(name: str, chunks: Callable[[], Iterable[bytes]]) -> str:
    """A fingerprint of bytes, 16 hexadecimal digits; computed once and kept in the cache under that name."""

    def digest() -> Iterator[Table]:
        total = hashlib.blake2b(digest_size=8)
        for chunk in chunks():
            total.update(chunk)
        yield np.frombuffer(total.digest(), np.uint8)

    return cached_table(f"{name}-digest", (8,), digest).tobytes().hex()


def table_render(table: Table, sizes: tuple[int, ...], shape: tuple[int, int, int], packed: bool) -> Render:
    """A rule that looks images up in a table in grid order."""

    def render(factors: Factors, _stream: Stream) -> Images:
        rows = table[np.ravel_multi_index(tuple(factors.T), sizes)]
        if packed:
            rows = np.unpackbits(rows, axis=1) * np.uint8(255)
        return np.asarray(rows).reshape(len(factors), *shape)

    return render


def fingerprint(text: str) -> str:
    """A short name for a long description of a source."""
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _open(path: Path, shape: tuple[int, ...]) -> Table | None:
    """The finished table, or None if there is none of this shape."""
    try:
        table: Table = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        return None
    except (ValueError, EOFError):  # damaged by something other than us: make it again
        return None
    return table if table.shape == shape and table.dtype == np.uint8 else None


def _write(path: Path, shape: tuple[int, ...], chunks: Iterable[Table], progress: Progress | None) -> None:
    remove_parts(path.parent, path.name)
    with replacing(path) as part:
        with part.open("wb") as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            done = 0
            for chunk in chunks:
                file.write(np.ascontiguousarray(chunk).data)
                done += len(chunk)
                if progress is not None:
                    progress(done, shape[0])
            file.flush()
            os.fsync(file.fileno())
        if done != shape[0]:
            raise UnweaveError(f"{path.name} should have {shape[0]} images; its source gave {done}.")


def _explain(error: OSError, path: Path, size: int) -> str:
    need = f"{size / 1e6:,.0f} MB"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = shutil.disk_usage(path.parent).free
        return (
            f"the disk is full: the table {path} needs {need} and {free / 1e6:,.0f} MB are free. "
            "Make room, or set UNWEAVE_CACHE to a folder on another disk."
        )
    return (
        f"cannot write the table {path} ({need}): {error.strerror}. "
        "Set UNWEAVE_CACHE to a folder that you can write to."
    )
