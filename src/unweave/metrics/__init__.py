"""Scores of codes (n, d) against factors (n, k): plain functions of arrays, one metric a file.

>>> import numpy as np
>>> from unweave.metrics import mig
>>> factors = np.stack(np.meshgrid(np.arange(4), np.arange(5), indexing="ij"), axis=-1).reshape(-1, 2)
>>> round(mig(factors * 0.1, factors), 3)  # each code holds one factor
1.0
"""

from unweave.metrics.dcimig import dcimig
from unweave.metrics.infomec import InfoMEC, infomec
from unweave.metrics.information import mutual_information
from unweave.metrics.irs import irs
from unweave.metrics.jemmig import jemmig
from unweave.metrics.med import med
from unweave.metrics.mig import mig, mig_posterior
from unweave.metrics.mig_sup import mig_sup
from unweave.metrics.modularity import modularity
from unweave.metrics.total_correlation import (
    mean_pairwise_information,
    total_correlation,
    wasserstein_correlation,
)

__all__ = [
    "InfoMEC",
    "dcimig",
    "infomec",
    "irs",
    "jemmig",
    "mean_pairwise_information",
    "med",
    "mig",
    "mig_posterior",
    "mig_sup",
    "modularity",
    "mutual_information",
    "total_correlation",
    "wasserstein_correlation",
]
