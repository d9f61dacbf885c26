"""Sparse autoencoders on codes: training as a population, and scores against known factors."""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names
from unweave.sparse.autoencoder import SparseAutoencoder, load
from unweave.sparse.detectors import Concept
from unweave.sparse.scores import ConceptScore, concept_table, score
from unweave.sparse.spec import SparseSpec
from unweave.sparse.training import train

__all__ = [
    "Concept",
    "ConceptScore",
    "SparseAutoencoder",
    "SparseSpec",
    "concept_table",
    "load",
    "score",
    "train",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
