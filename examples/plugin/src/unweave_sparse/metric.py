"""The share of codes that vary."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unweave.metrics.metric import Metric


def active_share(codes: NDArray[np.float64], *, threshold: float = 0.05) -> float:
    """Share of the codes (n, d) whose standard deviation is at least `threshold`, from 0 to 1."""
    return float((np.std(codes, axis=0) >= threshold).mean())


ACTIVE_SHARE = Metric(
    name="active_share",
    function=active_share,
    estimator="active_share[std0.05]",
    needs="unsupervised",
    summary="How many of the codes are used?",
    citation="",
    unchanged_by=frozenset({"permutation", "sign", "row order"}),
    flaws=("It depends on the scale of the codes.",),
)
