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

__all__ = [
    "Comparison",
    "Difference",
    "DownstreamCurves",
    "EquivarianceCurve",
    "Generalisation",
    "Preprocessing",
    "Score",
    "Scores",
    "compare",
    "downstream",
    "equivariance",
    "evaluate",
    "generalisation",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
