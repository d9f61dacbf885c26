"""The true image whose code is nearest to a code, for models without a decoder."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.data.grid import Images


class NearestImages:
    """Codes (n, d) of true images, looked up by distance.

    Each latent is divided by its standard deviation, so that all latents count alike; a latent that is the
    same for all images is ignored. Of two images that are equally near, the first is taken.
    """

    def __init__(self, codes: NDArray[Any], images: Images) -> None:
        deviation = codes.std(axis=0)
        self._scale = np.divide(1.0, deviation, out=np.zeros(len(deviation)), where=deviation > 0)
        self._codes, self._images = codes * self._scale, images
        self._squares = (self._codes**2).sum(axis=1)

    def decode(self, codes: NDArray[Any]) -> Images:
        """The images whose codes are nearest to codes (m, d)."""
        products = (codes * self._scale) @ self._codes.T
        nearest: NDArray[np.int64] = (self._squares - 2 * products).argmin(axis=1)
        return self._images[nearest]
