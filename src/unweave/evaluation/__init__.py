"""From an encoder, or its codes, to scores: `evaluate`."""

from typing import TYPE_CHECKING

from unweave.evaluation.compare import Comparison, Difference, compare
from unweave.evaluation.downstream import DownstreamCurves, downstream
from unweave.evaluation.equivariance import EquivarianceCurve, equivariance
from unweave.evaluation.evaluate import evaluate
from unweave.evaluation.generalisation import Generalisation, generalisation
from unweave.evaluation.preprocessing import Preprocessing
from unweave.evaluation.scores import Score, Scores
from unweave.lazy import lazy_names

if TYPE_CHECKING:
    from unweave.evaluation.clusters import FoundClusters, found_clusters
    from unweave.evaluation.flow_latents import AttributeDirections, FlowLatents
    from unweave.evaluation.frechet import FrechetDistance, frechet_distance
    from unweave.evaluation.gan_inversion import Inversion, inversion
    from unweave.evaluation.layer_scores import LayerScores, score_layers

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

# What needs a trained run, and so torch, is imported when it is used.
_OF_RUNS = {
    "clusters": ("FoundClusters", "found_clusters"),
    "flow_latents": ("AttributeDirections", "FlowLatents"),
    "frechet": ("FrechetDistance", "frechet_distance"),
    "gan_inversion": ("Inversion", "inversion"),
    "layer_scores": ("LayerScores", "score_layers"),
}

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__, {name: f"{__name__}.{module}" for module, names in _OF_RUNS.items() for name in names}
    )
