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
from unweave.metrics.bits_per_dimension import bits_per_dimension
from unweave.metrics.block_mig import block_mig
from unweave.metrics.block_r2 import BlockR2, block_r2
from unweave.metrics.block_separation import BlockSeparation, block_separation
from unweave.metrics.d_lsbd import DLSBD, d_lsbd
from unweave.metrics.dci import DCI, dci
from unweave.metrics.dci_es import DCIES, dci_es
from unweave.metrics.dci_es_forest import dci_es_forest
from unweave.metrics.dci_es_mlp import dci_es_mlp
from unweave.metrics.dcimig import dcimig
from unweave.metrics.downstream import Downstream, downstream, statistical_efficiency
from unweave.metrics.downstream_circular import DownstreamCircular, downstream_circular
from unweave.metrics.downstream_reduced import DownstreamReduced, downstream_reduced
from unweave.metrics.downstream_strong import DownstreamStrong, downstream_strong
from unweave.metrics.elbo import ELBO, elbo
from unweave.metrics.equivariance import Equivariance, equivariance
from unweave.metrics.explicitness import Explicitness, explicitness
from unweave.metrics.factor_vae_score import FactorVAEScore, factor_vae_score
from unweave.metrics.factored_components import FactoredComponents, factored_components
from unweave.metrics.fairness import Fairness, fairness
from unweave.metrics.flatness import flatness
from unweave.metrics.infomec import InfoMEC, infomec
from unweave.metrics.information import mutual_information
from unweave.metrics.irs import irs
from unweave.metrics.jemmig import jemmig
from unweave.metrics.lookup import metric_named, metrics_named
from unweave.metrics.mcc import MCC, mcc
from unweave.metrics.med import med
from unweave.metrics.metric import Measured, Metric, compute, measure
from unweave.metrics.mig import mig, mig_posterior
from unweave.metrics.mig_sup import mig_sup
from unweave.metrics.modularity import modularity
from unweave.metrics.r2 import R2, r2
from unweave.metrics.r4 import R4, r4
from unweave.metrics.representation import Representation
from unweave.metrics.rmig import rmig
from unweave.metrics.sap import sap
from unweave.metrics.selection import model_centrality, udr
from unweave.metrics.sepin import SEPIN, sepin
from unweave.metrics.shd import structural_hamming_distance
from unweave.metrics.swap_consistency import SwapConsistency, swap_consistency
from unweave.metrics.table import METRICS, SUITES
from unweave.metrics.total_correlation import (
    mean_pairwise_information,
    total_correlation,
    wasserstein_correlation,
)
from unweave.metrics.unified_scores import UnifiedScores, unified_scores
from unweave.metrics.z_max_var import ZMaxVar, z_max_var

__all__ = [
    "DCI",
    "DCIES",
    "DLSBD",
    "ELBO",
    "MCC",
    "METRICS",
    "R2",
    "R4",
    "SEPIN",
    "SUITES",
    "BetaVAEScore",
    "BlockR2",
    "BlockSeparation",
    "Downstream",
    "DownstreamCircular",
    "DownstreamReduced",
    "DownstreamStrong",
    "Equivariance",
    "Explicitness",
    "FactorVAEScore",
    "FactoredComponents",
    "Fairness",
    "InfoMEC",
    "Measured",
    "Metric",
    "Representation",
    "SwapConsistency",
    "UnifiedScores",
    "ZMaxVar",
    "beta_vae_score",
    "bits_per_dimension",
    "block_mig",
    "block_r2",
    "block_separation",
    "compute",
    "d_lsbd",
    "dci",
    "dci_es",
    "dci_es_forest",
    "dci_es_mlp",
    "dcimig",
    "downstream",
    "downstream_circular",
    "downstream_reduced",
    "downstream_strong",
    "elbo",
    "equivariance",
    "explicitness",
    "factor_vae_score",
    "factored_components",
    "fairness",
    "flatness",
    "infomec",
    "irs",
    "jemmig",
    "mcc",
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
    "r2",
    "r4",
    "rmig",
    "sap",
    "sepin",
    "statistical_efficiency",
    "structural_hamming_distance",
    "swap_consistency",
    "total_correlation",
    "udr",
    "unified_scores",
    "wasserstein_correlation",
    "z_max_var",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
