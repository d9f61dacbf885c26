"""The evidence lower bound and its parts: what a variational autoencoder knows of itself without labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unweave.errors import UnweaveError
from unweave.metrics.checks import check_codes

# A code is active if its mean varies more than this over the data (Burda et al., 2016).
LEAST_VARIANCE = 0.01


class ELBO(NamedTuple):
    """Means over the images, in nats; `active` is the number of active codes."""

    reconstruction: float
    kl: float
    elbo: float
    active: int


def elbo(losses: ArrayLike, mean: ArrayLike, log_var: ArrayLike) -> ELBO:
    """Return the evidence lower bound [1] of posteriors q(z|x) = N(mean, exp(log_var)), and its parts.

    reconstruction = mean_x losses, where losses (n,) are -log p(x|z) with one z ~ q(z|x) for each image;
    kl = mean_x 0.5 sum_i (mean_i^2 + exp(log_var_i) - log_var_i - 1), the divergence from N(0, 1);
    elbo = -(reconstruction + kl), higher is better; active = the number of codes whose mean has a variance
    above 0.01 over the images [2].

    [1] Kingma and Welling, Auto-encoding variational Bayes, ICLR 2014, equation 3. [2] Burda, Grosse and
    Salakhutdinov, Importance weighted autoencoders, ICLR 2016, section 5.2.

    >>> elbo([3.0, 5.0], [[1.0, 0.0], [-1.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])
    ELBO(reconstruction=4.0, kl=0.5, elbo=-4.5, active=1)
    """
    means, log_vars = check_codes(mean, "mean"), check_codes(log_var, "log_var")
    each = np.asarray(losses, np.float64)
    if log_vars.shape != means.shape or each.shape != means.shape[:1]:
        raise UnweaveError(
            f"losses must be (n,) and log_var (n, d) for mean of shape {means.shape}; got {each.shape} and "
            f"{log_vars.shape}."
        )
    if not np.isfinite(each).all():
        raise UnweaveError(f"losses must be finite; {int((~np.isfinite(each)).sum())} are NaN or infinite.")
    with np.errstate(over="ignore"):
        kl = float(0.5 * (means**2 + np.exp(log_vars) - log_vars - 1).sum(axis=1).mean())
        active = int((means.var(axis=0) > LEAST_VARIANCE).sum())
    if not np.isfinite(kl):
        raise UnweaveError("the KL divergence of these posteriors does not fit a float. Rescale the codes.")
    reconstruction = float(each.mean())
    return ELBO(reconstruction, kl, -(reconstruction + kl), active)
