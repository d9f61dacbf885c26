"""Bits per dimension: how short a model can describe images, as models with a likelihood are compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unweave.errors import UnweaveError


def bits_per_dimension(losses: ArrayLike) -> float:
    """Return the mean of -log2 p(x) / D over images x of D pixels times channels; lower is better.

    losses (n,) are these numbers for each image. A flow such as Glow [1] gives a density of continuous
    images: each pixel has uniform noise of the width of a grey level, and p(x) is the density times that
    width for each pixel. The mean is then an upper bound of the bits that grey levels need [2].

    [1] Kingma and Dhariwal, Glow: generative flow with invertible 1x1 convolutions, NeurIPS 2018, equation 2.
    [2] Theis, van den Oord and Bethge, A note on the evaluation of generative models, ICLR 2016, section 3.1.

    >>> bits_per_dimension([3.0, 4.0])
    3.5
    """
    bits = np.asarray(losses, np.float64)
    if bits.ndim != 1 or not len(bits):
        raise UnweaveError(f"losses must be (n,), the bits per dimension of images; got {bits.shape}.")
    if not np.isfinite(bits).all():
        raise UnweaveError(f"losses must be finite; {int((~np.isfinite(bits)).sum())} are NaN or infinite.")
    return float(bits.mean())
