"""Codes of frozen encoders on the disk, so that a further metric encodes nothing.

The codes of a batch are stored under a hash of the encoder (weights, structure, options) and a hash of the
images. Such a hash cannot see everything, such as an attribute that a forward pass reads. So the first batch
that is found is compared with fresh codes of some of its images, and the cache is not used if they differ.
"""

from __future__ import annotations

import contextlib
import hashlib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.evaluation.posteriors import Posterior
from unweave.files import replacing
from unweave.places import cache_folder

LIMIT = 8 << 30  # bytes; the batches that were used least recently are removed beyond it
CHECKED = 4  # images of the first batch that are encoded again
TOLERANCE = 1e-3  # of the standard deviation of a batch's codes; batches of another size round differently


@dataclass
class EncodingCache:
    """The stored codes of one encoder."""

    encode: Callable[[NDArray[np.uint8]], Posterior]
    key: str
    images: int = 0  # whose codes were found
    trusted: bool | None = None  # None until the first batch is found

    @property
    def folder(self) -> Path:
        """Where the codes of this encoder are."""
        return cache_folder() / "encodings" / self.key

    def __call__(self, images: NDArray[np.uint8]) -> Posterior:
        """Codes from the disk; what is not there is encoded and stored."""
        digest = hashlib.blake2b(repr(images.shape).encode(), digest_size=16)
        digest.update(images.tobytes())
        path = self.folder / f"{digest.hexdigest()}.npz"
        stored = None if self.trusted is False else _read(path)
        if stored is not None and self.trusted is None:
            self.trusted = self._agrees(images, stored)
        if stored is not None and self.trusted:
            self.images += len(images)
            return stored
        posterior = self.encode(images)
        # A cache that cannot be written costs time later and nothing else.
        with contextlib.suppress(OSError):
            _write(path, posterior)
        return posterior

    def _agrees(self, images: NDArray[np.uint8], stored: Posterior) -> bool:
        fresh = self.encode(images[:CHECKED])
        return len(stored.mean) == len(images) and all(
            a is None is b or _close(a, b) for a, b in zip(fresh, stored, strict=True)
        )


def prune(limit: int = LIMIT) -> None:
    """Remove the batches that were used least recently until all together are within the limit."""
    with contextlib.suppress(OSError):
        files = [(path.stat(), path) for path in (cache_folder() / "encodings").glob("*/*.npz")]
        excess = sum(status.st_size for status, _ in files) - limit
        for status, path in sorted(files, key=lambda file: file[0].st_mtime):
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= status.st_size


def _close(fresh: Any, stored: Any) -> bool:
    if fresh is None or stored is None or fresh.shape[1:] != stored.shape[1:]:
        return False
    scale = max(float(np.std(stored)), float(np.finfo(np.float32).tiny))
    return bool(np.abs(fresh - stored[: len(fresh)]).max() <= TOLERANCE * scale)


def _read(path: Path) -> Posterior | None:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            posterior = Posterior(arrays["mean"], arrays.get("log_var"))
        path.touch()
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
        return None
    return posterior


def _write(path: Path, posterior: Posterior) -> None:
    with replacing(path, keep_suffix=True) as part:
        if posterior.log_var is None:
            np.savez(part, mean=posterior.mean)
        else:
            np.savez(part, mean=posterior.mean, log_var=posterior.log_var)
