"""Posteriors of images that are drawn at random, kept while several representations of a run are measured.

Mean and sampled codes come from the same images, because the streams of metrics do not depend on the
representation. Each image is then made and encoded once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unweave.evaluation.posteriors import Posterior
from unweave.streams import Stream

MOST_BYTES = 500_000_000


@dataclass(eq=False)
class PosteriorMemory:
    """Posteriors by factors and stream, as far as they fit into so many bytes."""

    most_bytes: int = MOST_BYTES
    _known: dict[tuple[Stream, bytes], Posterior] = field(default_factory=dict)
    _bytes: int = 0

    def get(self, factors: NDArray[np.int64], stream: Stream, encode: Callable[[], Posterior]) -> Posterior:
        """The posteriors of the images of factors (n, k), encoded if they are not known."""
        key = stream, hashlib.blake2b(factors.tobytes(), digest_size=16).digest()
        known = self._known.get(key)
        if known is not None:
            return known
        posterior = encode()
        size = sum(part.nbytes for part in posterior if part is not None)
        if self._bytes + size <= self.most_bytes:
            self._known[key] = posterior
            self._bytes += size
        return posterior
