"""From an encoder, or its codes, to scores: `evaluate`."""

from typing import TYPE_CHECKING

from unweave.evaluation.clusters import FoundClusters, found_clusters
from unweave.evaluation.compare import Comparison, Difference, compare
from unweave.evaluation.downstream import DownstreamCurves, downstream
from unweave.evaluation.equivariance import EquivarianceCurve, equivariance
from unweave.evaluation.evaluate import evaluate
from unweave.evaluation.frechet import FrechetDistance, frechet_distance
from unweave.evaluation.generalisation import Generalisation, generalisation
from unweave.evaluation.inversion import Inversion, inversion
from unweave.evaluation.layer_scores import LayerScores, score_layers
from unweave.evaluation.preprocessing import Preprocessing
from unweave.evaluation.scores import Score, Scores
from unweave.lazy import lazy_names

if TYPE_CHECKING:
    from unweave.evaluation.flow_latents import AttributeDirections, FlowLatents

__all__ = [
    "AttributeDirections",
    "Comparison",
    "Difference",
    "DownstreamCurves",
    "EquivarianceCurve",
    "FlowLatents",
    "FoundClusters",
    "FrechetDistance",
    "Generalisation",
    "Inversion",
    "LayerScores",
    "Preprocessing",
    "Score",
    "Scores",
    "compare",
    "downstream",
    "equivariance",
    "evaluate",
    "found_clusters",
    "frechet_distance",
    "generalisation",
    "inversion",
    "score_layers",
]

if not TYPE_CHECKING:
    FLOWS = "unweave.evaluation.flow_latents"  # needs torch
    __getattr__ = lazy_names(__name__, {"AttributeDirections": FLOWS, "FlowLatents": FLOWS})
