"""Directions in the codes of a trained model: PCA, ICA, SeFa, linear read-outs and sparse autoencoders.

Each function returns `Directions`: k directions (k, d) in codes of d numbers, which turn these into codes of
k numbers. All metrics and the explorer take them.
"""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names

if TYPE_CHECKING:
    from unweave.directions.components import ganspace, ica, pca
    from unweave.directions.directions import Directions, Fitted
    from unweave.directions.features import sparse
    from unweave.directions.fitting import fit, open_encoder
    from unweave.directions.regression import linear
    from unweave.directions.storage import load
    from unweave.directions.weights import first_weights, sefa

__all__ = [
    "Directions",
    "Fitted",
    "first_weights",
    "fit",
    "ganspace",
    "ica",
    "linear",
    "load",
    "open_encoder",
    "pca",
    "sefa",
    "sparse",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "Directions": "unweave.directions.directions",
            "Fitted": "unweave.directions.directions",
            "first_weights": "unweave.directions.weights",
            "fit": "unweave.directions.fitting",
            "ganspace": "unweave.directions.components",
            "ica": "unweave.directions.components",
            "linear": "unweave.directions.regression",
            "load": "unweave.directions.storage",
            "open_encoder": "unweave.directions.fitting",
            "pca": "unweave.directions.components",
            "sefa": "unweave.directions.weights",
            "sparse": "unweave.directions.features",
        },
    )
