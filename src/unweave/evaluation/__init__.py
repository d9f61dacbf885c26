"""From an encoder, or its codes, to scores: `evaluate`."""

from unweave.evaluation.evaluate import evaluate
from unweave.evaluation.scores import Score, Scores

__all__ = ["Score", "Scores", "evaluate"]
