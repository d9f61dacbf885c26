"""Scores of codes (n, d) against factors (n, k): plain functions of arrays, one metric a file.

>>> import numpy as np
>>> from unweave.metrics import mig
>>> factors = np.stack(np.meshgrid(np.arange(4), np.arange(5), indexing="ij"), axis=-1).reshape(-1, 2)
>>> round(mig(factors * 0.1, factors), 3)  # each code holds one factor
1.0

`METRICS` is the table of all of them. Several files are called like the function in them; the name here is
the function's.
"""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names
from unweave.metrics.beta_vae_score import BetaVAEScore, beta_vae_score
from unweave.metrics.dci import DCI, dci
from unweave.metrics.dci_es import DCIES, dci_es
from unweave.metrics.dcimig import dcimig
from unweave.metrics.downstream import Downstream, downstream, statistical_efficiency
from unweave.metrics.elbo import ELBO, elbo
from unweave.metrics.explicitness import Explicitness, explicitness
from unweave.metrics.factor_vae_score import FactorVAEScore, factor_vae_score
from unweave.metrics.infomec import InfoMEC, infomec
from unweave.metrics.information import mutual_information
from unweave.metrics.irs import irs
from unweave.metrics.jemmig import jemmig
from unweave.metrics.lookup import metric_named, metrics_named
from unweave.metrics.med import med
from unweave.metrics.metric import Measured, Metric, compute, measure
from unweave.metrics.mig import mig, mig_posterior
from unweave.metrics.mig_sup import mig_sup
from unweave.metrics.modularity import modularity
from unweave.metrics.representation import Representation
from unweave.metrics.sap import sap
from unweave.metrics.selection import model_centrality, udr
from unweave.metrics.table import METRICS, SUITES
from unweave.metrics.total_correlation import (
    mean_pairwise_information,
    total_correlation,
    wasserstein_correlation,
)

__all__ = [
    "DCI",
    "DCIES",
    "ELBO",
    "METRICS",
    "SUITES",
    "BetaVAEScore",
    "Downstream",
    "Explicitness",
    "FactorVAEScore",
    "InfoMEC",
    "Measured",
    "Metric",
    "Representation",
    "beta_vae_score",
    "compute",
    "dci",
    "dci_es",
    "dcimig",
    "downstream",
    "elbo",
    "explicitness",
    "factor_vae_score",
    "infomec",
    "irs",
    "jemmig",
    "mean_pairwise_information",
    "measure",
    "med",
    "metric_named",
    "metrics_named",
    "mig",
    "mig_posterior",
    "mig_sup",
    "model_centrality",
    "modularity",
    "mutual_information",
    "sap",
    "statistical_efficiency",
    "total_correlation",
    "udr",
    "wasserstein_correlation",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
