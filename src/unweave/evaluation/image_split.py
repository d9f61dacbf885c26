"""Points to train and to test on that share no image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unweave.errors import UnweaveError
from unweave.streams import Stream


def split_by_image(
    images: NDArray[np.int64], points: tuple[int, int], stream: Stream, name: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]:
    """Rows to train and to test on that share no image, and a note; `images` (n,) numbers them."""
    count = int(images.max()) + 1
    if count < 2:
        raise UnweaveError(
            f"{name} has one image only, so none can be held out to test on. Give more images."
        )
    held = min(max(round(count * points[1] / sum(points)), 1), count - 1)
    is_test = np.zeros(count, np.bool_)
    is_test[stream.child("held out").permutations(1, count)[0][:held]] = True
    rows = is_test[images]
    note = f"Test points show {held:,} images of {name}, training points {count - held:,} others."
    return np.flatnonzero(~rows)[: points[0]], np.flatnonzero(rows)[: points[1]], (note,)
