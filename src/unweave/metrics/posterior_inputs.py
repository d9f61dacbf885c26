"""Checks of the means and log variances of Gaussian posteriors q(z|x)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unweave.errors import UnweaveError
from unweave.metrics.checks import check_codes
from unweave.metrics.real_factors import Floats

# exp(LARGEST_LOG_VAR) and its inverse are far from the ends of float64.
LARGEST_LOG_VAR = 500.0


def check_posteriors(mean: ArrayLike, log_var: ArrayLike) -> tuple[Floats, Floats]:
    """Return means and log variances (n, d) as float64, or raise an error that says what is wrong."""
    means, log_vars = check_codes(mean, "mean"), check_codes(log_var, "log_var")
    if log_vars.shape != means.shape:
        raise UnweaveError(f"log_var must be {means.shape} like mean; got {log_vars.shape}.")
    largest = log_vars.flat[np.abs(log_vars).argmax()]
    if abs(largest) > LARGEST_LOG_VAR:
        raise UnweaveError(
            f"log_var must be the logarithm of the variance, between -{LARGEST_LOG_VAR:g} and "
            f"{LARGEST_LOG_VAR:g}; got {largest:g}. Did you pass the variance?"
        )
    return means, log_vars
