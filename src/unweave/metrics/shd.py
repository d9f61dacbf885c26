"""Structural Hamming distance between two directed graphs, such as a learned and a true causal graph.

Tsamardinos, Brown, Aliferis, "The max-min hill-climbing Bayesian network structure learning algorithm",
Machine Learning 2006 [1].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError


def structural_hamming_distance(graph: ArrayLike, truth: ArrayLike, *, reversal: int = 1) -> int:
    """Return the number of edges to add, remove or reverse to turn `graph` into `truth`.

    Both are adjacency matrices (k, k): entry (i, j) is not 0 if there is an edge from i to j. Nodes must be
    in the same order; `mcc(codes, factors).matches` gives the order of codes that suits the factors. A
    reversed edge counts `reversal` = 1 as in [1], or 2 as one removal and one addition. 0 is best.

    >>> structural_hamming_distance([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    1
    >>> structural_hamming_distance([[0, 1], [0, 0]], [[0, 0], [1, 0]], reversal=2)
    2
    """
    first, second = _edges(graph, "graph"), _edges(truth, "truth")
    if first.shape != second.shape:
        raise UnweaveError(
            f"`graph` and `truth` must have the same nodes; got {first.shape} and {second.shape}."
        )
    if reversal not in (1, 2):
        raise UnweaveError(f"`reversal` must be 1 or 2; got {reversal!r}.")
    different = first != second
    if reversal == 2:
        return int(different.sum())
    either = np.triu(different | different.T)
    return int(either.sum())


def _edges(graph: ArrayLike, name: str) -> NDArray[np.bool_]:
    edges = np.asarray(graph)
    if edges.ndim != 2 or edges.shape[0] != edges.shape[1] or not edges.size:
        raise UnweaveError(
            f"`{name}` must be an adjacency matrix (k, k); got an array of shape {edges.shape}."
        )
    if edges.dtype.kind not in "biuf":
        raise UnweaveError(f"`{name}` must hold numbers or truth values; got {edges.dtype}.")
    return np.asarray(edges != 0)
